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

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.feasibility import fits, start
from adlro.model.placement import place, release
from adlro.model.state import DECISION, DEMAND, PREEMPT, WAKE, Floats, Mask, Records
from adlro.model.view import View
from adlro.planning.active_jobs import Active, Indices, Notes


class ClusterCopy(NamedTuple):
    """The records that moves change, as copies; jobs are known by their place in `active`."""

    jobs: Records  # [A]
    running: Records  # [R]
    pools: Records
    nodes: Records
    gpus: Records


class TargetPlan(NamedTuple):
    """Where the jobs are to run, and where they do."""

    order: Indices  # [A] places in `active`, the most important first
    target: Indices  # [A] pools, -1 = none
    pinned: Mask  # [A] must not be stopped
    run: Indices  # [A] place in `running`, -1 = waits
    held: Indices  # [A] the pool where it runs, -1 = none; changes as moves are planned


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


@njit_allocating
def _copy(view, active):
    """The cluster of a view."""
    running = view.running.copy()
    for a in range(len(active.rows)):
        if active.run[a] >= 0:
            running[active.run[a]].job = a
    return ClusterCopy(
        view.jobs[active.rows], running, view.pools.copy(), view.nodes.copy(), view.gpus.copy()
    )


@njit_allocating
def _copy_again(cluster):
    """The same with room of its own; jobs and runs are shared, for nobody changes them."""
    pools, nodes, gpus = cluster.pools.copy(), cluster.nodes.copy(), cluster.gpus.copy()
    return ClusterCopy(cluster.jobs, cluster.running, pools, nodes, gpus)


@njit
def _release(r, cluster):
    """Give back what the r-th run holds."""
    release(cluster.running[r], cluster.jobs, cluster.pools, cluster.nodes, cluster.gpus)


@njit
def _fits(a, p, cluster):
    """True when job a has room on pool p."""
    return fits(cluster.jobs[a], cluster.pools[p], cluster.nodes, cluster.gpus)


@njit
def _holds_without(k, stopped, spared, plan, cluster):
    """True when the k-th of the order fits its target once all `stopped` but the spared one left.

    `cluster` is changed.
    """
    for i in range(len(stopped)):
        if i != spared and stopped[i] >= 0:
            _release(plan.run[stopped[i]], cluster)
    a = plan.order[k]
    return _fits(a, plan.target[a], cluster)


@njit_allocating
def _victims(k, plan, cluster):
    """Jobs that must leave the target of the k-th job so that it fits; none if that is in vain."""
    order, target = plan.order, plan.target
    a, p = order[k], target[order[k]]
    stopped, count, enough = np.empty(len(order), np.int64), 0, False
    after = _copy_again(cluster)
    for i in range(2 * len(order)):
        wanted, place_in_order = i >= len(order), len(order) - 1 - i % len(order)
        b = order[place_in_order]
        if enough or (wanted and place_in_order <= k):
            break
        if plan.held[b] == p and (target[b] == p) == wanted and not plan.pinned[b]:
            _release(plan.run[b], after)
            stopped[count] = b
            count += 1
            enough = _fits(a, p, after)
    if not enough:
        return stopped[:0]
    for i in range(count - 1):  # one whose leaving turns out not to be needed stays
        if _holds_without(k, stopped[:count], i, plan, _copy_again(cluster)):
            stopped[i] = -1
    kept = stopped[:count]
    return kept[kept >= 0]


@njit_allocating
def plan_actions(order, target, active, view):
    """Who is to be stopped (1, [A]), and the turns of those that are to start (0 = none, [A]).

    Args:
        order: [A] jobs by their place in `active`, the most important first.
        target: [A] pools, -1 = none.
        active: the active jobs.
        view: what the policy sees.
    """
    cluster = _copy(view, active)
    plan = TargetPlan(order, target, active.pinned, active.run, active.pool.copy())
    stop, step = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
    decision, demands, turn = np.zeros(1, DECISION)[0], np.zeros(0, DEMAND), 0
    for k in range(len(order)):
        a, p = order[k], target[order[k]]
        if p < 0 or plan.held[a] == p or plan.pinned[a]:
            continue
        if not _fits(a, p, cluster):
            others = _victims(k, plan, cluster)
            if len(others) == 0:
                continue
            for b in others:
                _release(plan.run[b], cluster)
                stop[b], plan.held[b] = 1, -1
        if plan.held[a] >= 0:
            _release(plan.run[a], cluster)
            stop[a], plan.held[a] = 1, -1
        decision.job, decision.pool, decision.node, decision.gpu = a, p, -1, -1
        place(decision, cluster.jobs, demands, cluster.pools, cluster.nodes, cluster.gpus)
        turn += 1
        step[a] = turn
    return stop, step


@njit
def _where_to_start(q, goal, view):
    """The goal (-1 = none) if job q can start there, else its fastest pool where it can, or -1."""
    waiting, may = view.queue[q], view.eligible[q]
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    job, seconds = view.jobs[waiting.job], view.est[waiting.job]
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
def first_start(worth, steps, goals, view, out):
    """Write the start of the first job that can: by its step, then by worth, then by age.

    Args:
        worth: [Q] of those without a step, the largest first.
        steps: [J] turns in the plan, 0 = not in it.
        goals: [J] pools that the plan has for those in it.
        view: what the policy sees.
        out: where the decision is written.

    Returns:
        How many decisions were written.
    """
    first, chosen, pool = (np.inf, np.inf, np.inf), -1, -1
    for q in range(len(view.queue)):
        j = view.queue[q].job
        goal, key = -1, (np.inf, -worth[q], float(q))
        if steps[j] > 0:
            goal, key = int(goals[j]), (steps[j], -worth[q], float(q))
        if key < first:
            p = _where_to_start(q, goal, view)
            if p >= 0:
                first, chosen, pool = key, j, p
    return start(out, chosen, pool) if chosen >= 0 else 0


def preempt_for(
    view: View, notes: Notes, active: Active, target: Indices, order: Indices, out: Records
) -> int:
    """Write the stops that lead to the targets, and note who starts where; how many stops."""
    stop, step = plan_actions(order, target, active, view)
    notes.step[active.rows], notes.goal[active.rows] = step, target
    stopped = active.rows[stop > 0]
    out["kind"][: len(stopped)], out["job"][: len(stopped)] = PREEMPT, stopped
    return len(stopped)


def start_what_fits(view: View, notes: Notes, worth: Floats, out: Records) -> int:
    """Write a start: of the plan in its order, then of who fits, by falling `worth` [Q]."""
    count: int = first_start(worth, notes.step, notes.goal, view, np.asarray(out))
    return count


def wake(at: float, out: Records) -> int:
    """Write a wake at this time; none if it is infinite. How many decisions."""
    if at == np.inf:
        return 0
    out["kind"][0], out["at"][0] = WAKE, at
    return 1
