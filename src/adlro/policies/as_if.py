"""The state as if all that can be stopped had been: copies for a policy to plan in. Not a policy.

Whoever can be stopped gives its GPUs back and waits with the others; then jobs are chosen one after
the other. Estimates are such that a restart is paid for where the plan would cause it. Dimensions
as in active.py.
"""

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.encode.candidates_kernel import RECENT
from adlro.model.place import join, leave, moved, place, release
from adlro.model.state import DECISION, DEMAND, RUNNING, WAITING, WHOLE, Floats, Mask, Records
from adlro.policies.active import Indices
from adlro.sim.run_kernel import span_factor

_LEAST = 0.1  # of a run's time left that counts at least


class AsIf(NamedTuple):
    """What decide gets, but for `now`; jobs are numbered from `first` on."""

    first: int
    jobs: Records
    est: Floats
    queue: Records  # the first counts[0] are in use
    eligible: Mask
    running: Records  # the first counts[1]
    pools: Records
    nodes: Records
    gpus: Records
    out: Records  # [1]
    counts: Indices  # [3] who waits, who runs, who was chosen
    target: Indices  # [A] pools of those chosen, -1 = not
    order: Indices  # [A] in which they were


@njit
def pin_dear(active, jobs, times):
    """Pin the runs that have less left than so many times what a restart costs them."""
    for a in range(len(active.ids)):
        p = active.pool[a]
        if p >= 0 and active.seconds[a, p] < times * jobs[active.ids[a]].checkpoint:
            active.pinned[a] = True


@njit
def _restart(a, active, jobs):
    """Cost of a restart as a share of all that the job has to do, as estimates are."""
    return max(jobs[active.ids[a]].checkpoint, 0.0) / active.left[a] if active.begun[a] else 0.0


@njit_allocating
def _estimates(first, stay, active, jobs, est, pools):
    """Copy of est from job `first` on, with restarts.

    Who starts from a checkpoint pays for it, and who moves takes `stay` times as long besides, for
    moves are not free of doubt. Who goes on saves the restart that it would need later.
    """
    own = est[first:].copy()
    for a in range(len(active.ids)):
        if active.pinned[a]:
            continue
        j, cost = active.ids[a], _restart(a, active, jobs)
        held = pools[active.pool[a]].model if active.pool[a] >= 0 else -1
        for m in range(est.shape[1]):
            if m == held:
                own[j - first, m] = max(est[j, m] - cost, _LEAST * est[j, m])
            else:
                own[j - first, m] = est[j, m] * (stay if held >= 0 else 1.0) + cost
    return own


@njit_allocating
def _leave(active, rows, jobs, running, world):
    """Fill in those who go on, and those who wait."""
    going, waiting, of = len(running), 0, np.empty(len(running), np.int64)
    for a in range(len(active.ids)):
        if active.run[a] >= 0:
            of[active.run[a]] = a
        if not active.pinned[a]:
            world.queue[waiting].job = active.ids[a] - world.first
            world.queue[waiting].left = active.left[a]
            for p in range(len(world.pools)):
                world.eligible[waiting, p] = rows[active.ids[a], p] > 0
            waiting += 1
    for r in range(len(running)):
        world.running[r] = running[r]
        world.running[r].job -= world.first
    for r in range(len(running) - 1, -1, -1):  # the last takes the place of who leaves
        if not active.pinned[of[r]]:
            release(running[r], jobs, world.pools, world.nodes, world.gpus)
            if jobs[running[r].job].share < WHOLE:
                leave(r, world.running, world.gpus)
            going -= 1
            world.running[r] = world.running[going]
            if r < going and world.jobs[world.running[r].job].share < WHOLE:
                moved(r, world.running, world.gpus)
    world.counts[0], world.counts[1] = waiting, going


@njit_allocating
def as_if_stopped(stay, active, rows, jobs, est, running, pools, nodes, gpus):
    """The state of all active jobs, of whom only the pinned still run.

    `stay` as in _estimates; rows [J, ...] begin with where a job may run, as in Notes.
    """
    count = len(active.ids)
    first = min(active.ids[0], max(len(jobs) - RECENT, 0)) if count > 0 else 0
    world = AsIf(
        first, jobs[first:], _estimates(first, stay, active, jobs, est, pools),
        np.zeros(count, WAITING), np.zeros((count, len(pools)), np.bool_), np.zeros(count, RUNNING),
        pools.copy(), nodes.copy(), gpus.copy(), np.zeros(1, DECISION), np.zeros(3, np.int64),
        np.full(count, -1), np.arange(count),
    )  # fmt: skip
    _leave(active, rows, jobs, running, world)
    return world


@njit_allocating
def carry_out(now, active, world):
    """Start the job of world.out in the copies, and note its target."""
    answer, demands, slot = world.out[0], np.zeros(0, DEMAND), world.counts[1]
    j, pool, run = answer.job, world.pools[answer.pool], world.running[slot]
    a = np.searchsorted(active.ids, j + world.first)
    run.gpu, run.nodes = place(answer, world.jobs, demands, world.pools, world.nodes, world.gpus)
    run.job, run.pool, run.start, run.left = j, answer.pool, now, active.left[a]
    seconds = world.est[j, pool.model] * active.left[a]
    run.expected = now + seconds * span_factor(run, world.jobs[j], pool)
    if world.jobs[j].share < WHOLE:
        join(slot, world.running, world.gpus)
    q = 0
    while world.queue[q].job != j:
        q += 1
    world.counts[0] -= 1
    for k in range(q, world.counts[0]):
        world.queue[k] = world.queue[k + 1]
        world.eligible[k, :] = world.eligible[k + 1, :]
    world.target[a], world.order[world.counts[2]] = answer.pool, a
    world.counts[1] += 1
    world.counts[2] += 1


@njit
def complete_order(world):
    """Put those who were not chosen behind those who were, the oldest first."""
    chosen = world.counts[2]
    for a in range(len(world.target)):
        if world.target[a] < 0:
            world.order[chosen] = a
            chosen += 1
