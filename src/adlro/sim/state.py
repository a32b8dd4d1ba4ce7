"""The simulator's state as arrays: made empty from a cluster, copied, looked at by a policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.model.rooms import BLOCK, take_stock
from adlro.model.state import (
    DECISION,
    ENDS,
    FAILURE,
    READING,
    REPAIR,
    RUNNING,
    WAITING,
    WHOLE,
    WORLD,
    Floats,
    Mask,
    Records,
)
from adlro.sim import kernel
from adlro.workloads.workload import Workload


class State(NamedTuple):
    """All that changes during a run; see model/state.py for the records and dimensions."""

    world: Records  # [1]
    queue: Records  # [capacity], in use: world.head and world.waiting
    eligible: Mask  # [capacity, P], row by row with the queue
    undone: Floats  # [capacity], beside the queue: the true share of work still to do
    running: Records  # [R], in use: world.running
    ends: Records  # [R], beside running
    wear: Floats  # [G, 2] true speed of each GPU, and degrees on top of its temperature
    cells: Floats  # [T, M] true speed of each type on each model, 1 = as the run times say
    pools: Records  # [P]
    nodes: Records  # [N]
    gpus: Records  # [G]
    memory: Floats  # the policy's own


class Empty(NamedTuple):
    """An empty cluster: the static arrays that a run starts from."""

    pools: Records
    nodes: Records
    gpus: Records


def fresh(empty: Empty, workload: Workload, memory: int, seed: int) -> State:
    """An empty cluster before the first arrival.

    Args:
        empty: the cluster's arrays, which are copied.
        workload: what will come to it.
        memory: how many numbers the policy keeps; the first starts as the seed, the others as 0.
        seed: of the run.
    """
    jobs, gpus = len(workload.jobs), len(empty.gpus)
    runs = min(jobs, gpus * (WHOLE // int(workload.jobs["share"].min())))  # at once, at most
    world = np.zeros(1, WORLD)
    world["now"] = workload.jobs["arrival"][0]
    world["wake"] = np.inf
    world["up_gpus"] = gpus
    own = np.zeros(memory)
    own[:1] = seed
    capacity = jobs + min(jobs, 4096)  # slack lets the queue's window slide instead of moving
    wear = np.zeros((gpus, 2))
    wear[:, 0] = 1.0
    state = State(
        world,
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
        own,
    )
    take_stock(state.pools, state.nodes, state.gpus)
    if len(workload.readings) > 0:
        model = state.pools["model"][state.nodes["pool"][state.gpus["node"]]]
        for name in READING.fields or ():
            state.gpus[name] = workload.readings[name][-1, model]
    return state


def is_empty(state: State, empty: Empty, events: Records) -> bool:
    """True when pools and nodes are as before the run, but for nodes that events left down."""
    pools, nodes, gpus = empty
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
        take_stock(pools, nodes, gpus)
    same: bool = (
        state.pools.tobytes() == pools.tobytes() and state.nodes.tobytes() == nodes.tobytes()
    )
    return same


def clone(state: State) -> State:
    """An independent copy of a state."""
    copy = State._make(np.empty_like(array) for array in state)
    kernel.clone(*state, *copy)
    return copy


def answers(state: State) -> Records:
    """Room for the decisions of one answer: stop and start all that can run, and some more."""
    out = np.zeros(2 * len(state.running) + 16, DECISION)
    out["node"] = out["gpu"] = -1
    return out
