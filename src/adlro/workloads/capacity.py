"""Capacity of a cluster: the most jobs a second that it can carry, by a linear program (LP).

A scenario's load is its arrival rate as a fraction of the capacity. Jobs are grouped into classes
(type, gang size, share of a GPU, pools where they may run), weighted by how often the scenario
draws them. An average job keeps each pool busy for some seconds: its GPU-seconds there / the pool's
GPUs. The LP spreads each class over its pools so that this time is least on the busiest pool; the
capacity is 1 / that time.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import ndtr

from adlro.config.scenario import Scenario
from adlro.errors import ConfigError, suggestion
from adlro.model import gpu
from adlro.model.cluster import MB_PER_GB, Layout
from adlro.model.job import Constant, Exponential, JobType, Lognormal, LogUniform, Size
from adlro.model.state import JOB, WHOLE, Floats, Mask, Records

# Fields of a job that are drawn -> units of JOB in one unit of the scenario file.
_DRAWN = {"gpus": 1, "cores": 1, "memory": MB_PER_GB, "gpu_memory": MB_PER_GB, "share": WHOLE}


class Capacity(NamedTuple):
    """Solution of the capacity LP: jobs a second, shares of C classes on P pools, GPU prices."""

    jobs_per_s: float
    shares: Floats  # [C, P] share of each class that the LP puts on each pool
    prices: Floats  # [P] dual price of a GPU of each pool, the highest = 1


def mean_size(size: Size) -> float:
    """Return the mean, in seconds, of a distribution of job sizes, with its cap applied."""
    if isinstance(size, Constant):
        return size.seconds
    if isinstance(size, Exponential):
        return size.mean_s
    if isinstance(size, LogUniform):
        pieces = zip(size.p, itertools.pairwise(size.borders_s), strict=True)
        return math.fsum(p * (b - a) / math.log(b / a) for p, (a, b) in pieces)
    if isinstance(size, Lognormal):
        if size.sigma == 0:
            return size.median_s
        z = math.log(size.cap) / size.sigma
        body = math.exp(size.sigma**2 / 2) * float(ndtr(z - size.sigma))
        return size.median_s * (body + size.cap * float(ndtr(-z)))
    tail = math.pow(size.cap, 1 - size.alpha)
    if size.alpha == 1:
        return size.minimum_s * (1 + math.log(size.cap))
    return size.minimum_s * (size.alpha - tail) / (size.alpha - 1)


def speed_on(job_type: JobType, model: gpu.GpuModel) -> float:
    """Return the speed of a job type on a GPU model, relative to the reference GPU.

    It is the speed that the scenario gives, or else the one of the cluster's [[gpu]] table for the
    type or its kind, or else the one that the figures of the model imply.

    Raises:
        ConfigError: nobody gives a speed there, and it cannot be derived: the type has no kind or
            demand, or a figure of the model is not known.
    """
    for name, own in job_type.speed.items():
        if gpu.is_name_of(name, model):
            return own
    for key in (job_type.name, job_type.kind or ""):
        if key in model.speed:
            return model.speed[key]
    demand = job_type.demand or gpu.DEMANDS.get(job_type.kind or "")
    if demand is None:
        raise ConfigError(
            f"types.{job_type.name}.speed says nothing of {model.name!r}; add it there, or give "
            "the type a 'kind' or a 'demand'"
        )
    unknown = gpu.missing(demand, model)
    if unknown:
        is_own = not gpu.meant_by(model.name)
        raise ConfigError(
            f"types.{job_type.name}.speed says nothing of {model.name!r}, and its "
            f"{' and '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not known; add the "
            f"speed there{', or either to its [[gpu]] table' if is_own else ''}"
        )
    return gpu.speed(job_type.kind, demand, model).relative


def type_speeds(scenario: Scenario, layout: Layout) -> Floats:
    """Return the speed [T, M] of each job type on each GPU model, V100 = 1."""
    return np.array([[speed_on(t, model) for model in layout.models] for t in scenario.types])


def _holds(job: Records, layout: Layout, nodes_of_pool: NDArray[np.int64]) -> Mask:
    """Return a mask [J, P]: True where a job's gang fits on the pool's empty nodes, or on one.

    nodes_of_pool [P]: number of nodes of each pool to count.
    """
    pools, nodes = layout.pools, layout.nodes[layout.pools["first_node"]]
    cores = np.maximum(job["cores"], 1)[:, None]
    memory = np.maximum(job["memory"], 1)[:, None]
    by_cores = np.where(job["cores"][:, None] > 0, nodes["cores"] // cores, nodes["gpus"])
    by_memory = np.where(job["memory"][:, None] > 0, nodes["memory"] // memory, nodes["gpus"])
    usable = np.where(job["one_node"][:, None] > 0, np.minimum(nodes_of_pool, 1), nodes_of_pool)
    room = np.minimum(np.minimum(by_cores, by_memory), nodes["gpus"]) * usable
    enough = job["gpu_memory"][:, None] <= pools["gpu_memory"]
    result: Mask = enough & (job["gpus"][:, None] <= room)
    return result


def may_run(job: Records, models: Mask, layout: Layout) -> Mask:
    """Return a mask [J, P] of the pools where each job may run.

    A pool must be permitted by `models`, have enough GPU memory, and hold the job's gang when it is
    empty. Nodes that will leave are not counted, since a gang could wait for them in vain; in pools
    whose nodes all leave, they are counted.

    Args:
        job: JOB records [J].
        models: [J, P] pools that the job's lists of GPU models and partitions permit.
        layout: the empty cluster.
    """
    lasting = np.where(layout.lasting > 0, layout.lasting, layout.pools["nodes"])
    result: Mask = models & _holds(job, layout, lasting)
    return result


def fill_partitions(jobs: Records, allowed: Mask, layout: Layout) -> None:
    """Write the partitions of jobs that name none: those of all pools where they may run.

    allowed: [J, P] pools where each job may run.
    """
    bits = np.bitwise_or.reduce(np.where(allowed, layout.pools["partitions"], 0), axis=1)
    jobs["partitions"] = np.where(jobs["partitions"] == 0, bits, jobs["partitions"])


def permitted(scenario: Scenario, layout: Layout) -> Mask:
    """Return a mask [T, P] of the pools that each type's lists of GPU models and partitions permit.

    An empty list permits everything.

    Raises:
        ConfigError: a type lists a partition that no node is in.
    """
    allowed = np.ones((len(scenario.types), len(layout.pools)), dtype=np.bool_)
    for t, job_type in enumerate(scenario.types):
        for name in job_type.partitions:
            if name not in layout.partitions:
                raise ConfigError(
                    f"scenario {scenario.name}: types.{job_type.name}.partitions: no node is in "
                    f"{name!r}; {suggestion(name, layout.partitions)}"
                )
        models = {gpu.find(name, layout.models).name for name in job_type.models}
        for p, pool in enumerate(layout.pools):
            named = layout.models[pool["model"]].name in models or not models
            wanted = job_type.partitions
            allowed[t, p] = named and (
                not wanted or not layout.pool_partitions[p].isdisjoint(wanted)
            )
    return allowed


class Classes(NamedTuple):
    """C classes of jobs that are alike to the LP: type, weight, GPU-seconds, permitted pools."""

    type: NDArray[np.int64]  # [C] job type of the class
    weight: Floats  # [C] share of all jobs
    gpu_seconds: Floats  # [C, P] mean GPU-seconds of a job of the class on each pool
    allowed: Mask  # [C, P] pools where jobs of the class may run


def drawable(job_type: JobType) -> tuple[Floats, Records]:
    """Return every combination of demands that a type can draw.

    Returns:
        Probabilities [K] and JOB records [K] of the K combinations.
    """
    choices = (
        job_type.gpus,
        job_type.cores,
        job_type.memory_gb,
        job_type.gpu_memory_gb,
        job_type.gpu_share,
    )
    drawn = itertools.product(*(zip(c.values, c.p, strict=True) for c in choices))
    rows = [row for row in drawn if all(p > 0 for _, p in row)]
    job = np.zeros(len(rows), JOB)
    for column, (key, unit) in enumerate(_DRAWN.items()):
        job[key] = [round(row[column][0] * unit) for row in rows]
    return np.array([math.prod(p for _, p in row) for row in rows]), job


def _refuse_homeless(where: str, job: Records, lists: Mask, layout: Layout) -> None:
    """Raise ConfigError if a job fits no pool, counting only nodes that never leave.

    Args:
        where: name of the scenario and job type, for the message.
        job: JOB records of one type.
        lists: [P] pools that the type's lists of GPU models and partitions permit.
        layout: the empty cluster.
    """
    homeless = job[~(lists & _holds(job, layout, layout.lasting)).any(axis=1)]
    for one in homeless[:1]:
        memory, gpu_memory = one["memory"] / MB_PER_GB, one["gpu_memory"] / MB_PER_GB
        whole = f"a job of {one['gpus']} GPUs"
        what = whole if one["share"] == WHOLE else f"a slice of {one['share'] / WHOLE:g} GPU"
        at_first = (lists & _holds(homeless[:1], layout, layout.pools["nodes"])).any()
        why = (
            "fits only while nodes are there that leave (leaves_h); lower the demand or let more "
            "of them stay"
            if at_first
            else "fits no pool of the cluster, even empty; lower the demand or add such nodes"
        )
        raise ConfigError(
            f"{where}: {what} with {one['cores']} cores, {memory:g} GB and {gpu_memory:g} GB of "
            f"GPU memory each {why}"
        )


def classes(scenario: Scenario, layout: Layout) -> Classes:
    """Group all jobs that the scenario can draw by type, gang size, GPU share and permitted pools.

    Raises:
        ConfigError: a job that can be drawn fits nowhere, even on an empty cluster.
    """
    lists = permitted(scenario, layout)
    total = math.fsum(job_type.share for job_type in scenario.types)
    grouped: dict[tuple[int, int, int, bytes], float] = {}
    for t, job_type in enumerate(scenario.types):
        odds, job = drawable(job_type)
        where = f"scenario {scenario.name}: types.{job_type.name}"
        _refuse_homeless(where, job, lists[t], layout)
        allowed = may_run(job, np.broadcast_to(lists[t], (len(job), len(lists[t]))), layout)
        for p, one, row in zip(odds, job, allowed, strict=True):
            key = (t, int(one["gpus"]), int(one["share"]), row.tobytes())
            grouped[key] = grouped.get(key, 0.0) + p * job_type.share / total
    types, gangs, shares = (np.array([key[i] for key in grouped]) for i in (0, 1, 2))
    return Classes(
        types,
        np.array(list(grouped.values())),
        (gangs * shares / WHOLE)[:, None] * _mean_seconds(scenario, layout, types, gangs),
        np.array([np.frombuffer(key[3], np.bool_) for key in grouped]),
    )


def gpus_up(scenario: Scenario, layout: Layout) -> Floats:
    """Return the mean number [P] of GPUs of each pool that are up, given failures and repairs.

    Nodes that join later or leave count as if they were there all the time.
    """
    share = np.ones(len(layout.nodes))
    if scenario.failures is not None:
        fails = [scenario.failures.touches(group.name) for group in layout.groups]
        share[fails] = scenario.failures.availability
    up: Floats = np.bincount(layout.nodes["pool"], layout.nodes["gpus"] * share).astype(np.float64)
    return up


def _mean_seconds(
    scenario: Scenario, layout: Layout, types: NDArray[np.int64], gangs: NDArray[np.int64]
) -> Floats:
    """Return the mean run time [C, P], in seconds, of each class's jobs on each pool.

    types, gangs: [C] job type and gang size of each class.
    """
    stretch = math.exp(scenario.noise**2 / 2)  # mean of 1 / lognormal speed noise
    means = np.array([mean_size(job_type.size) * stretch for job_type in scenario.types])
    communication = np.array([job_type.communication for job_type in scenario.types])
    spans = gangs[:, None] > layout.pools["node_gpus"]
    factor = 1 + spans * communication[types][:, None] * layout.pools["span_cost"]
    speeds = type_speeds(scenario, layout)[types][:, layout.pools["model"]]
    seconds: Floats = means[types][:, None] / speeds * factor
    return seconds


def solve(weight: Floats, gpu_seconds: Floats, allowed: Mask, gpus: Floats) -> Capacity:
    """Solve the capacity LP: spread job classes over pools so that the busiest pool is least busy.

    Args:
        weight: [C] share of each class among all jobs.
        gpu_seconds: [C, P] mean GPU-seconds of a job of the class on each pool.
        allowed: [C, P] pools that the class may use, at least one each.
        gpus: [P] GPUs of each pool.
    """
    count, pools = allowed.shape
    demand = weight[:, None] * gpu_seconds
    busy = np.zeros((pools, count * pools + 1))
    whole = np.zeros((count, count * pools + 1))
    for c in range(count):
        whole[c, c * pools : (c + 1) * pools] = 1
        busy[np.arange(pools), c * pools + np.arange(pools)] = demand[c] / gpus
    scale = float(demand.mean())
    busy[:, -1] = -scale  # the last variable is the load of the busiest pool, in units of `scale`
    objective = np.zeros(count * pools + 1)
    objective[-1] = 1
    bounds = [(0, None if ok else 0) for ok in allowed.ravel()] + [(0, None)]
    answer = linprog(
        objective, busy, np.zeros(pools), whole, np.ones(count), bounds, method="highs"
    )
    if answer.x is None:  # the program is always feasible: every class has a pool
        raise RuntimeError(f"capacity LP: {answer.message}")
    prices = -answer.ineqlin.marginals / gpus
    return Capacity(
        1 / float(answer.x[-1] * scale),
        answer.x[:-1].reshape(count, pools),
        prices / prices.max(),
    )
