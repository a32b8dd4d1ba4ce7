"""The state of a simulation as one tuple of arrays: visible state, ground truth and results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit
from adlro.model.free_index import BLOCK, build
from adlro.model.rules import Rules
from adlro.model.state import (
    CORES,
    DECISION,
    ENDS,
    FAILURE,
    OUTCOME,
    READING,
    REPAIR,
    RUNNING,
    SPAN,
    TOTALS,
    WAITING,
    WHOLE,
    Counts,
    Floats,
    Mask,
    Records,
)
from adlro.model.view import RECENT_ARRIVALS, Rows, View
from adlro.workloads.workload import Workload

_SLACK = 4096  # spare capacity of the queue, so that its window slides and is rarely moved


class EmptyCluster(NamedTuple):
    """Pool, node and GPU records of an empty cluster, from which a world starts."""

    pools: Records
    nodes: Records
    gpus: Records


class World(NamedTuple):
    """All arrays of a simulation; dimensions as in model/state.py.

    The fields before `arrivals` are the state, which changes and is cloned; those up to `tick` are
    the workload and the rules, which are read-only; `outcome` and `spans` are the results.
    """

    totals: Records  # [1] TOTALS
    queue: Records  # [capacity] WAITING; in use: totals.waiting entries from totals.head on
    eligible: Mask  # [capacity, P] parallel to the queue
    undone: Floats  # [capacity] parallel to the queue: true share of work still to do
    running: Records  # [R] RUNNING, in use: the first totals.running
    ends: Records  # [R] ENDS, parallel to running
    wear: Floats  # [G, 2] true speed of each GPU, and degrees added to its temperature
    cells: Floats  # [T, M] true speed of each type on each model, relative to `seconds`
    pools: Records  # [P]
    nodes: Records  # [N]
    gpus: Records  # [G]
    arrivals: Rows  # [J] rows of the jobs in the order in which they arrive
    jobs: Records  # [rows] JOB
    est: Floats  # [rows, M]
    allowed: Mask  # [rows, P]
    seconds: Floats  # [rows, M] true run times
    events: Records  # [E] EVENT
    colocation: Floats  # [T, T]
    demands: Records  # [K] DEMAND
    readings: Records  # [T + 1, M] READING
    holders: Counts  # [rows, 2]
    quotas: Records  # [H] QUOTA
    caps: Counts  # [H, M]
    ageing: Floats  # [1] or [0]
    tick: Floats  # [1] or [0]
    outcome: Records  # [rows] OUTCOME
    spans: Records  # [S] SPAN, in use: the first totals.spans; [0] = not recorded


STATE_FIELDS = World._fields[: World._fields.index("arrivals")]  # what a clone copies


def open_world(empty: EmptyCluster, workload: Workload, span_rows: int = 0) -> World:
    """Return the world before the first arrival: an empty cluster and empty results.

    Args:
        empty: records of the cluster, which are copied.
        workload: the jobs and the ground truth; the row of a job is its index there.
        span_rows: capacity of the log of spans; 0 = spans are not recorded.
    """
    jobs, gpus = len(workload.jobs), len(empty.gpus)
    runs = min(jobs, gpus * (WHOLE // int(workload.jobs["share"].min())))  # at once, at most
    totals = np.zeros(1, TOTALS)
    totals["now"] = workload.jobs["arrival"][0]
    totals["wake"] = np.inf
    totals["up_gpus"] = gpus
    capacity = jobs + min(jobs, _SLACK)
    wear = np.zeros((gpus, 2))
    wear[:, 0] = 1.0
    world = World(
        totals,
        np.zeros(capacity, WAITING),
        np.zeros((capacity, len(empty.pools)), np.bool_),
        np.zeros(capacity),
        np.zeros(runs, RUNNING),
        np.zeros(runs, ENDS),
        wear,
        np.ones((len(workload.colocation), workload.est.shape[1])),
        empty.pools.copy(),
        empty.nodes.copy(),
        empty.gpus.copy(),
        np.arange(jobs),
        *workload[:-1],  # a run does not know which jobs are measured
        np.zeros(jobs, OUTCOME),
        np.zeros(span_rows, SPAN),
    )
    build(world.pools, world.nodes, world.gpus)
    if len(workload.readings) > 0:
        model = world.pools["model"][world.nodes["pool"][world.gpus["node"]]]
        for name in READING.fields or ():
            world.gpus[name] = workload.readings[name][-1, model]
    return world


def fresh_memory(size: int, seed: int) -> Floats:
    """Initial memory of a policy at the start of a run: the seed, then zeros."""
    memory = np.zeros(max(size, 1))
    memory[0] = seed
    return memory


def is_empty(world: World, empty: EmptyCluster) -> bool:
    """True when pools and nodes are as before the run, so that no job holds anything.

    Nodes that failed and were not repaired are expected to be down, and cores that CPU-only jobs
    took to be taken until they were returned.
    """
    pools, nodes, gpus = empty
    events = world.events[: world.totals["events_done"][0]]
    if len(events) > 0:
        pools, nodes, gpus = (array.copy() for array in empty)
        switched = events[np.isin(events["kind"], (REPAIR, FAILURE))]
        nodes["up"][switched["node"]] = switched["kind"] == REPAIR  # of several, the last one
        cores = events[events["kind"] == CORES]
        held = np.bincount(cores["node"], cores["value"], len(nodes)).astype(np.int32)
        nodes["short_cores"] = np.clip(world.nodes["short_cores"], 0, held)
        nodes["free_cores"] -= held - nodes["short_cores"]
        down = nodes["up"] == 0
        nodes["free"][down] = 0
        gpus["free"][down[gpus["node"]]] = 0
        away = np.bincount(nodes["pool"][down], nodes["gpus"][down], len(pools)).astype(np.int32)
        pools["gpus"] -= away
        pools["free"] -= away
    if pools["nodes"].max() > BLOCK:
        nodes = nodes.copy()
        build(pools, nodes, gpus)
    same: bool = (
        world.pools.tobytes() == pools.tobytes() and world.nodes.tobytes() == nodes.tobytes()
    )
    return same


def decision_buffer(world: World) -> Records:
    """Allocate a buffer for the decisions of one answer.

    It has room to preempt and start as many jobs as can run at once, and for 16 more decisions.
    """
    out = np.zeros(2 * len(world.running) + 16, DECISION)
    out["node"] = out["gpu"] = -1
    return out


@njit
def view_of(world: World) -> View:
    """Return the view of a world: the parts of its arrays in use, with the arrived jobs only."""
    totals = world.totals[0]
    first, last = totals.head, totals.head + totals.waiting
    return View(
        totals.now,
        world.jobs[: totals.rows],
        world.est[: totals.rows],
        world.queue[first:last],
        world.eligible[first:last],
        world.running[: totals.running],
        world.pools,
        world.nodes,
        world.gpus,
        totals.arrived_before + totals.arrived,
        world.arrivals[max(totals.arrived - RECENT_ARRIVALS, 0) : totals.arrived],
    )


@njit
def tables_of(world: World) -> View:
    """Return the whole arrays of a world as a view, for checks of single rows.

    Slicing out the parts in use, as `view_of` does, takes longer than checking a start.
    """
    totals = world.totals[0]
    return View(
        totals.now,
        world.jobs,
        world.est,
        world.queue,
        world.eligible,
        world.running,
        world.pools,
        world.nodes,
        world.gpus,
        totals.arrived_before + totals.arrived,
        world.arrivals,
    )


@njit
def rules_of(world: World) -> Rules:
    """Return the eligibility rules of a world."""
    return Rules(world.allowed, world.holders, world.quotas, world.caps, world.ageing)
