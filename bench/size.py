"""Cost of a decision on clusters of 100, 1,000 and 10,000 GPUs under the same load."""

from __future__ import annotations

import math
from typing import NamedTuple

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.model.cluster import Cluster
from adlro.model.job import Choice, JobType
from adlro.policies.registry import Policy
from adlro.sim import simulator
from bench.clock import best_times
from bench.figure import Bar, Figure, figure, ratio
from bench.fixture import Fixture, episodes, fixture_of

SIZES = (100, 1_000, 10_000)  # approximate number of GPUs
POLICIES = ("fcfs", "sjf", "pair-sjf", "easy-backfill", "min-min")
JOBS_PER_GPU = 12
_LARGEST_GANG = 16  # what the smallest cluster can hold; the same for all sizes


class TimeBudget(NamedTuple):
    """How long to measure."""

    repeats: int  # the best counts
    longest_s: float  # after a run of this many CPU seconds, no longer run follows


class DecisionCost(NamedTuple):
    """Cost of a policy's decisions on one cluster."""

    gpus: int
    jobs: int
    decision_us: float  # CPU time
    waiting: float  # mean number of waiting jobs from the first to the last arrival


def _without_large_gangs(choice: Choice) -> Choice:
    """Drop gang sizes that a small cluster cannot hold; the largest left takes their weight."""
    small = [k for k, value in enumerate(choice.values) if value <= _LARGEST_GANG]
    weights = [choice.p[k] for k in small]
    weights[-1] += sum(choice.p) - sum(weights)
    return Choice(values=tuple(choice.values[k] for k in small), p=tuple(weights))


def _for_all(job_type: JobType) -> JobType:
    return job_type.model_copy(update={"gpus": _without_large_gangs(job_type.gpus)})


def sized(gpus: int, jobs: int) -> Scenario:
    """Return scenario datacenter scaled to about `gpus` GPUs, with the same mix of pools."""
    scenario = find_scenario("datacenter")
    groups = scenario.cluster.nodes
    whole = sum(group.count * group.gpus for group in groups)
    counts = [max(1, round(group.count * gpus / whole)) for group in groups]
    nodes = tuple(
        group.model_copy(update={"count": count})
        for group, count in zip(groups, counts, strict=True)
    )
    types = tuple(_for_all(job_type) for job_type in scenario.types)
    cluster = Cluster(name=f"datacenter-{gpus}", nodes=nodes)
    return adjusted(scenario, cluster=cluster.model_dump(), types=_dumped(types), jobs=jobs)


def _dumped(types: tuple[JobType, ...]) -> list[dict[str, object]]:
    return [job_type.model_dump() for job_type in types]


def _first_jobs(fixture: Fixture, jobs: int) -> Fixture:
    """Return the fixture with only the first jobs of its one workload."""
    workload = fixture.workloads[0]
    rows = {key: getattr(workload, key)[:jobs] for key in ("jobs", "est", "allowed", "seconds")}
    return fixture._replace(workloads=[workload._replace(**rows)])


def _seconds(fixture: Fixture, policy: Policy, budget: TimeBudget) -> tuple[Fixture, float]:
    """Return what was run, only the first jobs for a slow policy, and its CPU seconds."""
    all_jobs = len(fixture.workloads[0].jobs)
    for halvings in range(6, -1, -1):
        part = _first_jobs(fixture, max(all_jobs >> halvings, 1))
        seconds = best_times([episodes(part, policy)], 1)[0]
        if seconds > budget.longest_s:
            return part, seconds
    return fixture, min(seconds, best_times([episodes(fixture, policy)], budget.repeats)[0])


def policy_cost(fixture: Fixture, name: str, budget: TimeBudget) -> DecisionCost:
    """Measure a policy on a cluster."""
    policy = fixture.policy(name)
    part, seconds = _seconds(fixture, policy, budget)
    jobs = part.workloads[0].jobs
    result = simulator.run(fixture.empty, part.workloads[0], policy)
    first, last = float(jobs["arrival"][0]), float(jobs["arrival"][-1])
    waited = float((result.outcome["start"].clip(max=last) - jobs["arrival"]).sum())
    decision_us = seconds / int(result.totals["decisions"]) * 1e6
    return DecisionCost(
        len(fixture.empty.gpus), len(jobs), decision_us, waited / max(last - first, 1.0)
    )


def growth(name: str, sizes: tuple[int, ...], budget: TimeBudget) -> list[Figure]:
    """Figures of one policy: its cost at each size, and the growth from the first to the last."""
    costs = [
        policy_cost(fixture_of(sized(size, JOBS_PER_GPU * size)), name, budget) for size in sizes
    ]
    figures = []
    for cost in costs:
        what = f"{name}, {cost.gpus:,} GPUs, {cost.jobs:,} jobs"
        figures.append(figure(f"{what}: a decision", cost.decision_us, "µs"))
        figures.append(figure(f"{what}: waiting", cost.waiting, "jobs, mean"))
    return [*figures, *_growth_figures(name, costs[0], costs[-1], sizes)]


def _growth_figures(
    name: str, first: DecisionCost, last: DecisionCost, sizes: tuple[int, ...]
) -> list[Figure]:
    """Growth and its exponent.

    If jobs were left out, the true growth is larger, so the bar can only be missed, not met.
    """
    times = sizes[-1] / sizes[0]
    value = last.decision_us / first.decision_us
    all_played = last.jobs == JOBS_PER_GPU * sizes[-1]
    judged = all_played or value >= times
    what = f"{name}, {sizes[-1]:,} GPUs / {sizes[0]:,}" + ("" if all_played else ", at least")
    bars = (Bar("<", times), Bar("<", 1)) if judged else (None, None)
    exponent = math.log(value) / math.log(times)
    return [
        ratio(what, last.decision_us, first.decision_us, "x, of µs", bars[0]),
        figure(f"{what}: exponent", exponent, "1 = linear", bars[1]),
    ]
