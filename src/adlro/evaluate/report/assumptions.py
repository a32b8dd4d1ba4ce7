"""The section on what a page's figures rest on: assumptions, and how well the record is met."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from adlro.evaluate.calibration import Calibration, Means, PartitionCalibration
from adlro.evaluate.comparison import Comparison
from adlro.evaluate.durations import duration
from adlro.evaluate.report import formatting, html_table
from adlro.evaluate.report.formatting import TimeUnit
from adlro.evaluate.report.frame import Section, bullets, paragraph, text
from adlro.evaluate.report.html_table import NOTHING, Cell, Column
from adlro.evaluate.report.labels import Labels
from adlro.workloads.setting import Setting

KEY = "assumed"
_MOST_PARTITIONS = 12  # rows of a table
_EMPTY_START = (
    "The simulation of each seed begins with an empty cluster; the recorded cluster was in use."
)
_COUNTED = re.compile(r"(all jobs|[\d,]+ (?:of [\d,]+ |CPU-only )?jobs|[\d,]+ lines): (.+)", re.S)
_SECONDS = re.compile(r"\b(\d+(?:\.\d+)?(?:e\+\d+)?) s\b")
_LEFT_OUT = re.compile(r"left out: ([\d,]+ jobs) (.+)", re.S)
_LINES = re.compile(r"(.+): ([\d,]+ lines of the file)", re.S)


class Assumption(NamedTuple):
    """Something that is assumed of jobs of a history."""

    jobs: str  # how many it touches, in words; "" = not known
    what: str


def assumption(sentence: str) -> Assumption:
    """Return a sentence of `Setting.filled` as the jobs that it touches, and what is assumed."""
    if found := _LEFT_OUT.fullmatch(sentence):
        return Assumption(found[1], f"left out: {found[2]}")
    if found := _LINES.fullmatch(sentence):
        return Assumption(found[2], found[1])
    if found := _COUNTED.fullmatch(sentence):
        return Assumption(found[1], found[2])
    return Assumption("", sentence)


def assumption_table(sentences: Sequence[str], labels: Labels | None) -> str:
    """Return the HTML table of assumptions, each with the jobs that it touches."""
    shown = [labels.sentence(words) if labels else words for words in sentences]
    found = [assumption(_in_human_units(words)) for words in shown]
    what = html_table.words("what is assumed of them", [one.what for one in found])
    rows = [html_table.Row(one.jobs or "–") for one in found]
    return html_table.render("jobs", rows, [what])


def _in_human_units(sentence: str) -> str:
    """Return a sentence with its times in minutes, hours or days, where they are long."""
    return _SECONDS.sub(lambda found: duration(float(found[1])), sentence)


def pointer(setting: Setting, result: Comparison) -> str:
    """Return HTML that links to the section; "" = there is nothing to say."""
    if not setting.filled and result.calibration is None:
        return ""
    found = result.calibration
    verdict = "" if found is None else f" {text(found.verdict())}."
    count = formatting.plural(len(setting.filled), "assumption")
    return f'These figures rest on <a href="#{KEY}">{count}</a>.{verdict}'


def section(setting: Setting, result: Comparison, labels: Labels | None) -> Section | None:
    """Return the section on what is assumed; None = there is nothing to say."""
    parts = []
    others = [note for note in result.notes if note not in setting.filled]
    others += result.range_notes()
    if setting.filled:
        parts.append(assumption_table(setting.filled, labels))
    if setting.played is not None:
        others = [_EMPTY_START, *others]
    if others:
        parts.append(bullets(_named(setting, labels, note) for note in others))
    if result.calibration is not None:
        parts += calibration_parts(result.calibration, labels)
    title = "Notes" if setting.played is None else "What is assumed"
    return Section(KEY, title, parts) if parts else None


def _named(setting: Setting, labels: Labels | None, note: str) -> str:
    """Return a note without the scenario's name, if the page is anonymous."""
    if labels is None or not labels.is_anonymous:
        return note
    return re.sub(rf"\b{re.escape(setting.scenario.name)}\b", "the scenario", note)


def calibration_parts(found: Calibration, labels: Labels | None) -> list[str]:
    """Return HTML on how closely a simulation reproduces the record, and why it does not."""
    unit = formatting.human_unit(found.jct_s.recorded)
    rank = found.rank_correlation
    told = "" if rank is None else f" The rank correlation of waits is {rank:.2f}."
    parts = [
        f"<h3>How well the simulation reproduces the record</h3>{paragraph(found.verdict() + '.')}",
        _table(found, unit, labels),
        paragraph(f"Means over {found.jobs:,} jobs, recorded and simulated with "
                  f"{found.policy}.{told}"),
    ]  # fmt: skip
    if found.reasons:
        parts += [paragraph("Likely reasons:"), bullets(found.reasons)]
    return parts


def _table(found: Calibration, unit: TimeUnit, labels: Labels | None) -> str:
    several = found.partitions if len(found.partitions) > 1 else []
    several = several[:_MOST_PARTITIONS]
    rows: list[Calibration | PartitionCalibration] = [found, *several]
    names = ["all jobs", *(f"partition {_partition(one.partition, labels)}" for one in several)]
    columns = [Column("jobs", "", [Cell(f"{one.jobs:,}", one.jobs) for one in rows])]
    for what, means in (
        ("wait", [one.wait_s for one in rows]),
        ("completion time", [one.jct_s for one in rows]),
    ):
        columns += _columns(what, means, unit)
    return html_table.render("", [html_table.Row(name) for name in names], columns)


def _partition(name: str, labels: Labels | None) -> str:
    words = labels.history.tables["queue"] if labels else ()
    if labels is None or name not in words:
        return name or "unknown"
    return labels.words("queue")[words.index(name)]


def _columns(what: str, means: Sequence[Means], unit: TimeUnit) -> list[Column]:
    def cells(values: Sequence[float]) -> list[Cell]:
        return [Cell(formatting.in_unit(value, unit), value) for value in values]

    changes = [one.difference_pct for one in means]
    return [
        Column(f"{what} recorded, {unit.unit}", "mean", cells([one.recorded for one in means])),
        Column(f"simulated, {unit.unit}", f"mean {what}", cells([one.simulated for one in means])),
        Column(
            "difference",
            "of simulated to recorded",
            [NOTHING if c is None else Cell(f"{c:+,.1f} %", c) for c in changes],
        ),
    ]
