"""Decisions that lead to given target pools: which runs to preempt, which jobs to start where.

Jobs are processed in the order of the policy. If a job does not fit on its target, runs there that
have another target are preempted; if that is not enough (plans count GPUs, not cores or memory),
also runs there that come later in the order. In both cases the runs that are last in the order are
preempted first, and no more than needed. If the job would still not fit, no run is preempted for
it. Runs that cannot checkpoint or are too young are never preempted. Then the planned jobs start,
and after them every other waiting job that fits, each on its fastest pool: no GPU stays idle while
a waiting job fits. The plan places by best fit; if the world places otherwise, a planned job that
does not fit on its target starts on another pool.

All preemptions form one answer, and each start is an answer: a start may close a pool to other jobs
(quotas), which the next call shows. Dimensions as in active_jobs.py; Q waiting jobs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.feasibility import fits, start
from adlro.model.placement import place, release
from adlro.model.state import DECISION, DEMAND, PREEMPT, WAKE, Counts, Floats, Mask, Records
from adlro.model.view import View
from adlro.planning.active_jobs import ActiveJobs, Indices, Notes


class ClusterCopy(NamedTuple):
    """Copies of the records that planned actions change; jobs are indexed as in `active`."""

    jobs: Records  # [A]
    running: Records  # [R]
    pools: Records
    nodes: Records
    gpus: Records


class TargetPlan(NamedTuple):
    """Order of the active jobs, and the target pool and present pool of each."""

    order: Indices  # [A] indices into `active`, the most important job first
    target: Indices  # [A] pools, -1 = none
    pinned: Mask  # [A] must not be preempted
    run: Indices  # [A] index in `running`, -1 = waits
    held: Indices  # [A] the pool where it runs, -1 = none; updated as actions are planned


@njit_allocating
def take_in_order(
    chosen: Counts, pools: Counts, width: Floats, room: Floats, target: Indices
) -> None:
    """Assign pools greedily: each of K pairs (job, pool) in turn, while the pool has enough GPUs.

    Args:
        chosen: [K] jobs of the pairs, the best pair first; a job may occur several times.
        pools: [K] pools of the pairs.
        width: [A] GPUs that a job holds.
        room: [P] GPUs available; reduced by those assigned.
        target: [A] pool of each job, filled in; -1 = none yet.
    """
    for k in range(len(chosen)):
        a, p = chosen[k], pools[k]
        if target[a] < 0 and width[a] <= room[p] + 1e-9:
            target[a] = p
            room[p] -= width[a]


@njit_allocating
def _copy_cluster(view: View, active: ActiveJobs) -> ClusterCopy:
    """Copy the records of a view that planned actions change.

    Jobs and runs refer to a job by its index in `active`.
    """
    running = view.running.copy()
    for a in range(len(active.rows)):
        if active.run[a] >= 0:
            running[active.run[a]].job = a
    return ClusterCopy(
        view.jobs[active.rows], running, view.pools.copy(), view.nodes.copy(), view.gpus.copy()
    )


@njit_allocating
def _copy_allocation(cluster: ClusterCopy) -> ClusterCopy:
    """Copy pools, nodes and GPUs; the jobs and runs, which do not change, are shared."""
    pools, nodes, gpus = cluster.pools.copy(), cluster.nodes.copy(), cluster.gpus.copy()
    return ClusterCopy(cluster.jobs, cluster.running, pools, nodes, gpus)


@njit
def _release(r: int, cluster: ClusterCopy) -> None:
    """Release everything that run r holds in the copy."""
    release(cluster.running[r], cluster.jobs, cluster.pools, cluster.nodes, cluster.gpus)


@njit
def _fits(a: int, p: int, cluster: ClusterCopy) -> bool:
    """True when job a fits on pool p of the copy."""
    return fits(cluster.jobs[a], cluster.pools[p], cluster.nodes, cluster.gpus)


@njit
def _fits_if_spared(
    k: int, stopped: Indices, spared: int, plan: TargetPlan, cluster: ClusterCopy
) -> bool:
    """True when the k-th job of the order fits its target without preempting stopped[spared].

    All other runs of `stopped` are released in `cluster`.
    """
    for i in range(len(stopped)):
        if i != spared and stopped[i] >= 0:
            _release(plan.run[stopped[i]], cluster)
    a = plan.order[k]
    return _fits(a, plan.target[a], cluster)


@njit_allocating
def _victims(k: int, plan: TargetPlan, cluster: ClusterCopy) -> Indices:
    """Jobs to preempt so that the k-th job of the order fits its target; empty if it cannot."""
    order, target = plan.order, plan.target
    a, p = order[k], target[order[k]]
    stopped, count, enough = np.empty(len(order), np.int64), 0, False
    after = _copy_allocation(cluster)
    for i in range(2 * len(order)):  # first runs with another target, then those after job k
        has_this_target, rank = i >= len(order), len(order) - 1 - i % len(order)
        b = order[rank]
        if enough or (has_this_target and rank <= k):
            break
        if plan.held[b] == p and (target[b] == p) == has_this_target and not plan.pinned[b]:
            _release(plan.run[b], after)
            stopped[count] = b
            count += 1
            enough = _fits(a, p, after)
    if not enough:
        return stopped[:0]
    for i in range(count - 1):  # spare the runs whose preemption turns out not to be needed
        if _fits_if_spared(k, stopped[:count], i, plan, _copy_allocation(cluster)):
            stopped[i] = -1
    victims = stopped[:count]
    return victims[victims >= 0]


@njit_allocating
def plan_actions(
    order: Indices, target: Indices, active: ActiveJobs, view: View
) -> tuple[Indices, Indices]:
    """Plan the preemptions and starts that lead to the targets.

    Args:
        order: [A] indices into `active`, the most important job first.
        target: [A] pools, -1 = none.
        active: the active jobs.
        view: the present view.

    Returns:
        stop [A], 1 = preempt this job; step [A], rank among the planned starts, 0 = none.
    """
    cluster = _copy_cluster(view, active)
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
def _where_to_start(q: int, goal: int, view: View) -> int:
    """Pool where the job at queue position q should start now; -1 if it fits nowhere.

    This is `goal` (-1 = none) if the job can start there, else its fastest eligible pool with room.
    """
    waiting, eligible = view.queue[q], view.eligible[q]
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    job, seconds = view.jobs[waiting.job], view.est[waiting.job]
    goal_allowed = goal >= 0 and eligible[goal] and seconds[pools[goal].model] < np.inf
    if goal_allowed and fits(job, pools[goal], nodes, gpus):
        return goal
    best, found = np.inf, -1
    for p in range(len(pools)):
        need = seconds[pools[p].model] * waiting.left
        if eligible[p] and need < best and fits(job, pools[p], nodes, gpus):
            best, found = need, p
    return found


@njit_allocating
def first_start(worth: Floats, steps: Floats, goals: Floats, view: View, out: Records) -> int:
    """Write the start of the first job that can start, ordered by step, then worth, then age.

    Args:
        worth: [Q] score of jobs without a step, the largest first.
        steps: [J] rank among the planned starts, 0 = not planned.
        goals: [J] target pools of the planned jobs.
        view: the present view.
        out: buffer for the decision.

    Returns:
        Number of decisions written.
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
    view: View, notes: Notes, active: ActiveJobs, target: Indices, order: Indices, out: Records
) -> int:
    """Write the preemptions that lead to the targets, and store the planned starts in `notes`.

    target, order [A] as in `plan_actions`.

    Returns:
        Number of preemptions written.
    """
    stop, step = plan_actions(order, target, active, view)
    notes.step[active.rows], notes.goal[active.rows] = step, target
    stopped = active.rows[stop > 0]
    out["kind"][: len(stopped)], out["job"][: len(stopped)] = PREEMPT, stopped
    return len(stopped)


def start_what_fits(view: View, notes: Notes, worth: Floats, out: Records) -> int:
    """Write one start; returns the number of decisions written (0 or 1).

    The first planned job that can start has precedence; without one, the job with the largest worth
    [Q] of those that fit.
    """
    count: int = first_start(worth, notes.step, notes.goal, view, np.asarray(out))
    return count


def wake(at: float, out: Records) -> int:
    """Write a request to be called at this time, none if it is infinite; returns 1 or 0."""
    if at == np.inf:
        return 0
    out["kind"][0], out["at"][0] = WAKE, at
    return 1
