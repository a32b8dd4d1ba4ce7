"""A simulated world: what a policy sees, the truth and the books beside it, as one tuple."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit
from adlro.model.free_index import BLOCK, build
from adlro.model.rules import Rules
from adlro.model.state import (
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

_SLACK = 4096  # places beyond what can wait: the queue's window slides instead of moving


class Empty(NamedTuple):
    """An empty cluster: the arrays that a world starts from."""

    pools: Records
    nodes: Records
    gpus: Records


class World(NamedTuple):
    """All that the kernel works on; dimensions as in model/state.py.

    The state, which changes and is cloned; then the workload, which is read; then the books.
    """

    totals: Records  # [1] TOTALS
    queue: Records  # [capacity] WAITING, in use: from totals.head on, totals.waiting of them
    eligible: Mask  # [capacity, P] beside the queue
    undone: Floats  # [capacity] beside the queue: the true share of work still to do
    running: Records  # [R] RUNNING, in use: the first totals.running
    ends: Records  # [R] ENDS, beside running
    wear: Floats  # [G, 2] true speed of each GPU, and degrees on top of its temperature
    cells: Floats  # [T, M] true speed of each type on each model, 1 = as the run times say
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
    outcome: Records  # [rows] OUTCOME
    spans: Records  # [S] SPAN, in use: the first totals.spans; [0] = they are not kept


STATE_FIELDS = World._fields[: World._fields.index("arrivals")]  # what a clone copies


def open_world(empty: Empty, workload: Workload, span_rows: int = 0) -> World:
    """An empty cluster before the first arrival, and books for what comes of it.

    Args:
        empty: the cluster's arrays, which are copied.
        workload: what will come to it; each job has the row of its place there.
        span_rows: room in the log of spans; 0 = they are not kept.
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
        *workload,
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
    """What a policy keeps from call to call, as a run begins: the seed first, then zeros."""
    memory = np.zeros(max(size, 1))
    memory[0] = seed
    return memory


def is_empty(world: World, empty: Empty) -> bool:
    """True when pools and nodes are as before the run, but for nodes that events left down."""
    pools, nodes, gpus = empty
    events = world.events[: world.totals["events_done"][0]]
    if len(events) > 0:
        pools, nodes, gpus = (array.copy() for array in empty)
        switched = events[np.isin(events["kind"], (REPAIR, FAILURE))]
        nodes["up"][switched["node"]] = switched["kind"] == REPAIR  # of several, the last one
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


def answers(world: World) -> Records:
    """Room for the decisions of one answer: stop and start all that can run, and some more."""
    out = np.zeros(2 * len(world.running) + 16, DECISION)
    out["node"] = out["gpu"] = -1
    return out


@njit
def view_of(world: World) -> View:
    """What a policy sees of a world: what is in use, and only jobs that have arrived."""
    w = world.totals[0]
    first, last = w.head, w.head + w.waiting
    return View(
        w.now,
        world.jobs[: w.rows],
        world.est[: w.rows],
        world.queue[first:last],
        world.eligible[first:last],
        world.running[: w.running],
        world.pools,
        world.nodes,
        world.gpus,
        w.arrived_before + w.arrived,
        world.arrivals[max(w.arrived - RECENT_ARRIVALS, 0) : w.arrived],
    )


@njit
def tables_of(world: World) -> View:
    """The arrays of a world as they are, with no window on what is in use: for checks of one row.

    To cut out the windows of `view_of` takes longer than to check a start.
    """
    w = world.totals[0]
    return View(
        w.now,
        world.jobs,
        world.est,
        world.queue,
        world.eligible,
        world.running,
        world.pools,
        world.nodes,
        world.gpus,
        w.arrived_before + w.arrived,
        world.arrivals,
    )


@njit
def rules_of(world: World) -> Rules:
    """The rules that make the mask of a world."""
    return Rules(world.allowed, world.holders, world.quotas, world.caps, world.ageing)
