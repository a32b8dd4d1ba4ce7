"""How far policies are from a lower bound on any schedule, and that bound from the true optimum."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import Result, Table, main, plus_minus
from lower_bound.exact import least_mean_jct
from versus import LOOK_AHEAD, compared, look_ahead

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.evaluate import references
from adlro.evaluate.compare import run_one
from adlro.evaluate.comparison import Comparison, PolicyRow
from adlro.evaluate.lower_bound import relax
from adlro.evaluate.stats import Estimate
from adlro.policies import registry
from adlro.workloads.generate import generate
from adlro.workloads.setting import Setting, prepare

LOADS = (0.6, 0.8, 0.95)
SEEDS, QUICK_SEEDS = range(50), range(2)
POLICIES = ("adlro", "drain-argmin", "min-min", "hetero-srpt")
SINGLE, SINGLE_SEEDS = "paper16-single", range(20)
BOUND, FREE_BOUND = "**lower bound**", "**lower bound (preemptive)**"

SMALL_SEEDS, QUICK_SMALL = range(100), range(4)
SMALL_JOBS, SMALL_LOAD = 7, 4.0  # a load far above 1: most jobs wait
SMALL_POLICIES = ("adlro", "drain-argmin", "min-min", "fcfs")


class Small(NamedTuple):
    """A kind of small instance: GPUs of the pools V100 and RTX 6000, and gang sizes with odds."""

    name: str
    gpus: tuple[int, int]
    gangs: dict[str, list[float]]


SMALL = (
    Small("1 GPU a job, 1 + 1 GPUs", (1, 1), {"values": [1], "p": [1.0]}),
    Small("1 GPU a job, 2 + 2 GPUs", (2, 2), {"values": [1], "p": [1.0]}),
    Small("gangs of 1, 2 and 4, 4 + 2 GPUs", (4, 2), {"values": [1, 2, 4], "p": [0.5, 0.3, 0.2]}),
)


def small_scenario(kind: Small) -> Scenario:
    """Jobs of `paper16` on two nodes, each a pool, with more cores and memory than jobs can use."""
    paper = find_scenario("paper16")
    nodes = [
        {"name": name, "gpu": gpu, "gpus": gpus, "cores": 999, "memory_gb": 9999}
        for name, gpu, gpus in zip(
            ("volta", "turing"), ("V100 32GB", "RTX 6000"), kind.gpus, strict=True
        )
    ]
    types = [{**each.model_dump(), "gpus": kind.gangs} for each in paper.types]
    cluster = {"name": "small", "about": kind.name, "nodes": nodes}
    return adjusted(
        paper, cluster=cluster, types=types, affinity={}, jobs=SMALL_JOBS, load=SMALL_LOAD
    )


def against_optimum(setting: Setting, seed: int) -> dict[str, float]:
    """Bounds, look-ahead and policies on one small instance, each relative to the true optimum."""
    workload = generate(setting, seed)
    optimum = least_mean_jct(relax(setting, workload))
    found = references.play(setting, workload, seed)
    jcts = {
        "lower bound": found.lower_bound,
        "preemptive": found.lower_bound_preemptive,
        "look-ahead": found.look_ahead,
    }
    for name in SMALL_POLICIES:
        result = run_one(setting, workload, registry.load(name, setting), seed)
        jcts[name] = float((result.outcome["finish"] - workload.jobs["arrival"]).mean())
    return {name: jct / optimum for name, jct in jcts.items()}


def _small_table(seeds: range) -> tuple[Table, dict[str, dict[str, float]]]:
    """Table and figures of the small instances."""
    head = (
        "instances", "lower bound / optimum", "worst", "preemptive / optimum", "worst",
        "look-ahead / optimum", "worst", *(f"{name} / optimum" for name in SMALL_POLICIES),
    )  # fmt: skip
    lines, figures = [], {}
    for kind in SMALL:
        setting = prepare(small_scenario(kind))
        found = [against_optimum(setting, seed) for seed in seeds]
        columns = {name: np.array([each[name] for each in found]) for name in found[0]}
        means = {name: float(values.mean()) for name, values in columns.items()}
        worst = {
            "lower bound": float(columns["lower bound"].min()),
            "preemptive": float(columns["preemptive"].min()),
            "look-ahead": float(columns["look-ahead"].max()),
        }
        beside = [f"{value:.3f}" for name in worst for value in (means[name], worst[name])]
        lines.append([kind.name, *beside, *(f"{means[name]:.3f}" for name in SMALL_POLICIES)])
        figures[kind.name] = means | {f"{name}, worst": value for name, value in worst.items()}
    caption = (
        f"{len(seeds)} small instances of each kind: {SMALL_JOBS} jobs of `paper16` on two nodes, "
        "each a pool, at load 4. The optimum without preemption is exact (branch and bound); means "
        "over instances of ratios to it:"
    )
    return Table(caption, head, lines, is_brief=True), figures


def _jct(found: Estimate | None) -> str:
    return "" if found is None else plus_minus(found.mean, found.ci95, 0)


def _times(row: PolicyRow) -> str:
    times = row.times_lower_bound
    return "" if times is None else plus_minus(times.mean, times.ci95)


def _look_ahead_times(result: Comparison) -> str:
    bound = result.lower_bound
    return "" if bound is None else f"{look_ahead(result).mean / bound.mean:.2f}"


def _lines(found: Sequence[Comparison]) -> list[list[str]]:
    """Lines of bounds, look-ahead and policies: JCTs, ratios to the bound, seeds below."""
    empty = [""] * len(found)
    lines = [
        [BOUND, *(_jct(result.lower_bound) for result in found), *["1"] * len(found), *empty],
        [
            LOOK_AHEAD,
            *(_jct(look_ahead(result)) for result in found),
            *(_look_ahead_times(result) for result in found),
            *empty,
        ],
    ]
    for name in [row.name for rows in found[-1].tables() for row in rows]:
        rows = [next(row for row in result.policies if row.name == name) for result in found]
        if rows[0].is_preemptive:
            bounds = [_jct(result.lower_bound_preemptive) for result in found]
            lines.append([FREE_BOUND, *bounds, *["1"] * len(found), *empty])
        lines.append([
            f"{name} (preemptive)" if rows[0].is_preemptive else name,
            *(_jct(row.metrics["mean_jct_s"]) for row in rows),
            *(_times(row) for row in rows),
            *(f"{row.seeds_below_look_ahead} of {result.seeds}"
              for row, result in zip(rows, found, strict=True)),
        ])  # fmt: skip
    return lines


def _head(loads: Sequence[float]) -> list[str]:
    return [
        "", *(f"mean JCT s at {load:g}" for load in loads),
        *(f"times the bound at {load:g}" for load in loads),
        *(f"seeds below the look-ahead at {load:g}" for load in loads),
    ]  # fmt: skip


def _figures(found: Sequence[Comparison]) -> dict[str, dict[str, float]]:
    figures = {}
    for result in found:
        known = {row.name: row.jct for row in result.policies}
        known["look-ahead with foresight"] = look_ahead(result).mean
        if result.lower_bound is not None and result.lower_bound_preemptive is not None:
            known["lower bound"] = result.lower_bound.mean
            known["lower bound (preemptive)"] = result.lower_bound_preemptive.mean
        figures[f"{result.scenario}, load {result.load:g}"] = known
    return figures


def make(quick: bool) -> Result:
    """Make the tables: `paper16` at three loads, the same without gangs, small instances."""
    small, small_figures = _small_table(QUICK_SMALL if quick else SMALL_SEEDS)
    paper, single = (
        [
            compared(
                adjusted(find_scenario(name), load=load),
                policies,
                QUICK_SEEDS if quick else seeds,
                with_references=True,
            )
            for load in LOADS
        ]
        for name, policies, seeds in (
            ("paper16", POLICIES, SEEDS),
            (SINGLE, ("adlro", "drain-argmin", "min-min"), SINGLE_SEEDS),
        )
    )
    caption = f"`{SINGLE}`, where every job takes one GPU ({single[0].seeds} seeds):"
    return Result(
        _head(LOADS),
        _lines(paper),
        _figures([*paper, *single]) | small_figures,
        {"comparisons": [result.model_dump() for result in (*paper, *single)]},
        more=[Table(caption, _head(LOADS), _lines(single), is_brief=True), small],
    )


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", Path(__file__).parent, make))
