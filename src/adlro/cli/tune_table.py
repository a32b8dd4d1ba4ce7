"""Prints a tuning: the verdict, the lines of slurm.conf, who gains and loses, what is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adlro.cli.assess_table import line, section

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from adlro.config.slurm_lines import Change
    from adlro.evaluate.group_waits import GroupChange
    from adlro.evaluate.stats import Estimate
    from adlro.evaluate.tune import TriedConfiguration, Tuning

_MOST_GROUPS = 8
_MOST_TRIALS = 5
_WORDS = {"mean-jct": "mean JCT", "mean-wait": "mean wait", "p99-jct": "p99 of JCT"}


def shown(found: Tuning) -> RenderableType:
    """Return the whole output."""
    from rich.console import Group

    parts: list[RenderableType] = [line(text) for text in _head(found)]
    parts += section("Verdict", verdict(found))
    if found.lines:
        parts += [line(""), line("Lines of slurm.conf"), *(line(f"  {one}") for one in found.lines)]
        parts += [line(text) for text in _hints(found)]
    if found.changes or found.rejected:
        parts += [line(""), _gains(found), line(_CAPTION)]
        parts += [line(""), _groups("Who would wait longer", found.losers)]
        parts += [_groups("Who would wait less", found.gainers)]
    if not found.lines:
        parts += [line(""), _trials(found.trials)]
    parts += section("What is left", left(found))
    if found.findings:
        parts += section("What stands out today", [one.text for one in found.findings])
    told = [found.calibration.headline()] if found.calibration else ["the twin is not calibrated"]
    parts += section("How close the twin is", told)
    parts += section("What is assumed", found.assumptions)
    return Group(*parts)


_CAPTION = "Gain in percent on the later half, positive = better; 95 % intervals paired by window."


def _head(found: Tuning) -> list[str]:
    return [
        f"{found.history} on {found.cluster}: {found.jobs:,} GPU jobs; {found.tried} "
        f"configurations tried on {found.first_windows} windows of the first half, the best "
        f"measured on {found.later_windows} windows of the later half",
    ]


def percent(one: Estimate) -> str:
    """Return a figure in percent with its interval."""
    text = f"{one.mean:+.1f} %"
    return text if one.ci95 is None else f"{text} ({one.ci95[0]:+.1f} to {one.ci95[1]:+.1f})"


def verdict(found: Tuning) -> list[str]:
    """Return the verdict in sentences."""
    word, gain = _WORDS[found.objective], percent(found.gain)
    if found.verdict == "change":
        count = len(found.changes)
        return [
            f"Change {count} {'setting' if count == 1 else 'settings'}: {word} gains {gain} on the "
            f"later half, which the search has not seen ({found.first_part:+.1f} % on the first)."
        ]
    if not found.rejected:
        return ["Leave it: no other configuration is better on the first half by more than noise."]
    return [
        f"Leave it: the best configuration found gains {found.first_part:+.1f} % on the first "
        f"half, but {gain} on the later one; too little, or not certain.",
        f"It was: {_listed(found.rejected)}.",
    ]


def _listed(changes: Sequence[Change]) -> str:
    return ", ".join(f"{one.key} {one.before} → {one.after}" for one in changes) or "no change"


def _hints(found: Tuning) -> list[str]:
    hints = {
        "SchedulerParameters": "SchedulerParameters: keep the other parameters that you have.",
        "PartitionName": "PartitionName: add the keys to the partition's own line.",
        "NodeName": "NodeName: add Weight= to the nodes' own lines; the lowest are filled first.",
    }
    return [
        f"  # {text}"
        for start, text in hints.items()
        if any(one.startswith(start) for one in found.lines)
    ]


def _gains(found: Tuning) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.evaluate.variants import SPEED_WORDS

    table = Table(box=SIMPLE_HEAD)
    table.add_column("gain")
    table.add_column("percent", justify="right")
    word = _WORDS[found.objective]
    table.add_row(f"{word}, all speeds", percent(found.gain))
    for speeds, one in found.by_speeds.items():
        table.add_row(f"{word}, {SPEED_WORDS[speeds]}", percent(one))
    for name, other in found.gains.items():
        if name != found.objective and other is not None:
            table.add_row(f"{_WORDS[name]}, all speeds", percent(other))
    return table


def _groups(title: str, groups: Sequence[GroupChange]) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.evaluate.durations import change, duration

    if not groups:
        return line(f"{title}: no account, partition or gang size.")
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left")
    table.add_column("")
    for heading in ("jobs", "wait today", "wait then", "change", "95 % interval", "longer under"):
        table.add_column(heading, justify="right")
    for one in groups[:_MOST_GROUPS]:
        ends = one.change_s.ci95
        table.add_row(
            line(one.label),
            f"{one.jobs:,}",
            duration(one.before_s),
            duration(one.after_s),
            change(one.change_s.mean),
            "" if ends is None else f"{change(ends[0])} to {change(ends[1])}",
            f"{one.longer_in} of {one.assumptions}",
        )
    if len(groups) > _MOST_GROUPS:
        table.caption = f"and {len(groups) - _MOST_GROUPS} more (--json has all)"
    return table


def _trials(trials: Sequence[TriedConfiguration]) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, title="What was tried (first half)", title_justify="left")
    for heading in ("changes", "gain", "windows"):
        table.add_column(heading, justify="left" if heading == "changes" else "right")
    for one in trials[:_MOST_TRIALS]:
        table.add_row(line(_listed(one.changes)), f"{one.gain_pct:+.1f} %", str(one.windows))
    return table


def left(found: Tuning) -> list[str]:
    """Return what ADLRO and others would gain on the same jobs, and what is left of it."""
    ours = found.adlro
    sentences = []
    if ours is None:
        sentences.append("ADLRO cannot run on this cluster.")
    elif ours.gain is None or ours.left is None:
        sentences.append(f"There is nothing to gain: {_WORDS[found.objective]} is 0.")
    elif found.verdict == "change":
        sentences.append(
            f"This leaves {percent(ours.left)} of ADLRO's gain of {percent(ours.gain)} over Slurm "
            "as it is."
        )
    else:
        sentences.append(f"ADLRO gains {percent(ours.gain)} over Slurm as it is.")
    for one in found.others:
        if one.gain is not None:
            sentences.append(f"{one.policy} gains {percent(one.gain)}.")
    return sentences
