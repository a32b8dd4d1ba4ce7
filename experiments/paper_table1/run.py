"""The paper's comparison with strong baselines: its 16 GPUs, three loads, every policy."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from common import Result, main, plus_minus
from versus import (
    LOOK_AHEAD,
    against,
    by_name,
    compared,
    heuristics,
    look_ahead,
    look_ahead_against,
)

from adlro.config.files import adjusted, find_scenario
from adlro.evaluate.comparison import BASELINE, Comparison, PolicyRow

LOADS = (0.6, 0.8, 0.95)
SEEDS, QUICK_SEEDS = range(50), range(3)
HEAD = (
    "policy", *(f"mean JCT s at {load:g}" for load in LOADS),
    *(f"vs {BASELINE} at {load:g}" for load in LOADS), f"p99 s at {LOADS[-1]:g}",
    f"gap closed at {LOADS[-1]:g}",
)  # fmt: skip


BRIEF = (
    "drain-argmin", "min-min", "weighted-min-min", "allox", "pair-sjf", "easy-backfill",
    "multifactor", "static-affinity", "fcfs", LOOK_AHEAD, "sia (preemptive)",
    "gavel-max-sum (preemptive)", "hetero-srpt (preemptive)", "tiresias (preemptive)",
)  # fmt: skip


def _line(rows: list[PolicyRow]) -> list[str]:
    """One policy at all loads."""
    gap = rows[-1].gap_closed
    kind = " (preemptive)" if rows[0].is_preemptive else ""
    jct = [row.metrics["mean_jct_s"] for row in rows]
    return [
        rows[0].name + kind,
        *(plus_minus(found.mean, found.ci95, 0) for found in jct),
        *(against(row, BASELINE) for row in rows),
        f"{rows[-1].metrics['p99_jct_s'].mean:,.0f}",
        "" if gap is None else f"{gap.mean:,.0f} %",
    ]


def _reference(found: list[Comparison]) -> list[str]:
    """The line of the look-ahead with foresight."""
    jct = [look_ahead(result) for result in found]
    return [
        LOOK_AHEAD,
        *(plus_minus(h.mean, h.ci95, 0) for h in jct),
        *(look_ahead_against(result, BASELINE) for result in found),
        "",
        "100 %",
    ]


def make(quick: bool) -> Result:
    """Make the table: policies that never preempt, the reference, policies that do."""
    seeds = QUICK_SEEDS if quick else SEEDS
    scenario = find_scenario("paper16")
    found = [
        compared(adjusted(scenario, load=load), heuristics(), seeds, with_references=True)
        for load in LOADS
    ]
    at_load = [by_name(result) for result in found]
    lines, figures = [], {}
    for rows in found[-1].tables():
        lines += [_line([rows_[row.name] for rows_ in at_load]) for row in rows]
        if not rows[0].is_preemptive:
            lines.append(_reference(found))
        for row in rows:
            figures[row.name] = {
                f"mean_jct_s at {load:g}": rows_[row.name].jct
                for load, rows_ in zip(LOADS, at_load, strict=True)
            }
    figures["look-ahead with foresight"] = {
        f"mean_jct_s at {load:g}": look_ahead(result).mean
        for load, result in zip(LOADS, found, strict=True)
    }
    return Result(HEAD, lines, figures, [result.model_dump() for result in found], BRIEF)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", Path(__file__).parent, make))
