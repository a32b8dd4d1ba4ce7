"""Policies on the second half of seven public traces, under three assumptions about speeds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import Result, Table, parser, run, shared
from kept import Shelf, fingerprint
from traces.halves import LOAD, SPEEDS, Fitted, Trace, fitted, measured, windows
from traces.known import TRACES
from versus import against, by_name

from adlro.evaluate.compare import compare
from adlro.evaluate.comparison import BASELINE, Comparison
from adlro.model.state import Floats
from adlro.policies import registry
from adlro.sim import simulator
from adlro.workloads.setting import Setting

FOLDER = Path(__file__).parent
OURS = "adlro"
STRONGEST = "drain-argmin"  # of the heuristics
POLICIES = (
    BASELINE, STRONGEST, OURS, "lp-sjf", "pair-sjf", "sjf", "easy-backfill", "fcfs",
)  # fmt: skip
TRAINED = "Helios Venus"  # the trace with policies of its own: FOLDER/SPEEDS.npz
FEW = 2  # windows of a quick run
MUCH = 1.25  # times the baseline's mean JCT
SPOKEN = ("no speeds", "measured mix", "Gavel types")  # SPEEDS in words
NOTE = (
    "These traces do not state how fast a job is on another GPU model. So each is played under "
    "three assumptions (all models alike; the three measured types of `paper16`; the 26 of "
    "`gavel16`, a job's type by a hash of its id), and a difference is *claimed* only where the "
    "three 95 % intervals are all on one side of 0. Run times are known to all policies "
    "(estimates: oracle). The shipped `adlro` has never seen a trace."
)


class Found(NamedTuple):
    """One trace under one assumption."""

    fit: Fitted
    setting: Setting  # of the second half
    comparison: Comparison


def policies(trace: Trace, speeds: str) -> list[str]:
    """What is played, the policy trained for it included if there is one."""
    own = [f"{FOLDER}/trained-{speeds}.npz"] if trace.name == TRAINED else []
    return [*POLICIES, *own]


class Way(NamedTuple):
    """How much is played, and where it is kept."""

    shelf: Shelf
    most: int | None = None  # windows; None = all


def play(trace: Trace, speeds: str, file: Path, names: Sequence[str], way: Way) -> Found:
    """Every policy on the windows of the second half, made ready by the first half alone.

    Args:
        trace: what is played of the file.
        speeds: the assumption, one of SPEEDS.
        file: the trace's.
        names: of the policies, or their files.
        way: how much of it.
    """
    fit = fitted(trace, file, speeds)
    setting = measured(trace, file, speeds, fit)
    ready = [registry.load(name, fit.setting) for name in names]
    seeds = range(windows(setting))[: way.most]
    label = f"{trace.name}, {speeds}"

    def make() -> Comparison:
        sys.stderr.write(f"{label}: {len(seeds)} windows of {trace.window:,} jobs\n")
        simulator.warm_up(ready)
        return compare(setting, ready, seeds)

    mark = fingerprint(setting.scenario, ready, seeds)
    return Found(fit, setting, way.shelf.get(label, mark, make))


def claimed(intervals: Sequence[tuple[float, float] | None]) -> str:
    """What may be said of a difference: only what all assumptions agree on."""
    if all(interval is not None and interval[1] < 0 for interval in intervals):
        return "shorter"
    if all(interval is not None and interval[0] > 0 for interval in intervals):
        return "longer"
    return "nothing"


def _cells(found: Sequence[Found], place: int, rival: str) -> list[str]:
    """The policy at a place against a rival under each assumption, and what is claimed."""
    rows = [one.comparison.policies[place] for one in found]
    said = claimed([row.jct_versus(rival).ci95 for row in rows])
    return [*(against(row, rival) for row in rows), said]


def _facts(trace: Trace, found: Sequence[Found]) -> list[str]:
    """What was played, in a line."""
    metrics = [by_name(one.comparison)[BASELINE].metrics for one in found]
    return [
        trace.name,
        ", ".join(f"{count * gpus} {model}" for model, (count, gpus, _, _) in trace.nodes.items()),
        trace.about,
        f"{trace.begin_s / 86_400:.0f} to {trace.split_s / 86_400:.0f}",
        f"{found[0].comparison.seeds} of {trace.window:,}",
        " / ".join(f"{one.fit.stretch:.2f}" for one in found),
        " / ".join(f"{one.setting.scenario.load:.2f}" for one in found),
        " / ".join(f"{figures['gpu_utilisation'].mean * 100:.0f}" for figures in metrics),
        " / ".join(f"{figures['mean_wait_s'].mean / 3600:.1f}" for figures in metrics),
    ]


def _named(name: str) -> str:
    return f"{OURS}, trained on the first half" if name.startswith("trained-") else name


def _lines(all_found: dict[str, list[Found]], rival: str, *, is_ours: bool) -> list[list[str]]:
    """Our policies, or all others, against a rival."""
    return [
        [trace, _named(row.name), *_cells(found, place, rival)]
        for trace, found in all_found.items()
        for place, row in enumerate(found[0].comparison.policies)
        if (OURS in _named(row.name)) is is_ours and row.name != rival
    ]


def _spread(all_found: dict[str, list[Found]]) -> list[list[str]]:
    """In how many windows our policies are better and much worse than the baseline."""
    lines = []
    for trace, found in all_found.items():
        for place, row in enumerate(found[0].comparison.policies):
            if OURS in _named(row.name):
                ratios = [_ratios(one.comparison, place) for one in found]
                shorter = " / ".join(str((ratio < 1).sum()) for ratio in ratios)
                longer = " / ".join(str((ratio > MUCH).sum()) for ratio in ratios)
                worst = " / ".join(f"{ratio.max():.2f}" for ratio in ratios)
                lines.append([trace, _named(row.name), str(len(ratios[0])), shorter, longer, worst])
    return lines


def _ratios(comparison: Comparison, place: int) -> Floats:
    """Mean JCT of the policy at a place over the baseline's, window by window."""
    theirs = by_name(comparison)[BASELINE].per_seed["mean_jct_s"]
    return np.array(comparison.policies[place].per_seed["mean_jct_s"]) / np.array(theirs)


def _figures(all_found: dict[str, list[Found]]) -> dict[str, dict[str, float]]:
    return {
        f"{trace}, {speeds}": {_named(row.name): row.jct for row in one.comparison.policies}
        for trace, found in all_found.items()
        for speeds, one in zip(SPEEDS, found, strict=True)
    }


def make(way: Way) -> Result:
    """Our policies, all others, and what was played."""
    folder = shared()
    way.shelf.open()
    all_found = {
        trace.name: [
            play(trace, speeds, folder / trace.file, policies(trace, speeds), way)
            for speeds in SPEEDS
        ]
        for trace in TRACES
    }
    head = ("trace", "policy", *SPOKEN, "claimed")
    facts = [_facts(trace, all_found[trace.name]) for trace in TRACES]
    facts_head = (
        "trace", "GPUs", "which are", "first half, days", "windows of jobs", "arrivals stretched",
        "load", "GPU use %", "mean wait h",
    )  # fmt: skip
    ours = _lines(all_found, BASELINE, is_ours=True)
    more = [
        Table(
            f"The same against `{STRONGEST}`:", head,
            _lines(all_found, STRONGEST, is_ours=True), True,
        ),
        Table(
            f"Window by window: in how many the mean JCT is shorter than that of `min-min`, in how "
            f"many it is more than {MUCH:g} times as long, and the worst ratio.",
            ("trace", "policy", "windows", "shorter", "much longer", "worst ratio"),
            _spread(all_found), False,
        ),
        Table(
            "All others, against `min-min` too:", head,
            _lines(all_found, BASELINE, is_ours=False), False,
        ),
        Table(
            f"What was played. Arrivals are stretched by what makes the load of the first half "
            f"{LOAD:g}; the load is that of the second half then; use and wait are those of "
            "`min-min`. Three figures are for the three assumptions.",
            facts_head, facts, False,
        ),
    ]  # fmt: skip
    details = {
        trace: {s: one.comparison.model_dump() for s, one in zip(SPEEDS, found, strict=True)}
        for trace, found in all_found.items()
    }
    return Result(head, ours, _figures(all_found), details, more=more, note=NOTE)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status, as that of `common.run`."""
    own = parser(__doc__ or "", FOLDER)
    options = own.parse_args(arguments)
    way = Way(Shelf(options.keep, options.resume), FEW if options.quick else None)
    return run(options, FOLDER, lambda: make(way))


if __name__ == "__main__":
    sys.exit(main())
