"""A cluster in plain Python objects, shared by the heapq and the simpy simulator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from adlro.sim.world import EmptyCluster
from adlro.workloads.workload import Workload


class Option(NamedTuple):
    """A pool on which a job may run."""

    pool: int
    est: float  # estimated seconds, visible to the policy
    seconds: float  # true seconds


class Task(NamedTuple):
    """A job; cores and memory are per GPU."""

    arrival: float
    gpus: int
    cores: int
    memory: int  # MB
    limit: float
    communication: float
    options: tuple[Option, ...]  # in the order of the pools


@dataclass(slots=True)
class Node:
    """Free resources of a node."""

    idle: list[int]  # free GPUs, ascending
    cores: int
    memory: int  # MB


@dataclass(slots=True)
class Pool:
    """GPUs of one model on nodes of one shape."""

    free: int
    nodes: list[Node]
    span_cost: float


class Held(NamedTuple):
    """Resources that a run holds on one node."""

    node: Node
    gpus: list[int]


class Run(NamedTuple):
    """A running gang; sorts by end, then job."""

    end: float
    job: int
    start: float
    expected: float  # estimated end
    pool: int
    held: list[Held]


class Schedule(NamedTuple):
    """The result of a run, with the same totals as the kernel's; J jobs, G GPUs."""

    start: list[float]  # [J]
    finish: list[float]  # [J]
    pool: list[int]  # [J]
    nodes: list[int]  # [J] number of nodes of each gang
    busy: list[float]  # [G] seconds
    job_seconds: float
    idle_seconds: float
    events: int
    decisions: int
    real_decisions: int


def take_tasks(workload: Workload, empty: EmptyCluster) -> list[Task]:
    """Convert a workload to one tuple per job."""
    models = empty.pools["model"]
    columns = [workload.jobs[key].tolist() for key in Task._fields[:-1]]
    tables = (workload.allowed, workload.est[:, models], workload.seconds[:, models])
    options = [
        tuple(
            Option(p, est, seconds)
            for p, (ok, est, seconds) in enumerate(zip(*rows, strict=True))
            if ok
        )
        for rows in zip(*(table.tolist() for table in tables), strict=True)
    ]
    return [Task(*row) for row in zip(*columns, options, strict=True)]


def take_pools(empty: EmptyCluster) -> list[Pool]:
    """Convert the empty cluster to objects."""
    keys = ["first_gpu", "gpus", "cores", "memory"]
    nodes = [
        Node(list(range(first, first + gpus)), cores, memory)
        for first, gpus, cores, memory in empty.nodes[keys].tolist()
    ]
    keys = ["free", "first_node", "nodes", "span_cost"]
    return [
        Pool(free, nodes[first : first + count], span_cost)
        for free, first, count, span_cost in empty.pools[keys].tolist()
    ]


def fits(pool: Pool, gpus: int, cores: int, memory: int) -> bool:
    """Whether the pool's nodes together can hold the whole gang now."""
    if pool.free < gpus:
        return False
    for node in pool.nodes:
        room = len(node.idle)
        if room * cores > node.cores:
            room = node.cores // cores
        if room * memory > node.memory:
            room = node.memory // memory
        gpus -= room
        if gpus <= 0:
            return True
    return False


def any_feasible(tasks: list[Task], queue: list[int], pools: list[Pool]) -> bool:
    """Whether at least one waiting job could start now."""
    for j in queue:
        _, gpus, cores, memory, _, _, options = tasks[j]
        for p, _, _ in options:
            if fits(pools[p], gpus, cores, memory):
                return True
    return False


def _next_node(pool: Pool, wanted: int, cores: int, memory: int) -> tuple[Node, int]:
    """Return the node to fill next and with how many GPUs: tightest that fits all, else largest."""
    best, fewest, most = pool.nodes[0], math.inf, 0
    for node in pool.nodes:
        room = free = len(node.idle)
        if room * cores > node.cores:
            room = node.cores // cores
        if room * memory > node.memory:
            room = node.memory // memory
        if room >= wanted:
            if free < fewest:
                best, fewest, most = node, free, wanted
        elif room > most:
            best, most = node, room
    return best, most


def _place(pool: Pool, gpus: int, cores: int, memory: int) -> list[Held]:
    """Allocate GPUs, cores and memory to a feasible gang by best fit."""
    pool.free -= gpus
    held = []
    while gpus:
        node, count = _next_node(pool, gpus, cores, memory)
        held.append(Held(node, node.idle[:count]))
        del node.idle[:count]
        node.cores -= count * cores
        node.memory -= count * memory
        gpus -= count
    return held


def start(now: float, j: int, task: Task, option: Option, pools: list[Pool]) -> Run:
    """Place a feasible gang and compute its end."""
    _, gpus, cores, memory, limit, communication, _ = task
    p, est, seconds = option
    pool = pools[p]
    held = _place(pool, gpus, cores, memory)
    if len(held) > 1:
        factor = 1.0 + communication * pool.span_cost
        est *= factor
        seconds *= factor
    return Run(now + min(seconds, limit), j, now, now + min(est, limit), p, held)


def release(run: Run, task: Task, pools: list[Pool], busy: list[float]) -> None:
    """Release the resources of a run and add its length to the busy time of its GPUs."""
    end, _, began, _, p, held = run
    _, gpus, cores, memory, _, _, _ = task
    pools[p].free += gpus
    length = end - began
    for node, ids in held:
        for g in ids:
            busy[g] += length
        node.cores += len(ids) * cores
        node.memory += len(ids) * memory
        node.idle += ids
        node.idle.sort()
