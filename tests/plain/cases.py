"""Random small scenarios that put the rules under strain.

Half of them count in whole seconds, so that many events are simultaneous; the others in real ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.model.state import GPU, JOB, NODE, POOL, WHOLE, Floats, Mask, Records

TYPES = 3
MEMORY_CLASSES = (16_000, 24_000, 40_000, 80_000)  # MB on one GPU


class Case(NamedTuple):
    """One scenario: J jobs, M models, P pools, N nodes, G GPUs."""

    jobs: Records  # JOB [J]
    est: Floats  # [J, M] seconds
    seconds: Floats  # [J, M]
    allowed: Mask  # [J, P]
    pools: Records  # POOL [P]
    nodes: Records  # NODE [N]
    gpus: Records  # GPU [G]
    affinity: list[int]  # model by job type
    pools_of_type: list[set[int]]  # what the capacity LP could give each type


def random_case(seed: int) -> Case:
    """The scenario with this number."""
    rng = np.random.default_rng(seed)
    whole = bool(rng.random() < 0.5)
    models = int(rng.integers(1, 4))
    pools = _pools(rng, models)
    nodes = _nodes(rng, pools)
    gpus = _gpus(nodes)
    count = int(rng.integers(1, 41))
    jobs = np.concatenate([_job(rng, pools, nodes) for _ in range(count)])
    seconds = _seconds(rng, count, models, whole)
    _fill_times(rng, jobs, seconds, whole)
    return Case(
        jobs=jobs,
        est=_estimates(rng, seconds, whole),
        seconds=seconds,
        allowed=_restrict(rng, _allowed(jobs, pools, nodes)),
        pools=pools,
        nodes=nodes,
        gpus=gpus,
        affinity=[int(model) for model in rng.integers(models, size=TYPES)],
        pools_of_type=[_some_pools(rng, len(pools)) for _ in range(TYPES)],
    )


def _pools(rng: np.random.Generator, models: int) -> Records:
    pools = np.zeros(int(rng.integers(1, 5)), POOL)
    memory = rng.choice(MEMORY_CLASSES, models)
    pools["model"] = rng.integers(models, size=len(pools))
    pools["partition"] = rng.integers(2, size=len(pools))
    pools["nodes"] = rng.integers(1, 5, size=len(pools))
    pools["first_node"] = np.cumsum(pools["nodes"]) - pools["nodes"]
    pools["node_gpus"] = rng.integers(1, 9, size=len(pools))
    pools["gpus"] = pools["free"] = pools["size"] = pools["nodes"] * pools["node_gpus"]
    pools["first_gpu"] = np.cumsum(pools["gpus"]) - pools["gpus"]
    pools["gpu_memory"] = memory[pools["model"]]
    pools["span_cost"] = rng.choice([0, 1, 0.5, 2], len(pools))
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


def _gpus(nodes: Records) -> Records:
    gpus = np.zeros(nodes["gpus"].sum(), GPU)
    gpus["node"] = np.repeat(np.arange(len(nodes)), nodes["gpus"])
    gpus["free"] = WHOLE
    gpus["job"] = gpus["next"] = -1
    gpus["speed"] = 1
    return gpus


def _job(rng: np.random.Generator, pools: Records, nodes: Records) -> Records:
    """A job [1] without its times that at least one empty pool can hold."""
    while True:
        job = np.zeros(1, JOB)
        pool = pools[rng.integers(len(pools))]
        largest = int(pool["gpus"]) if rng.random() < 0.5 else min(2, int(pool["gpus"]))
        job["gpus"] = rng.integers(1, largest + 1)
        job["cores"] = rng.choice([0, 1, 2, 3, 6])
        job["memory"] = rng.choice([0, 500, 1_000, 3_000, 7_000])
        job["gpu_memory"] = rng.choice([0, 8_000, *MEMORY_CLASSES])
        job["communication"] = rng.choice([0, 0.25, 0.5, 1])
        job["type"] = rng.integers(TYPES)
        job["share"] = WHOLE
        job["priority"] = rng.random()
        job["checkpoint"] = rng.choice([-1, 5])
        job["user"] = rng.integers(5)
        job["account"] = rng.integers(2)
        if _allowed(job, pools, nodes).any():
            return job


def _allowed(jobs: Records, pools: Records, nodes: Records) -> Mask:
    """Where [J, P] the model's memory suffices and the empty pool holds the whole gang."""
    allowed = np.zeros((len(jobs), len(pools)), np.bool_)
    for j, job in enumerate(jobs):
        for g, pool in enumerate(pools):
            room = sum(_room(job, node) for node in nodes[nodes["pool"] == g])
            allowed[j, g] = job["gpu_memory"] <= pool["gpu_memory"] and room >= job["gpus"]
    return allowed


def _room(job: Records, node: Records) -> int:
    room = int(node["gpus"])
    if job["cores"] > 0:
        room = min(room, int(node["cores"] // job["cores"]))
    if job["memory"] > 0:
        room = min(room, int(node["memory"] // job["memory"]))
    return room


def _restrict(rng: np.random.Generator, allowed: Mask) -> Mask:
    """The same with some pools forbidden, never the last of a job."""
    if rng.random() < 0.5:
        return allowed
    fewer = allowed & (rng.random(allowed.shape) < 0.7)
    keep = ~fewer.any(axis=1, keepdims=True)
    return fewer | (allowed & keep)


def _seconds(rng: np.random.Generator, jobs: int, models: int, whole: bool) -> Floats:
    if whole:
        return rng.integers(1, int(rng.choice([3, 7, 20])), size=(jobs, models)).astype(np.float64)
    base = rng.lognormal(3, 1, size=(jobs, 1))
    speed = rng.uniform(0.5, 4, size=models)
    return base / speed * rng.uniform(0.8, 1.25, size=(jobs, models))


def _fill_times(rng: np.random.Generator, jobs: Records, seconds: Floats, whole: bool) -> None:
    """Arrivals (light load to all at once) and limits (none, some, all jobs)."""
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


def _estimates(rng: np.random.Generator, seconds: Floats, whole: bool) -> Floats:
    """Exact, noisy, or so short that most jobs are overdue."""
    mode = rng.integers(3)
    if mode == 0:
        return seconds.copy()
    low, high = ((0.3, 3.0), (0.01, 0.6))[mode - 1]
    est = seconds * rng.uniform(low, high, seconds.shape)
    return np.ceil(est) if whole else est


def _some_pools(rng: np.random.Generator, pools: int) -> set[int]:
    """Any set of pools but the empty one."""
    count = int(rng.integers(1, pools + 1))
    return {int(pool) for pool in rng.choice(pools, count, replace=False)}
