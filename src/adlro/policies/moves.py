"""From a target pool for each job to decisions: whom to stop, and who starts where. Not a policy.

Jobs are taken in the policy's order. One whose target has no room stops the runs there that the
plan does not want there, and if that is not enough (plans count GPUs, not cores or memory) those
that come after it in the order; in both the last first, and those only that it takes. If all of
them make no room, nobody is stopped for it. Whoever cannot checkpoint, or is too young, is left
alone. Then, as the world stands, those of the plan start, and after them whoever waits and fits,
each on the pool where it needs least: no GPU is idle while a waiting job fits it. The plan places
by best fit; where the world places otherwise, what then does not fit starts where it can.

Stops are one answer and each start is one: a start may close a pool to others (quotas), and the
next call shows it. Dimensions as in active.py; Q waiting jobs.
"""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.place import place, release
from adlro.model.room import fits, start
from adlro.model.state import DECISION, DEMAND, PREEMPT, WAKE, Floats, Records
from adlro.policies.active import Active, Indices, Notes, View


@njit_allocating
def take_in_order(chosen, pools, width, room, target):
    """Give each job of the list its pool of the list, while the room [P] lasts; fills target [A].

    Args:
        chosen: [K] jobs, the first choice of all first; a job may stand there several times.
        pools: [K] what it would take.
        width: [A] GPUs that a job takes.
        room: [P] GPUs; what is left of it afterwards.
        target: [A] -1 = none yet.
    """
    for k in range(len(chosen)):
        a, p = chosen[k], pools[k]
        if target[a] < 0 and width[a] <= room[p] + 1e-9:
            target[a] = p
            room[p] -= width[a]


@njit
def _holds_without(a, p, stopped, count, spared, run, jobs, running, pools, nodes, gpus):
    """True when job a fits pool p (of copies) once all `stopped` but the spared one have left."""
    for i in range(count):
        if i != spared and stopped[i] >= 0:
            release(running[run[stopped[i]]], jobs, pools, nodes, gpus)
    return fits(jobs[a], pools[p], nodes, gpus)


@njit_allocating
def _whom_to_stop(k, order, target, held, pinned, run, jobs, running, pools, nodes, gpus):
    """Jobs that must leave the target of job order[k] so that it fits; none if that is in vain."""
    a, p = order[k], target[order[k]]
    stopped, count, enough = np.empty(len(order), np.int64), 0, False
    left, machines, cards = pools.copy(), nodes.copy(), gpus.copy()
    for i in range(2 * len(order)):
        wanted, place_in_order = i >= len(order), len(order) - 1 - i % len(order)
        b = order[place_in_order]
        if enough or (wanted and place_in_order <= k):
            break
        if held[b] == p and (target[b] == p) == wanted and not pinned[b]:
            release(running[run[b]], jobs, left, machines, cards)
            stopped[count] = b
            count += 1
            enough = fits(jobs[a], left[p], machines, cards)
    if not enough:
        return stopped[:0]
    for i in range(count - 1):  # one whose leaving turns out not to be needed stays
        left, machines, cards = pools.copy(), nodes.copy(), gpus.copy()
        if _holds_without(a, p, stopped, count, i, run, jobs, running, left, machines, cards):
            stopped[i] = -1
    kept = stopped[:count]
    return kept[kept >= 0]


@njit_allocating
def plan_moves(order, target, pinned, run, held, jobs, running, pools, nodes, gpus, stop, step):
    """Fill stop [A] with 1 for those to be stopped, and step [A] with the turns of those to start.

    Args:
        order: [A] jobs by their place in `active`, the most important first.
        target: [A] pools, -1 = none.
        pinned: [A] must not be stopped.
        run: [A] place in running, -1 = waits.
        held: [A] the pool where it runs; changed.
        jobs: [A] their records.
        running: [R], with `job` a place in `jobs`.
        pools: copies of the cluster's records, as are nodes and gpus: they are changed.
        nodes: see pools.
        gpus: see pools.
        stop: see above.
        step: see above.
    """
    decision, demands, turn = np.zeros(1, DECISION)[0], np.zeros(0, DEMAND), 0
    for k in range(len(order)):
        a, p = order[k], target[order[k]]
        if p < 0 or held[a] == p or pinned[a]:
            continue
        if not fits(jobs[a], pools[p], nodes, gpus):
            others = _whom_to_stop(
                k, order, target, held, pinned, run, jobs, running, pools, nodes, gpus
            )
            if len(others) == 0:
                continue
            for b in others:
                release(running[run[b]], jobs, pools, nodes, gpus)
                stop[b], held[b] = 1, -1
        if held[a] >= 0:
            release(running[run[a]], jobs, pools, nodes, gpus)
            stop[a], held[a] = 1, -1
        decision.job, decision.pool, decision.node, decision.gpu = a, p, -1, -1
        place(decision, jobs, demands, pools, nodes, gpus)
        turn += 1
        step[a] = turn


@njit
def _where_to_start(waiting, goal, may, seconds, job, pools, nodes, gpus):
    """The goal (-1 = none) if the job can start there, else its fastest pool where it can, or -1.

    Shapes: may [P], seconds [M] for the whole job.
    """
    may_there = goal >= 0 and may[goal] and seconds[pools[goal].model] < np.inf
    if may_there and fits(job, pools[goal], nodes, gpus):
        return goal
    best, found = np.inf, -1
    for p in range(len(pools)):
        need = seconds[pools[p].model] * waiting.left
        if may[p] and need < best and fits(job, pools[p], nodes, gpus):
            best, found = need, p
    return found


@njit_allocating
def first_start(worth, steps, goals, jobs, est, queue, eligible, pools, nodes, gpus, out):
    """Write the start of the first job that can: by its step, then by worth, then by age.

    Args:
        worth: [Q] of those without a step, the largest first.
        steps: [J] turns in the plan, 0 = not in it.
        goals: [J] pools that the plan has for those in it.
        jobs: as decide gets it, and so all that follow.
        est: see jobs.
        queue: see jobs.
        eligible: see jobs.
        pools: see jobs.
        nodes: see jobs.
        gpus: see jobs.
        out: see jobs.

    Returns:
        How many decisions were written.
    """
    first, chosen, pool = (np.inf, np.inf, np.inf), -1, -1
    for q in range(len(queue)):
        j = queue[q].job
        goal, key = -1, (np.inf, -worth[q], float(j))
        if steps[j] > 0:
            goal, key = int(goals[j]), (steps[j], -worth[q], float(j))
        if key < first:
            p = _where_to_start(queue[q], goal, eligible[q], est[j], jobs[j], pools, nodes, gpus)
            if p >= 0:
                first, chosen, pool = key, j, p
    return start(out, chosen, pool) if chosen >= 0 else 0


def stop_for(
    view: View, notes: Notes, active: Active, target: Indices, order: Indices, out: Records
) -> int:
    """Write the stops that lead to the targets, and note who starts where; how many stops."""
    notes.step[active.ids] = 0.0
    running = np.array(view.running)
    running["job"] = np.searchsorted(active.ids, running["job"])
    stop, step = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
    cluster = (np.array(view.pools), np.array(view.nodes), np.array(view.gpus))
    jobs, held = view.jobs[active.ids], active.pool.copy()
    plan_moves(
        order, target, active.pinned, active.run, held, jobs, running, *cluster, stop, step
    )  # fmt: skip
    notes.step[active.ids], notes.goal[active.ids] = step, target
    stopped = active.ids[stop > 0]
    out["kind"][: len(stopped)], out["job"][: len(stopped)] = PREEMPT, stopped
    return len(stopped)


def start_what_fits(view: View, notes: Notes, worth: Floats, out: Records) -> int:
    """Write a start: of the plan in its order, then of who fits, by falling `worth` [Q]."""
    count: int = first_start(
        worth, notes.step, notes.goal, view.jobs, view.est, view.queue, view.eligible, view.pools,
        view.nodes, view.gpus, np.asarray(out),
    )  # fmt: skip
    return count


def wake(at: float, out: Records) -> int:
    """Write a wake at this time; none if it is infinite. How many decisions."""
    if at == np.inf:
        return 0
    out["kind"][0], out["at"][0] = WAKE, at
    return 1
