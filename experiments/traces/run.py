"""Policies on the second half of seven public traces, under three assumptions about speeds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import Result, Table, parser, run, shared
from comparison_cache import ComparisonCache, fingerprint
from traces.catalogue import TRACES
from traces.halves import LOAD, SPEEDS, Fitted, Trace, fitted, measured, windows
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
TRAINED = "Helios Venus"  # has policies of its own: FOLDER/trained-SPEEDS.npz
FEW = 2  # windows in a quick run
MUCH = 1.25  # "much longer": times the baseline's mean JCT
SPEED_HEADINGS = ("no speeds", "measured mix", "Gavel types")  # of SPEEDS
NOTE = (
    "These traces do not state how fast a job is on another GPU model. So each is played under "
    "three assumptions (all models alike; the three measured types of `paper16`; the 26 of "
    "`gavel16`, a job's type by a hash of its id), and a difference is *claimed* only where the "
    "three 95 % intervals are all on one side of 0. Run times are known to all policies "
    "(estimates: oracle). The shipped `adlro` has never seen a trace."
)


class TraceResult(NamedTuple):
    """The comparison on one trace under one assumption about speeds."""

    fit: Fitted
    setting: Setting  # of the second half
    comparison: Comparison


def policies(trace: Trace, speeds: str) -> list[str]:
    """Names of the policies to compare, including the one trained for the trace, if any."""
    own = [f"{FOLDER}/trained-{speeds}.npz"] if trace.name == TRAINED else []
    return [*POLICIES, *own]


class RunOptions(NamedTuple):
    """How many windows to evaluate, and where results are cached."""

    cache: ComparisonCache
    most: int | None = None  # windows at most; None = all


def evaluate(
    trace: Trace, speeds: str, file: Path, names: Sequence[str], options: RunOptions
) -> TraceResult:
    """Compare policies on the windows of the second half; they are set up on the first half only.

    Args:
        trace: the trace and its cluster.
        speeds: the assumption, one of SPEEDS.
        file: the trace file.
        names: names or files of the policies.
        options: how many windows, and the cache.
    """
    fit = fitted(trace, file, speeds)
    setting = measured(trace, file, speeds, fit)
    chosen = [registry.load(name, fit.setting) for name in names]
    seeds = range(windows(setting))[: options.most]
    label = f"{trace.name}, {speeds}"

    def make() -> Comparison:
        sys.stderr.write(f"{label}: {len(seeds)} windows of {trace.window:,} jobs\n")
        simulator.warm_up(chosen)
        return compare(setting, chosen, seeds)

    mark = fingerprint(setting.scenario, chosen, seeds)
    return TraceResult(fit, setting, options.cache.get(label, mark, make))


def claimed(intervals: Sequence[tuple[float, float] | None]) -> str:
    """Return the claim about a difference on which all assumptions agree."""
    if all(interval is not None and interval[1] < 0 for interval in intervals):
        return "shorter"
    if all(interval is not None and interval[0] > 0 for interval in intervals):
        return "longer"
    return "nothing"


def _cells(found: Sequence[TraceResult], place: int, rival: str) -> list[str]:
    """Compare the policy at an index with a rival under each assumption, with the claim."""
    rows = [one.comparison.policies[place] for one in found]
    claim = claimed([row.jct_versus(rival).ci95 for row in rows])
    return [*(against(row, rival) for row in rows), claim]


def _cluster_line(trace: Trace, found: Sequence[TraceResult]) -> list[str]:
    """Cluster, windows and load of a trace, as a line of the table."""
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


def _lines(
    all_found: dict[str, list[TraceResult]], rival: str, *, is_ours: bool
) -> list[list[str]]:
    """Lines of our policies, or of all others, against a rival."""
    return [
        [trace, _named(row.name), *_cells(found, place, rival)]
        for trace, found in all_found.items()
        for place, row in enumerate(found[0].comparison.policies)
        if (OURS in _named(row.name)) is is_ours and row.name != rival
    ]


def _spread(all_found: dict[str, list[TraceResult]]) -> list[list[str]]:
    """Number of windows in which our policies are better or much worse than the baseline."""
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
    """Ratio of mean JCTs of the policy at an index to the baseline, per window."""
    theirs = by_name(comparison)[BASELINE].per_seed["mean_jct_s"]
    return np.array(comparison.policies[place].per_seed["mean_jct_s"]) / np.array(theirs)


def _figures(all_found: dict[str, list[TraceResult]]) -> dict[str, dict[str, float]]:
    return {
        f"{trace}, {speeds}": {_named(row.name): row.jct for row in one.comparison.policies}
        for trace, found in all_found.items()
        for speeds, one in zip(SPEEDS, found, strict=True)
    }


def make(options: RunOptions) -> Result:
    """Make the tables of our policies, the other policies and the traces."""
    folder = shared()
    options.cache.open()
    all_found = {
        trace.name: [
            evaluate(trace, speeds, folder / trace.file, policies(trace, speeds), options)
            for speeds in SPEEDS
        ]
        for trace in TRACES
    }
    head = ("trace", "policy", *SPEED_HEADINGS, "claimed")
    clusters = [_cluster_line(trace, all_found[trace.name]) for trace in TRACES]
    clusters_head = (
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
            clusters_head, clusters, False,
        ),
    ]  # fmt: skip
    details = {
        trace: {s: one.comparison.model_dump() for s, one in zip(SPEEDS, found, strict=True)}
        for trace, found in all_found.items()
    }
    return Result(head, ours, _figures(all_found), details, more=more, note=NOTE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    given = parser(__doc__ or "", FOLDER).parse_args(arguments)
    size = FEW if given.quick else None
    options = RunOptions(ComparisonCache(given.keep, given.resume), size)
    return run(given, FOLDER, lambda: make(options))


if __name__ == "__main__":
    sys.exit(main())
