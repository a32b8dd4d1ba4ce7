"""Random small scenarios that exercise all rules of docs/simulator.md.

A third of them have only whole-GPU jobs on a cluster without failures; the others mix slices,
checkpoints, failures, changes of speed, co-location slowdowns and placement by fragmentation. A
third have quotas and a quarter ageing, drawn independently. Half of all use whole seconds, so that
many events are simultaneous; in these all factors are powers of two, so that ties are exact in any
simulator.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.model.state import (
    CRASH,
    DEMAND,
    DRAIN,
    FAILURE,
    GPU,
    JOB,
    NODE,
    POOL,
    QUOTA,
    READING,
    WHOLE,
    Counts,
    Floats,
    Mask,
    Records,
)
from adlro.workloads.workload import Workload
from tests.plain.events import add_drains_and_cores, draw_events
from tests.plain.quotas import Quota, draw_ageing, draw_quotas

TYPES = 3
MEMORY_CLASSES = (16_000, 24_000, 40_000, 80_000)  # MB on one GPU
SHARES = (100, 125, 250, 300, 400, 500, 500, 700, 900)
LARGE_SHARES = (400, 500, 500, 600, 900)  # at most two per GPU: three would give a factor of 3
WEIGHTS = ((1.0,), (0.5, 0.5), (0.5, 0.25, 0.25), (0.25, 0.25, 0.25, 0.25))


class Case(NamedTuple):
    """One scenario: J jobs, T types, M models, P pools, N nodes, G GPUs, E events, K kinds."""

    jobs: Records  # JOB [J]
    est: Floats  # [J, M] seconds
    seconds: Floats  # [J, M]
    allowed: Mask  # [J, P]
    pools: Records  # POOL [P]
    nodes: Records  # NODE [N]
    gpus: Records  # GPU [G]
    affinity: list[int]  # model by job type
    pools_of_type: list[set[int]]  # pools of each type, as the capacity LP might give them
    events: Records  # EVENT [E]
    colocation: Floats  # [T, T]
    demands: Records  # DEMAND [K]; none = best fit
    whole: bool  # whether times are whole seconds
    quotas: tuple[Quota, ...] = ()
    ageing: float | None = None  # seconds
    tick: float | None = None  # seconds between scheduling cycles


class Mix(NamedTuple):
    """Features of a case besides whole-GPU jobs."""

    whole: bool  # whether times are whole seconds
    slices: bool = False
    checkpoints: bool = False
    failures: bool = False
    speeds: bool = False
    neighbours: bool = False
    fgd: bool = False


def random_case(seed: int) -> Case:
    """The random scenario of this seed."""
    rng = np.random.default_rng(seed)
    whole = bool(rng.random() < 0.5)
    mix = Mix(whole)
    if rng.random() < 2 / 3:
        mix = Mix(whole, *(bool(x) for x in rng.random(6) < (0.7, 0.7, 0.7, 0.5, 0.6, 0.4)))
    models = int(rng.integers(1, 4))
    pools = _pools(rng, models, whole)
    nodes = _nodes(rng, pools)
    count = int(rng.integers(1, 41))
    jobs = np.concatenate([_job(rng, pools, nodes, mix) for _ in range(count)])
    jobs["id"] = np.arange(count)
    seconds = _seconds(rng, count, models, whole)
    _fill_times(rng, jobs, seconds, whole)
    _fill_checkpoints(rng, jobs, mix)
    _fill_one_node(np.random.default_rng((seed, 3)), jobs, pools, nodes)
    _fill_delays(np.random.default_rng((seed, 4)), jobs, whole)
    allowed = _restrict(rng, _allowed(jobs, pools, nodes))
    _fill_partitions(np.random.default_rng((seed, 6)), jobs, pools, allowed)
    return Case(
        jobs=jobs,
        est=_estimates(rng, seconds, whole),
        seconds=seconds,
        allowed=allowed,
        pools=pools,
        nodes=nodes,
        gpus=_gpus(pools, nodes),
        affinity=[int(model) for model in rng.integers(models, size=TYPES)],
        pools_of_type=[_some_pools(rng, len(pools)) for _ in range(TYPES)],
        events=_events(rng, mix, jobs, seconds, allowed, pools, nodes),
        colocation=_colocation(rng, mix),
        demands=_demands(rng, mix, pools),
        whole=whole,
        quotas=draw_quotas(np.random.default_rng((seed, 1)), jobs, allowed, pools),
        ageing=draw_ageing(np.random.default_rng((seed, 2)), seconds, whole),
        tick=_tick(np.random.default_rng((seed, 5)), whole),
    )


def crowded(case: Case, copies: int = 6) -> Case:
    """The case with several copies of all jobs, all arriving at once: a very long queue."""
    jobs = np.concatenate([case.jobs] * copies)
    jobs["arrival"], jobs["id"] = jobs["arrival"].min(), np.arange(len(jobs))
    est, seconds, allowed = (
        np.concatenate([table] * copies) for table in (case.est, case.seconds, case.allowed)
    )
    return case._replace(jobs=jobs, est=est, seconds=seconds, allowed=allowed)


def undrained(case: Case) -> Case:
    """The case with failures instead of drains: nothing runs on a node that is out of service."""
    events = case.events.copy()
    events["value"][(events["kind"] == FAILURE) & (events["value"] == DRAIN)] = CRASH
    return case._replace(events=events)


def as_workload(case: Case) -> Workload:
    """The case as a workload for the kernel, without telemetry."""
    readings = np.zeros((0, 0), READING)
    return Workload(
        *(case.jobs, case.est, case.allowed, case.seconds),
        *(case.events, case.colocation, case.demands, readings),
        *_rules(case),
        np.array([] if case.ageing is None else [case.ageing]),
        np.array([] if case.tick is None else [case.tick]),
        np.zeros(len(case.jobs), np.bool_),
    )


def typical_demands(case: Case) -> Records:
    """Typical demands [K] for a policy: those of the case, or else the demands of its jobs."""
    if len(case.demands) and case.demands["gpus"].all():
        return case.demands
    names = ["gpus", "share", "cores", "memory"]
    kinds, count = np.unique(case.jobs[names], return_counts=True)
    demands = np.zeros(len(kinds), DEMAND)
    for name in names:
        demands[name] = kinds[name]
    demands["weight"], demands["pools"] = count / len(case.jobs), 2 ** len(case.pools) - 1
    return demands


def _rules(case: Case) -> tuple[Counts, Records, Counts]:
    """Holders [J, 2], quotas [H] and caps [H, M]."""
    holders = np.full((len(case.jobs), 2), -1)
    quotas = np.zeros(len(case.quotas), QUOTA)
    caps = np.full((len(quotas), case.est.shape[1]), -1)
    total = float((case.pools["size"] * case.pools["worth"]).sum())
    for h, quota in enumerate(case.quotas):
        for column, noun in enumerate(("account", "user")):
            holders[case.jobs[noun] == getattr(quota, noun), column] = h
        quotas[h] = (np.inf if quota.share is None else quota.share * total, quota.borrow)
        for model, most in quota.caps:
            caps[h, model] = most
    return holders, quotas, caps


def _pools(rng: np.random.Generator, models: int, whole: bool) -> Records:
    pools = np.zeros(int(rng.integers(1, 5)), POOL)
    memory = rng.choice(MEMORY_CLASSES, models)
    pools["model"] = rng.integers(models, size=len(pools))
    pools["partitions"] = 1 << rng.integers(2, size=len(pools))
    pools["nodes"] = rng.integers(1, 5, size=len(pools))
    pools["node_gpus"] = rng.integers(1, 9, size=len(pools))
    if rng.random() < 0.03:  # more nodes than a block of the kernel's index holds
        pools["nodes"][0], pools["node_gpus"][0] = rng.integers(20, 41), rng.integers(1, 4)
    pools["first_node"] = np.cumsum(pools["nodes"]) - pools["nodes"]
    pools["gpus"] = pools["free"] = pools["size"] = pools["nodes"] * pools["node_gpus"]
    pools["first_gpu"] = np.cumsum(pools["gpus"]) - pools["gpus"]
    pools["gpu_memory"] = memory[pools["model"]]
    pools["span_cost"] = rng.choice([0, 1] if whole else [0, 1, 0.5, 2], len(pools))
    pools["worth"] = rng.uniform(0.5, 4, len(pools))
    return pools


def _nodes(rng: np.random.Generator, pools: Records) -> Records:
    nodes = np.zeros(pools["nodes"].sum(), NODE)
    cores_each = rng.choice([1, 2, 4, 8], len(pools))  # for each GPU of a node
    memory_each = rng.choice([1_000, 4_000, 16_000], len(pools))
    nodes["pool"] = of = np.repeat(np.arange(len(pools)), pools["nodes"])
    nodes["gpus"] = nodes["free"] = pools["node_gpus"][of]
    nodes["first_gpu"] = np.cumsum(nodes["gpus"]) - nodes["gpus"]
    nodes["cores"] = nodes["free_cores"] = nodes["gpus"] * cores_each[of]
    nodes["memory"] = nodes["free_memory"] = nodes["gpus"] * memory_each[of]
    nodes["up"] = 1
    return nodes


def _gpus(pools: Records, nodes: Records) -> Records:
    gpus = np.zeros(nodes["gpus"].sum(), GPU)
    gpus["node"] = np.repeat(np.arange(len(nodes)), nodes["gpus"])
    gpus["free"] = WHOLE
    gpus["free_memory"] = pools["gpu_memory"][nodes["pool"][gpus["node"]]]
    gpus["job"] = gpus["next"] = gpus["slice"] = -1
    return gpus


def _job(rng: np.random.Generator, pools: Records, nodes: Records, mix: Mix) -> Records:
    """A random job [1] that at least one empty pool can hold; its times are not set."""
    while True:
        job = np.zeros(1, JOB)
        pool = pools[rng.integers(len(pools))]
        largest = int(pool["gpus"]) if rng.random() < 0.5 else min(2, int(pool["gpus"]))
        job["gpus"] = rng.integers(1, largest + 1)
        job["share"] = WHOLE
        job["gpu_memory"] = rng.choice([0, 8_000, *MEMORY_CLASSES])
        if mix.slices and rng.random() < 0.6:
            shares = LARGE_SHARES if mix.whole and mix.neighbours else SHARES
            job["gpus"], job["share"] = 1, rng.choice(shares)
            job["gpu_memory"] = pool["gpu_memory"] * rng.choice([0, 0, 0.1, 0.25, 0.5, 1])
        job["cores"] = rng.choice([0, 1, 2, 3, 6])
        job["memory"] = rng.choice([0, 500, 1_000, 3_000, 7_000])
        job["communication"] = rng.choice([0, 1] if mix.whole else [0, 0.25, 0.5, 1])
        job["type"] = rng.integers(TYPES)
        job["priority"] = rng.random()
        job["user"] = rng.integers(5)
        job["account"] = rng.integers(2)
        if _allowed(job, pools, nodes).any():
            return job


def _allowed(jobs: Records, pools: Records, nodes: Records) -> Mask:
    """Pairs [J, P] where the GPU memory suffices and the empty pool holds the whole gang."""
    allowed = np.zeros((len(jobs), len(pools)), np.bool_)
    for g, pool in enumerate(pools):
        of_pool = nodes[nodes["pool"] == g]
        room = _room(jobs, of_pool[0]) if len(of_pool) else np.zeros(len(jobs))  # all are identical
        room = room * np.where(jobs["one_node"], 1, len(of_pool))
        allowed[:, g] = (jobs["gpu_memory"] <= pool["gpu_memory"]) & (room >= jobs["gpus"])
    return allowed


def _room(jobs: Records, node: Records) -> Records:
    """Number of GPUs [J] of each job that the empty node can hold."""
    room = np.full(len(jobs), node["gpus"])
    for name in ("cores", "memory"):
        demand = jobs[name]
        room = np.where(demand > 0, np.minimum(room, node[name] // np.maximum(demand, 1)), room)
    return room


def _restrict(rng: np.random.Generator, allowed: Mask) -> Mask:
    """The mask with some pools forbidden, but never all pools of a job."""
    if rng.random() < 0.5:
        return allowed
    fewer = allowed & (rng.random(allowed.shape) < 0.7)
    keep = ~fewer.any(axis=1, keepdims=True)
    return fewer | (allowed & keep)


def _seconds(rng: np.random.Generator, jobs: int, models: int, whole: bool) -> Floats:
    if whole:
        powers = rng.integers(0, int(rng.choice([2, 4, 6])), size=(jobs, models))
        return np.exp2(powers.astype(np.float64))
    base = rng.lognormal(3, 1, size=(jobs, 1))
    speed = rng.uniform(0.5, 4, size=models)
    return base / speed * rng.uniform(0.8, 1.25, size=(jobs, models))


def _fill_times(rng: np.random.Generator, jobs: Records, seconds: Floats, whole: bool) -> None:
    """Set arrivals (from light load to all at once) and limits (of none, some or all jobs)."""
    j = len(jobs)
    span = seconds.mean() * j * rng.choice([0, 0.05, 0.15, 0.5])
    arrival = np.sort(rng.uniform(0, span, j)) + rng.choice([0, 7, 1_000])
    limited = rng.random(j) < rng.choice([0, 0.3, 1])
    limit = seconds.mean(axis=1) * rng.uniform(0.3, 2.5, j)
    if whole:
        arrival, limit = np.floor(arrival), np.ceil(limit)
    jobs["arrival"] = arrival
    jobs["limit"] = np.where(limited, limit, np.inf)
    jobs["requested"] = seconds.mean(axis=1)


def _fill_checkpoints(rng: np.random.Generator, jobs: Records, mix: Mix) -> None:
    j = len(jobs)
    jobs["checkpoint"], jobs["interval"] = rng.choice([-1, 5], j), np.inf
    if not mix.checkpoints:
        return
    jobs["checkpoint"] = rng.choice([-1, 0, 1, 2, 5], j, p=[0.2, 0.1, 0.3, 0.3, 0.1])
    jobs["interval"] = rng.choice([np.inf, 1, 2, 3, 5, 8, 20], j)
    jobs["least_run"] = rng.choice([0, 1, 3, 10], j, p=[0.4, 0.2, 0.2, 0.2])
    if not mix.whole:
        jobs["checkpoint"] *= rng.uniform(0.1, 2, j)
        jobs["interval"] *= rng.uniform(0.5, 3, j)
        jobs["least_run"] *= rng.uniform(0.1, 2, j)


def _fill_one_node(rng: np.random.Generator, jobs: Records, pools: Records, nodes: Records) -> None:
    """Let none, some or all gangs need one node, as far as a node can hold them."""
    jobs["one_node"] = rng.random(len(jobs)) < rng.choice([0, 0.5, 1])
    jobs["one_node"] &= _allowed(jobs, pools, nodes).any(axis=1)


def _fill_partitions(
    rng: np.random.Generator, jobs: Records, pools: Records, allowed: Mask
) -> None:
    """Let some pools be in both partitions, and each job in those of the pools it may use."""
    pools["partitions"] |= np.where(rng.random(len(pools)) < 0.2, 3, 0)
    jobs["partitions"] = [np.bitwise_or.reduce(pools["partitions"][may]) for may in allowed]


def _fill_delays(rng: np.random.Generator, jobs: Records, whole: bool) -> None:
    if rng.random() < 0.25:
        jobs["start_delay"] = rng.choice([1, 2]) if whole else rng.uniform(0.1, 3)


def _tick(rng: np.random.Generator, whole: bool) -> float | None:
    """Seconds between scheduling cycles in a quarter of all cases."""
    if rng.random() < 0.75:
        return None
    return float(rng.choice([2, 4])) if whole else float(rng.uniform(0.5, 5))


def _estimates(rng: np.random.Generator, seconds: Floats, whole: bool) -> Floats:
    """Estimates [J, M]: exact, noisy, or so short that most jobs are overdue."""
    mode = rng.integers(3)
    if mode == 0:
        return seconds.copy()
    if whole:
        low, high = ((-2, 2), (-6, 0))[mode - 1]
        return seconds * 2.0 ** rng.integers(low, high, seconds.shape)
    shortest, longest = ((0.3, 3.0), (0.01, 0.6))[mode - 1]
    return seconds * rng.uniform(shortest, longest, seconds.shape)


def _events(
    rng: np.random.Generator,
    mix: Mix,
    jobs: Records,
    seconds: Floats,
    allowed: Mask,
    pools: Records,
    nodes: Records,
) -> Records:
    """Random failures, repairs and speed changes during the run, and some before."""

    def may_stay_down(down: Mask) -> bool:
        return bool((_allowed(jobs, pools, nodes[~down]) >= allowed).all())

    arrivals = jobs["arrival"]
    load = (seconds.mean(axis=1) * jobs["gpus"] * jobs["share"] / WHOLE).sum() / pools["gpus"].sum()
    until = arrivals[-1] + 2 * load + seconds.mean()
    events = draw_events(
        rng,
        arrivals,
        float(until),
        (len(nodes) if mix.failures else 0, int(pools["gpus"].sum()) if mix.speeds else 0),
        (TYPES, seconds.shape[1]),
        may_stay_down,
        mix.whole,
    )
    return add_drains_and_cores(events, nodes, arrivals, float(until), mix.whole)


def _colocation(rng: np.random.Generator, mix: Mix) -> Floats:
    """Co-location slowdowns [T, T] of each type by each other."""
    if not mix.neighbours:
        return np.ones((TYPES, TYPES))
    if mix.whole:
        return rng.choice([1.0, 2.0, 4.0], (TYPES, TYPES), p=[0.4, 0.5, 0.1])
    return rng.uniform(1, 2, (TYPES, TYPES))


def _demands(rng: np.random.Generator, mix: Mix, pools: Records) -> Records:
    """Kinds of demand [K] for placement by fragmentation; [0] best fit, one of 0 GPUs in order."""
    if not mix.fgd:
        return np.zeros(len(pools) % 2, DEMAND)  # best fit, or nodes in order
    weights = WEIGHTS[rng.integers(len(WEIGHTS))]
    demands = np.zeros(len(weights), DEMAND)
    demands["weight"] = weights if mix.whole else rng.dirichlet(np.ones(len(weights)))
    demands["pools"] = rng.integers(1, 2 ** len(pools), len(weights))
    sliced = rng.random(len(weights)) < 0.5
    demands["gpus"] = np.where(sliced, 1, rng.integers(1, pools["node_gpus"].max() + 2))
    demands["share"] = np.where(sliced, rng.choice(SHARES, len(weights)), WHOLE)
    demands["cores"] = rng.choice([0, 1, 2, 3], len(weights))
    demands["memory"] = rng.choice([0, 500, 1_000, 3_000], len(weights))
    return demands


def _some_pools(rng: np.random.Generator, pools: int) -> set[int]:
    """A random non-empty set of pools."""
    count = int(rng.integers(1, pools + 1))
    return {int(pool) for pool in rng.choice(pools, count, replace=False)}
