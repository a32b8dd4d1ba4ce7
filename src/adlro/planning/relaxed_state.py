"""The relaxed state: a copy of the state in which every preemptible run has been preempted.

Every run that is not pinned releases its GPUs and waits with the other jobs; a policy then starts
jobs in the copy one by one. Estimates include the restart cost where the plan would cause a
restart. The copy has its own job table of K rows: first the active jobs, so that the row of a job
is its index in `active`, then the recently arrived jobs that are no longer active. Other dimensions
as in active_jobs.py; M GPU models.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.placement import link_slice, place, release, relink_slice, unlink_slice
from adlro.model.state import DECISION, DEMAND, RUNNING, WAITING, WHOLE, Floats, Records
from adlro.model.timeline import span_factor
from adlro.model.view import RECENT, View
from adlro.planning.active_jobs import ActiveJobs, Indices

_MIN_SHARE = 0.1  # lower bound of a continued run's estimate, as a share of the original


class RelaxedState(NamedTuple):
    """The relaxed copy of the state, and the jobs that a policy has started in it so far."""

    seen: View  # jobs [K]; of queue and running the first counts[0] and counts[1] are in use
    out: Records  # [1] buffer for a decision
    counts: Indices  # [3] number of waiting, running and chosen jobs
    target: Indices  # [A] pools of the chosen jobs, -1 = not chosen
    order: Indices  # [A] order in which they were chosen


@njit
def pin_costly_restarts(active: ActiveJobs, jobs: Records, times: float) -> None:
    """Pin the runs whose estimated time left is below `times` times their restart cost."""
    for a in range(len(active.rows)):
        p = active.pool[a]
        if p >= 0 and active.seconds[a, p] < times * jobs[active.rows[a]].checkpoint:
            active.pinned[a] = True


@njit_allocating
def _table_rows(active: ActiveJobs, view: View) -> tuple[Indices, Indices]:
    """Choose the jobs of the new job table.

    Returns:
        For each row of the new table [K] the row of its job in the view's table; and for each of
        the last arrivals its row in the new table.
    """
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
def _restart_cost(a: int, active: ActiveJobs, jobs: Records) -> float:
    """Restart cost of job a on the scale of estimates, which are for the whole job.

    That is checkpoint / left, because estimates are multiplied by the share left; 0 if the next run
    of the job restores no checkpoint.
    """
    return max(jobs[active.rows[a]].checkpoint, 0.0) / active.left[a] if active.begun[a] else 0.0


@njit_allocating
def _estimates(stay: float, active: ActiveJobs, rows: Indices, view: View) -> Floats:
    """Estimates [K, M] for the new job table, including restart costs.

    rows [K]: rows of its jobs in the view's table. A job that starts from a checkpoint pays the
    restart cost; a run that moves to another GPU model also takes `stay` times as long, because the
    benefit of a move is uncertain. On the model where it runs, the restart cost is subtracted,
    because a run that continues avoids it.
    """
    est, pools = view.est, view.pools
    relaxed = np.empty((len(rows), est.shape[1]))
    for k in range(len(rows)):
        for m in range(est.shape[1]):
            relaxed[k, m] = est[rows[k], m]
    for a in range(len(active.rows)):
        if active.pinned[a]:
            continue
        j, cost = active.rows[a], _restart_cost(a, active, view.jobs)
        held = pools[active.pool[a]].model if active.pool[a] >= 0 else -1
        for m in range(est.shape[1]):
            if m == held:
                relaxed[a, m] = max(est[j, m] - cost, _MIN_SHARE * est[j, m])
            else:
                relaxed[a, m] = est[j, m] * (stay if held >= 0 else 1.0) + cost
    return relaxed


@njit
def _fill_queue(active: ActiveJobs, memory: Floats, relaxed: RelaxedState) -> None:
    """Fill the queue of the relaxed state with all jobs not pinned; memory as in `relax`."""
    queue, eligible, waiting = relaxed.seen.queue, relaxed.seen.eligible, 0
    for a in range(len(active.rows)):
        if not active.pinned[a]:
            queue[waiting].job, queue[waiting].left = a, active.left[a]
            for p in range(eligible.shape[1]):
                eligible[waiting, p] = memory[active.rows[a], p] > 0
            waiting += 1
    relaxed.counts[0] = waiting


@njit
def _fill_running(active: ActiveJobs, running: Records, relaxed: RelaxedState) -> None:
    """Fill the running records with the pinned runs, and release the GPUs of all other runs."""
    runs, jobs, gpus = relaxed.seen.running, relaxed.seen.jobs, relaxed.seen.gpus
    for a in range(len(active.rows)):
        r = active.run[a]
        if r >= 0:
            runs[r] = running[r]
            runs[r].job = a
            g = runs[r].gpu if jobs[a].share == WHOLE else -1
            while g >= 0:
                gpus[g].job = a
                g = gpus[g].next
    count = len(running)
    for r in range(len(running) - 1, -1, -1):  # the last record replaces a released one
        a = runs[r].job
        if not active.pinned[a]:
            release(runs[r], jobs, relaxed.seen.pools, relaxed.seen.nodes, gpus)
            if jobs[a].share < WHOLE:
                unlink_slice(r, runs, gpus)
            count -= 1
            runs[r] = runs[count]
            if r < count and jobs[runs[r].job].share < WHOLE:
                relink_slice(r, runs, gpus)
    relaxed.counts[1] = count


@njit_allocating
def relax(stay: float, active: ActiveJobs, memory: Floats, view: View) -> RelaxedState:
    """Build the relaxed state, in which only the pinned runs still run.

    stay: factor on the estimates of runs that move to another GPU model. memory [J, ...]: the rows
    of the policy's memory, which begin with the eligible pools as in `Notes`.
    """
    count = len(active.rows)
    rows, recent = _table_rows(active, view)
    seen = View(
        view.now, view.jobs[rows], _estimates(stay, active, rows, view), np.zeros(count, WAITING),
        np.zeros((count, len(view.pools)), np.bool_), np.zeros(count, RUNNING), view.pools.copy(),
        view.nodes.copy(), view.gpus.copy(), view.arrived, recent,
    )  # fmt: skip
    relaxed = RelaxedState(
        seen, np.zeros(1, DECISION), np.zeros(3, np.int64), np.full(count, -1), np.arange(count)
    )
    _fill_queue(active, memory, relaxed)
    _fill_running(active, view.running, relaxed)
    return relaxed


@njit_allocating
def relaxed_view(relaxed: RelaxedState) -> View:
    """Return the view of the relaxed state: its queue and running records in use."""
    view, waiting, running = relaxed.seen, relaxed.counts[0], relaxed.counts[1]
    return View(
        view.now, view.jobs, view.est, view.queue[:waiting], view.eligible[:waiting],
        view.running[:running], view.pools, view.nodes, view.gpus, view.arrived, view.recent,
    )  # fmt: skip


@njit_allocating
def start_chosen(active: ActiveJobs, relaxed: RelaxedState) -> None:
    """Start the job of the decision relaxed.out in the relaxed state, and store its pool."""
    view, answer, slot = relaxed.seen, relaxed.out[0], relaxed.counts[1]
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
    relaxed.counts[0] -= 1
    for k in range(q, relaxed.counts[0]):
        view.queue[k] = view.queue[k + 1]
        view.eligible[k, :] = view.eligible[k + 1, :]
    relaxed.target[a], relaxed.order[relaxed.counts[2]] = answer.pool, a
    relaxed.counts[1] += 1
    relaxed.counts[2] += 1


@njit
def complete_order(relaxed: RelaxedState) -> None:
    """Append the jobs that were not chosen to relaxed.order, the oldest first."""
    chosen = relaxed.counts[2]
    for a in range(len(relaxed.target)):
        if relaxed.target[a] < 0:
            relaxed.order[chosen] = a
            chosen += 1
