"""The state as if all that can be stopped had been: copies for a policy to plan in. Not a policy.

Whoever can be stopped gives its GPUs back and waits with the others; then jobs are chosen one after
the other. Estimates are such that a restart is paid for where the plan would cause it. The copies
have a table of jobs of their own: first the active ones, so that the row of a job is its place in
`active`, then those of the last arrivals that are no longer active. Dimensions as in active.py;
K rows of that table.
"""

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.placement import link_slice, place, release, relink_slice, unlink_slice
from adlro.model.state import DECISION, DEMAND, RUNNING, WAITING, WHOLE, Records
from adlro.model.timeline import span_factor
from adlro.model.view import RECENT, View
from adlro.planning.active_jobs import Indices

_LEAST = 0.1  # of a run's time left that counts at least


class RelaxedState(NamedTuple):
    """The copies, and what was chosen in them."""

    seen: View  # jobs [K]; of queue and running the first counts[0] and counts[1] are in use
    out: Records  # [1]
    counts: Indices  # [3] who waits, who runs, who was chosen
    target: Indices  # [A] pools of those chosen, -1 = not
    order: Indices  # [A] in which they were


@njit
def pin_costly_restarts(active, jobs, times):
    """Pin the runs that have less left than so many times what a restart costs them."""
    for a in range(len(active.rows)):
        p = active.pool[a]
        if p >= 0 and active.seconds[a, p] < times * jobs[active.rows[a]].checkpoint:
            active.pinned[a] = True


@njit_allocating
def _listed(active, view):
    """Rows [K] of the view that the copies' table is made of, and in that the last arrivals."""
    jobs, count = view.jobs, len(active.rows)
    last = view.recent[max(len(view.recent) - RECENT, 0) :]
    rows, recent = np.empty(count + len(last), np.int64), np.empty(len(last), np.int64)
    rows[:count] = active.rows
    total, a = count, 0
    for k in range(len(last)):
        while a < count and jobs[active.rows[a]].id < jobs[last[k]].id:  # both: oldest first
            a += 1
        if a < count and active.rows[a] == last[k]:
            recent[k] = a
        else:
            rows[total], recent[k] = last[k], total
            total += 1
    return rows[:total], recent


@njit
def _restart(a, active, jobs):
    """Cost of a restart as a share of all that the job has to do, as estimates are."""
    return max(jobs[active.rows[a]].checkpoint, 0.0) / active.left[a] if active.begun[a] else 0.0


@njit_allocating
def _estimates(stay, active, rows, view):
    """Estimates [K, M] for the rows, with restarts.

    Who starts from a checkpoint pays for it, and who moves takes `stay` times as long besides, for
    moves are not free of doubt. Who goes on saves the restart that it would need later.
    """
    est, pools = view.est, view.pools
    own = np.empty((len(rows), est.shape[1]))
    for k in range(len(rows)):
        for m in range(est.shape[1]):
            own[k, m] = est[rows[k], m]
    for a in range(len(active.rows)):
        if active.pinned[a]:
            continue
        j, cost = active.rows[a], _restart(a, active, view.jobs)
        held = pools[active.pool[a]].model if active.pool[a] >= 0 else -1
        for m in range(est.shape[1]):
            if m == held:
                own[a, m] = max(est[j, m] - cost, _LEAST * est[j, m])
            else:
                own[a, m] = est[j, m] * (stay if held >= 0 else 1.0) + cost
    return own


@njit
def _fill_queue(active, may, then):
    """Fill in those who wait: all that is not pinned; may [J, ...] as in as_if_stopped."""
    queue, eligible, waiting = then.seen.queue, then.seen.eligible, 0
    for a in range(len(active.rows)):
        if not active.pinned[a]:
            queue[waiting].job, queue[waiting].left = a, active.left[a]
            for p in range(eligible.shape[1]):
                eligible[waiting, p] = may[active.rows[a], p] > 0
            waiting += 1
    then.counts[0] = waiting


@njit
def _fill_running(active, running, then):
    """Fill in those who go on: all that is pinned."""
    own, jobs, gpus = then.seen.running, then.seen.jobs, then.seen.gpus
    for a in range(len(active.rows)):
        r = active.run[a]
        if r >= 0:
            own[r] = running[r]
            own[r].job = a
            g = own[r].gpu if jobs[a].share == WHOLE else -1
            while g >= 0:
                gpus[g].job = a
                g = gpus[g].next
    going = len(running)
    for r in range(len(running) - 1, -1, -1):  # the last takes the place of who leaves
        a = own[r].job
        if not active.pinned[a]:
            release(own[r], jobs, then.seen.pools, then.seen.nodes, gpus)
            if jobs[a].share < WHOLE:
                unlink_slice(r, own, gpus)
            going -= 1
            own[r] = own[going]
            if r < going and jobs[own[r].job].share < WHOLE:
                relink_slice(r, own, gpus)
    then.counts[1] = going


@njit_allocating
def relax(stay, active, may, view):
    """The state of all active jobs, of whom only the pinned still run.

    `stay` as in _estimates; rows of may [J, ...] begin with where a job may run, as in Notes.
    """
    count = len(active.rows)
    rows, recent = _listed(active, view)
    own = View(
        view.now, view.jobs[rows], _estimates(stay, active, rows, view), np.zeros(count, WAITING),
        np.zeros((count, len(view.pools)), np.bool_), np.zeros(count, RUNNING), view.pools.copy(),
        view.nodes.copy(), view.gpus.copy(), view.arrived, recent,
    )  # fmt: skip
    then = RelaxedState(
        own, np.zeros(1, DECISION), np.zeros(3, np.int64), np.full(count, -1), np.arange(count)
    )
    _fill_queue(active, may, then)
    _fill_running(active, view.running, then)
    return then


@njit_allocating
def relaxed_view(then):
    """The view of those who wait and run as if."""
    view, waiting, going = then.seen, then.counts[0], then.counts[1]
    return View(
        view.now, view.jobs, view.est, view.queue[:waiting], view.eligible[:waiting],
        view.running[:going], view.pools, view.nodes, view.gpus, view.arrived, view.recent,
    )  # fmt: skip


@njit_allocating
def start_chosen(active, then):
    """Start the job of then.out in the copies, and note its target."""
    view, answer, slot = then.seen, then.out[0], then.counts[1]
    a, pool, run = answer.job, view.pools[answer.pool], view.running[slot]
    demands = np.zeros(0, DEMAND)
    run.gpu, run.nodes = place(answer, view.jobs, demands, view.pools, view.nodes, view.gpus)
    run.job, run.pool, run.start, run.left = a, answer.pool, view.now, active.left[a]
    seconds = view.est[a, pool.model] * active.left[a]
    run.expected = view.now + seconds * span_factor(run, view.jobs[a], pool)
    if view.jobs[a].share < WHOLE:
        link_slice(slot, view.running, view.gpus)
    q = 0
    while view.queue[q].job != a:
        q += 1
    then.counts[0] -= 1
    for k in range(q, then.counts[0]):
        view.queue[k] = view.queue[k + 1]
        view.eligible[k, :] = view.eligible[k + 1, :]
    then.target[a], then.order[then.counts[2]] = answer.pool, a
    then.counts[1] += 1
    then.counts[2] += 1


@njit
def complete_order(then):
    """Put those who were not chosen behind those who were, the oldest first."""
    chosen = then.counts[2]
    for a in range(len(then.target)):
        if then.target[a] < 0:
            then.order[chosen] = a
            chosen += 1
