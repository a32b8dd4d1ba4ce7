"""Which quantile of the predicted run time gives the shortest completion times."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import Result, Table, parser, run, shared
from traces.catalogue import TRACES
from traces.cell import Cell, Way, play
from traces.halves import Trace
from traces.tables import PARTS, of_part
from versus import percent

from adlro.evaluate.pooled import pool
from adlro.model.state import Floats
from adlro.workloads.jitter import Jitter

FOLDER = Path(__file__).parent
POLICIES = ("min-min", "drain-argmin", "adlro")
MEDIAN = 0.5
QUANTILES = (0.2, 0.35, MEDIAN, 0.65, 0.8, 0.9)
SPEEDS = "measured-mix"
REPEATS = 4
PLAYED = ("openb", "ITP 02", "ITP 07", "ThetaGPU")  # the larger traces take an hour
QUICK = ("openb", "ThetaGPU")  # traces of a quick run
NOTE = (
    "Mean JCT with a quantile of `memory`'s prediction as the estimate, against its median: the "
    "geometric mean over windows, with Student's t interval of the logs. "
    f"Each window is played {REPEATS} times with 1 % jitter, with speeds by `{SPEEDS}`. The best "
    "quantile is the one with the smallest figure on the windows for tuning; the last column is "
    "what it gives on the windows for claims, which took no part in the choice."
)

Cells = Mapping[float, Cell]  # quantile -> cell


def estimates(quantile: float) -> str:
    """Return the name of the estimates in a scenario."""
    return "memory" if quantile == MEDIAN else f"memory:{quantile:g}"


def _logs(cells: Cells, policy: str, quantile: float, part: str) -> Floats:
    """Return the log ratios of a policy with a quantile to itself with the median."""
    own, usual = (np.log(cells[q].policies[policy].jct_s) for q in (quantile, MEDIAN))
    return of_part(own - usual, part)


def _pooled(found: Sequence[Cells], policy: str, quantile: float, part: str) -> str:
    if quantile == MEDIAN:
        return "-"
    one = pool(np.concatenate([_logs(cells, policy, quantile, part) for cells in found]))
    return percent(one.mean_pct, one.ci95)


def best_quantile(found: Sequence[Cells], policy: str) -> float:
    """Return the quantile with the shortest completion times on the windows for tuning."""
    means = [
        np.concatenate([_logs(cells, policy, q, "tuning") for cells in found]).mean()
        for q in QUANTILES
    ]
    return QUANTILES[int(np.argmin(means))]


def _lines(found: Mapping[str, Cells]) -> list[list[str]]:
    lines = []
    for policy in POLICIES:
        group = list(found.values())
        best = best_quantile(group, policy)
        for part in PARTS:
            figures = [_pooled(group, policy, q, part) for q in QUANTILES]
            chosen = _pooled(group, policy, best, part) if part == "claims" else ""
            lines.append([policy, part, *figures, f"{best:g}", chosen])
    return lines


def _by_trace(found: Mapping[str, Cells]) -> list[list[str]]:
    return [
        [policy, trace, *(_pooled([cells], policy, q, "claims") for q in QUANTILES)]
        for policy in POLICIES
        for trace, cells in found.items()
    ]


def make(traces: Sequence[Trace], way: Way) -> Result:
    """Play all quantiles on all traces and make the tables."""
    folder = shared()
    way.folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Cells] = {
        trace.name: {
            q: play(trace, folder / trace.file, (SPEEDS, estimates(q)), POLICIES, way)
            for q in QUANTILES
        }
        for trace in traces
    }
    heads = [f"{q:g}" for q in QUANTILES]
    figures = {
        f"{trace}, {q:g}": {p: float(np.mean(cell.policies[p].jct_s)) for p in POLICIES}
        for trace, cells in found.items()
        for q, cell in cells.items()
    }
    more = [
        Table("On the windows for claims of each trace:", ("policy", "trace", *heads),
              _by_trace(found), False)
    ]  # fmt: skip
    head = ("policy", "part", *heads, "best on tuning", "best, on claims")
    return Result(head, _lines(found), figures, more=more, note=NOTE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    given = parser(__doc__ or "", FOLDER).parse_args(arguments)
    names = QUICK if given.quick else PLAYED
    traces = [trace for trace in TRACES if trace.name in names]
    way = Way(given.keep, given.resume, Jitter(2 if given.quick else REPEATS))
    return run(given, FOLDER, lambda: make(traces, way))


if __name__ == "__main__":
    sys.exit(main())
