"""Every policy on 8 V100, 4 P100 and 4 K80 with Gavel's measured jobs, against the lower bound."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import Result, Table, main, plus_minus
from versus import by_name, compared, heuristics, percent

from adlro.config.files import adjusted, find_scenario
from adlro.evaluate.comparison import PolicyRow
from adlro.evaluate.metrics import fastest_possible
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare

LOAD = 0.9
SEEDS, QUICK_SEEDS = range(20), range(2)
REFERENCE = {  # hours at load 0.9 from an independent simulator with 10 other seeds
    "fcfs": 96.0, "static-affinity": 124.0, "static-affinity-lp": 38.9, "sjf": 37.6,
    "pair-sjf": 30.2, "lp-sjf": 24.6, "allox": 23.6, "tiresias": 48.1, "gavel-max-sum": 21.7,
    "hetero-srpt": 19.6,
}  # fmt: skip
BOUND_THERE = 14.9  # hours, of the same simulator
HEAD = (
    "policy", "mean JCT h", "times the bound", "reference", "vs fcfs", "p99 h", "restarts a job",
)  # fmt: skip


BRIEF = (
    "allox", "drain-argmin", "lp-sjf", "min-min", "pair-sjf", "sjf", "static-affinity-lp", "fcfs",
    "static-affinity", "hetero-srpt (preemptive)", "gavel-max-sum (preemptive)",
    "tiresias (preemptive)", "*bound: alone on the fastest GPU*",
)  # fmt: skip


AWARE, BLIND = "gavel-max-min", "gavel-max-min-blind"
AWARE_LOADS, AWARE_JOBS, AWARE_SEEDS = (0.5, 0.7, 0.9), 300, range(5)
AWARE_HEAD = ("load", f"{AWARE}: mean JCT h", f"{BLIND}: mean JCT h", "ratio", "restarts a job")
AWARE_CAPTION = (
    f"What Gavel's LAS gains from knowing the speeds: `{BLIND}` against `{AWARE}`, the same "
    f"objective and rounds with all speeds taken as 1 ({AWARE_JOBS} jobs, seeds 0 to "
    f"{AWARE_SEEDS[-1]}, ratio of mean JCT with its 95 % interval; restarts: blind, aware):"
)


def ratio_cell(rows: dict[str, PolicyRow]) -> str:
    """Format the ratio of mean JCT, blind over aware, with its interval if there is one."""
    found = rows[BLIND].jct_versus(AWARE)
    text = f"{1 + found.mean / 100:.2f}"
    if found.ci95 is not None:
        text += f" ({1 + found.ci95[0] / 100:.2f} to {1 + found.ci95[1] / 100:.2f})"
    return text


def _ratio_line(load: float, seeds: range) -> tuple[list[str], float]:
    """A line of the table of Gavel's LAS with and without speeds, and the ratio in it."""
    scenario = adjusted(find_scenario("gavel16"), load=load, jobs=AWARE_JOBS)
    rows = by_name(compared(scenario, [AWARE, BLIND], seeds))
    aware, blind = rows[AWARE], rows[BLIND]
    restarts = (f"{row.metrics['restarts'].mean:.1f}" for row in (blind, aware))
    hours = (f"{row.jct / 3600:.1f}" for row in (aware, blind))
    line = [f"{load:g}", *hours, ratio_cell(rows), ", ".join(restarts)]
    return line, 1 + blind.jct_versus(AWARE).mean / 100


def bound_s(seeds: range) -> float:
    """Mean over seeds of a measured job's run time in seconds, alone on its fastest GPU."""
    setting = prepare(adjusted(find_scenario("gavel16"), load=LOAD))
    counted = setting.scenario.measure.window(setting.scenario.jobs)
    alone = [fastest_possible(generate(setting, s), setting.layout)[counted].mean() for s in seeds]
    return float(np.mean(alone))


def _line(row: PolicyRow, bound: float) -> list[str]:
    jct, there = row.metrics["mean_jct_s"], REFERENCE.get(row.name)
    hours = None if jct.ci95 is None else (jct.ci95[0] / 3600, jct.ci95[1] / 3600)
    versus = row.jct_versus("fcfs") if row.name != "fcfs" else None
    return [
        row.name + (" (preemptive)" if row.is_preemptive else ""),
        plus_minus(jct.mean / 3600, hours, 1),
        f"{jct.mean / bound:.2f}",
        f"{there / BOUND_THERE:.2f}" if there else "",
        percent(versus.mean, versus.ci95) if versus else "-",
        f"{row.metrics['p99_jct_s'].mean / 3600:,.0f}",
        f"{row.metrics['restarts'].mean:.1f}",
    ]


def make(quick: bool) -> Result:
    """Make the table: policies that never preempt, policies that do, the bound."""
    seeds = QUICK_SEEDS if quick else SEEDS
    scenario = adjusted(find_scenario("gavel16"), load=LOAD)
    found, bound = compared(scenario, heuristics(), seeds), bound_s(seeds)
    lines = [_line(row, bound) for rows in found.tables() for row in rows]
    last = ["*bound: alone on the fastest GPU*", f"{bound / 3600:.1f}", "1.00", "1.00"]
    lines.append(last + [""] * (len(HEAD) - len(last)))
    figures = {row.name: {"multiple of the bound": row.jct / bound} for row in found.policies}
    ratios = [_ratio_line(load, QUICK_SEEDS if quick else AWARE_SEEDS) for load in AWARE_LOADS]
    for load, (_, ratio) in zip(AWARE_LOADS, ratios, strict=True):
        figures[f"blind over aware, load {load:g}"] = {"ratio of mean JCT": ratio}
    more = [Table(AWARE_CAPTION, AWARE_HEAD, [line for line, _ in ratios], True)]
    return Result(HEAD, lines, figures, found.model_dump(), BRIEF, more)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", Path(__file__).parent, make))
