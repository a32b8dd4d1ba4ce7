"""The simulator's state as arrays: made empty from a cluster, copied, looked at by a policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.model.state import DECISION, ENDS, RUNNING, WAITING, WORLD, Floats, Mask, Records
from adlro.sim import kernel


class State(NamedTuple):
    """All that changes during a run; see model/state.py for the records and dimensions."""

    world: Records  # [1]
    queue: Records  # [capacity], in use: world.head and world.waiting
    eligible: Mask  # [capacity, P], row by row with the queue
    running: Records  # [G], in use: world.running
    ends: Records  # [G], beside running
    pools: Records  # [P]
    nodes: Records  # [N]
    gpus: Records  # [G]
    memory: Floats  # the policy's own


class Empty(NamedTuple):
    """An empty cluster: the static arrays that a run starts from."""

    pools: Records
    nodes: Records
    gpus: Records


def fresh(empty: Empty, jobs: int, memory: int, seed: int) -> State:
    """An empty cluster before the first arrival.

    Args:
        empty: the cluster's arrays, which are copied.
        jobs: how many jobs there will be at most.
        memory: how many numbers the policy keeps; the first starts as the seed, the others as 0.
        seed: of the run.
    """
    gpus = len(empty.gpus)
    world = np.zeros(1, WORLD)
    world["wake"] = np.inf
    world["up_gpus"] = gpus
    own = np.zeros(memory)
    own[:1] = seed
    capacity = jobs + min(jobs, 4096)  # slack lets the queue's window slide instead of moving
    return State(
        world,
        np.zeros(capacity, WAITING),
        np.zeros((capacity, len(empty.pools)), np.bool_),
        np.zeros(gpus, RUNNING),
        np.zeros(gpus, ENDS),
        empty.pools.copy(),
        empty.nodes.copy(),
        empty.gpus.copy(),
        own,
    )


def clone(state: State) -> State:
    """An independent copy of a state."""
    copy = State._make(np.empty_like(array) for array in state)
    kernel.clone(*state, *copy)
    return copy


def answers(gpus: int) -> Records:
    """Room for the decisions of one answer: at most one start a GPU and a wake; none named."""
    out = np.zeros(gpus + 1, DECISION)
    out["node"] = out["gpu"] = -1
    return out
