"""Every policy on 8 V100, 4 P100 and 4 K80 with Gavel's measured jobs, against the lower bound."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import Result, main, plus_minus
from versus import compared, percent

from adlro.config import adjusted, find_scenario
from adlro.evaluate.comparison import Row
from adlro.evaluate.metrics import fastest_possible
from adlro.policies import registry
from adlro.workloads.synthetic import generate, prepare

LOADS = (0.7, 0.9)
SEEDS, QUICK_SEEDS = range(20), range(2)
REFERENCE = {  # POLICIES.md section 3, hours at load 0.9 with 10 other seeds; the bound was 14.9
    "fcfs": 96.0, "static-affinity": 124.0, "static-affinity-lp": 38.9, "sjf": 37.6,
    "pair-sjf": 30.2, "lp-sjf": 24.6, "allox": 23.6, "tiresias": 48.1, "gavel-max-sum": 21.7,
    "hetero-srpt": 19.6,
}  # fmt: skip
BOUND_THERE = 14.9
HEAD = (
    "policy", "JCT h at 0.7", "JCT h at 0.9", "times the bound at 0.9", "reference",
    "vs fcfs at 0.9", "p99 h at 0.9", "restarts a job",
)  # fmt: skip


BRIEF = (
    "allox", "drain-argmin", "lp-sjf", "min-min", "pair-sjf", "sjf", "static-affinity-lp", "fcfs",
    "static-affinity", "hetero-srpt (preemptive)", "gavel-max-sum (preemptive)",
    "tiresias (preemptive)", "*bound: alone on the fastest GPU*",
)  # fmt: skip


def bound_s(load: float, seeds: range) -> float:
    """Mean over seeds of what a measured job takes alone on its fastest GPU."""
    setting = prepare(adjusted(find_scenario("gavel16"), load=load))
    counted = setting.scenario.measure.window(setting.scenario.jobs)
    alone = [fastest_possible(generate(setting, s), setting.layout)[counted].mean() for s in seeds]
    return float(np.mean(alone))


def _line(low: Row, high: Row, bound: float) -> list[str]:
    jct = high.metrics["mean_jct_s"]
    half = () if jct.ci95 is None else ((jct.ci95[0] / 3600, jct.ci95[1] / 3600),)
    there = REFERENCE.get(high.name)
    versus = high.jct_versus("fcfs") if high.name != "fcfs" else None
    return [
        high.name + (" (preemptive)" if high.is_preemptive else ""),
        f"{low.jct / 3600:.1f}",
        plus_minus(jct.mean / 3600, half[0] if half else None, 1),
        f"{jct.mean / bound:.2f}",
        f"{there / BOUND_THERE:.2f}" if there else "",
        percent(versus.mean, versus.ci95) if versus else "-",
        f"{high.metrics['p99_jct_s'].mean / 3600:,.0f}",
        f"{high.metrics['restarts'].mean:.1f}",
    ]


def make(quick: bool) -> Result:
    """The table at load 0.9, with the means at 0.7."""
    seeds = QUICK_SEEDS if quick else SEEDS
    scenario, names = find_scenario("gavel16"), registry.names()
    low, high = (compared(adjusted(scenario, load=load), names, seeds) for load in LOADS)
    bound = bound_s(LOADS[-1], seeds)
    at_low = {row.name: row for row in low.policies}
    lines = [_line(at_low[row.name], row, bound) for rows in high.tables() for row in rows]
    lines.append(["*bound: alone on the fastest GPU*", "", f"{bound / 3600:.1f}", "1.00", "1.00"])
    lines[-1] += [""] * (len(HEAD) - len(lines[-1]))
    figures = {row.name: {"multiple of the bound": row.jct / bound} for row in high.policies}
    details = [low.model_dump(), high.model_dump()]
    return Result(HEAD, lines, figures, details, BRIEF)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", Path(__file__).parent, make))
