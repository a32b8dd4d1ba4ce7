"""What a decision costs on clusters of 100, 1,000 and 10,000 GPUs under the same load."""

from __future__ import annotations

import math
from typing import NamedTuple

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.model.cluster import Cluster
from adlro.model.job import Choice, JobType
from adlro.policies.registry import Policy
from adlro.sim import simulator
from bench.clock import best
from bench.figure import Bar, Figure, figure, ratio
from bench.ground import Ground, episodes, ground_of

SIZES = (100, 1_000, 10_000)  # GPUs, roughly
POLICIES = ("fcfs", "sjf", "pair-sjf", "easy-backfill", "min-min")
JOBS_A_GPU = 12
_LARGEST_GANG = 16  # what the smallest cluster can hold; the same in all of them


class Patience(NamedTuple):
    """How long is measured."""

    repeats: int  # of which the best counts
    longest_s: float  # a run of so many CPU seconds is not followed by a longer one


class Cost(NamedTuple):
    """What a policy took on a cluster."""

    gpus: int
    jobs: int
    decision_us: float  # CPU
    waiting: float  # jobs on average, from the first arrival to the last


def _smaller(choice: Choice) -> Choice:
    """Gang sizes without those that a small cluster cannot hold; the largest left stands in."""
    kept = [k for k, value in enumerate(choice.values) if value <= _LARGEST_GANG]
    odds = [choice.p[k] for k in kept]
    odds[-1] += sum(choice.p) - sum(odds)
    return Choice(values=tuple(choice.values[k] for k in kept), p=tuple(odds))


def _for_all(job_type: JobType) -> JobType:
    return job_type.model_copy(update={"gpus": _smaller(job_type.gpus)})


def sized(gpus: int, jobs: int) -> Scenario:
    """Scenario datacenter on about so many GPUs: every pool, with its share of the nodes."""
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


def _first_jobs(on: Ground, jobs: int) -> Ground:
    """The same ground with the first jobs of its one workload only."""
    workload = on.workloads[0]
    rows = {key: getattr(workload, key)[:jobs] for key in ("jobs", "est", "allowed", "seconds")}
    return on._replace(workloads=[workload._replace(**rows)])


def _seconds(on: Ground, policy: Policy, patience: Patience) -> tuple[Ground, float]:
    """CPU seconds of a run, and what was run: of a slow policy only the first jobs."""
    all_jobs = len(on.workloads[0].jobs)
    for halvings in range(6, -1, -1):
        part = _first_jobs(on, max(all_jobs >> halvings, 1))
        seconds = best([episodes(part, policy)], 1)[0]
        if seconds > patience.longest_s:
            return part, seconds
    return on, min(seconds, best([episodes(on, policy)], patience.repeats)[0])


def policy_cost(on: Ground, name: str, patience: Patience) -> Cost:
    """What a policy takes on a cluster."""
    policy = on.policy(name)
    part, seconds = _seconds(on, policy, patience)
    jobs = part.workloads[0].jobs
    result = simulator.run(on.empty, part.workloads[0], policy)
    first, last = float(jobs["arrival"][0]), float(jobs["arrival"][-1])
    waited = float((result.outcome["start"].clip(max=last) - jobs["arrival"]).sum())
    decision_us = seconds / int(result.totals["decisions"]) * 1e6
    return Cost(len(on.empty.gpus), len(jobs), decision_us, waited / max(last - first, 1.0))


def growth(name: str, sizes: tuple[int, ...], patience: Patience) -> list[Figure]:
    """The rows of one policy: each size, and how much a decision grows from first to last."""
    costs = [
        policy_cost(ground_of(sized(size, JOBS_A_GPU * size)), name, patience) for size in sizes
    ]
    figures = []
    for cost in costs:
        what = f"{name}, {cost.gpus:,} GPUs, {cost.jobs:,} jobs"
        figures.append(figure(f"{what}: a decision", cost.decision_us, "µs"))
        figures.append(figure(f"{what}: waiting", cost.waiting, "jobs, mean"))
    return [*figures, *_grown(name, costs[0], costs[-1], sizes)]


def _grown(name: str, first: Cost, last: Cost, sizes: tuple[int, ...]) -> list[Figure]:
    """Growth and exponent; with jobs left out the true growth is larger: it can only miss."""
    times = sizes[-1] / sizes[0]
    value = last.decision_us / first.decision_us
    all_played = last.jobs == JOBS_A_GPU * sizes[-1]
    judged = all_played or value >= times
    what = f"{name}, {sizes[-1]:,} GPUs / {sizes[0]:,}" + ("" if all_played else ", at least")
    bars = (Bar("<", times), Bar("<", 1)) if judged else (None, None)
    exponent = math.log(value) / math.log(times)
    return [
        ratio(what, last.decision_us, first.decision_us, "x, of µs", bars[0]),
        figure(f"{what}: exponent", exponent, "1 = linear", bars[1]),
    ]
