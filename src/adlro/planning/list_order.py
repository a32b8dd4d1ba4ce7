"""Steps of a plan whose jobs go in another order than Min-Min's; each such policy has its own.

The plan is that of planning/min_min.py: expected free times [G], sorted within each pool.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating, wide
from adlro.model.feasibility import any_feasible, fits
from adlro.model.state import WHOLE, Floats, Mask, Records, Row
from adlro.model.view import View
from adlro.planning.min_min import asked, fill_free_times, ready_time, reserve

BY_END, BY_LOSS, BY_WEIGHT = range(3)  # what makes a job go next, see `largest_first_start`
_LEAST_PRIORITY = 0.01  # a job of less counts as this


class Best(NamedTuple):
    """A job's best pool in the plan."""

    end: float  # smallest expected completion; infinite if no pool can take the job
    pool: int  # where
    second: float  # smallest on any other pool; infinite if there is none


@njit
def may_start(first: int, view: View, counts: Floats, times: Floats) -> bool:
    """False when the plan has no free GPU left and no slice waits: then nothing starts now.

    Of the queue only the places from `first` on count.
    """
    now, jobs, queue, pools = view.now, view.jobs, view.queue, view.pools
    for p in range(len(pools)):
        if counts[p] > 0 and times[pools[p].first_gpu] <= now:
            return True
    slices = 0
    for q in range(first, len(queue)):
        slices += jobs[queue[q].job].share < WHOLE
    return slices > 0


@njit
def best_in_plan(q: int, view: View, times: Floats) -> Best:
    """Where the plan as it stands would complete the job at queue place q first; times [G]."""
    now, est, eligible, pools = view.now, view.est, view.eligible, view.pools
    nodes, gpus, j, left = view.nodes, view.gpus, view.queue[q].job, view.queue[q].left
    job = view.jobs[j]
    end, pool, second = np.inf, 0, np.inf
    for p in range(len(pools)):
        if eligible[q, p]:
            ready = ready_time(now, job, pools[p], nodes, gpus, times)
            other = ready + est[j, pools[p].model] * left
            if other < end:
                end, pool, second = other, p, end
            elif other < second:
                second = other
    return Best(end, pool, second)


@njit
def is_due(job: Row, pool: Row, view: View, times: Floats) -> bool:
    """True when the plan has a job start on a pool now and it truly fits."""
    now, nodes, gpus = view.now, view.nodes, view.gpus
    due: bool = ready_time(now, job, pool, nodes, gpus, times) <= now
    return due and fits(job, pool, nodes, gpus)


@njit
def hold(job: Row, best: Best, pools: Records, counts: Floats, times: Floats) -> None:
    """Let a job hold its place in the plan until it is completed."""
    gang = wide(job.gpus)
    reserve(pools[best.pool].first_gpu, int(counts[best.pool]), gang, best.end, times)


@njit
def _worth(rule: int, now: float, job: Row, best: Best) -> float:
    """What the rule makes of a job: the largest goes next."""
    if rule == BY_LOSS:
        lost: float = np.rint((best.second - best.end) * 1e6)
        return lost
    if rule == BY_WEIGHT:
        late: float = (now - best.end) / np.sqrt(max(job.priority, _LEAST_PRIORITY))
        return late
    return best.end


@njit
def _largest(rule: int, view: View, times: Floats, planned: Mask) -> tuple[int, Best]:
    """Queue place of the job to plan next, or -1, and its best pool; planned [Q]."""
    now, jobs, queue = view.now, view.jobs, view.queue
    next_q, most, chosen = -1, -np.inf, Best(np.inf, 0, np.inf)
    for q in range(len(queue)):
        if not planned[q]:
            best = best_in_plan(q, view, times)
            if best.end < np.inf:
                worth = _worth(rule, now, jobs[queue[q].job], best)
                if worth > most or (worth == most and best.end < chosen.end):
                    next_q, most, chosen = q, worth, best
    return next_q, chosen


@njit
def _first_start(
    rule: int, view: View, times: Floats, counts: Floats, planned: Mask
) -> tuple[int, int]:
    """See `largest_first_start`, which brings the scratch: times [G], counts [P], planned [Q]."""
    jobs, queue, pools = view.jobs, view.queue, view.pools
    fill_free_times(asked(jobs, queue), view, counts, times)
    while may_start(wide(0), view, counts, times):
        q, best = _largest(rule, view, times, planned)
        if q < 0:
            break
        job = jobs[queue[q].job]
        if is_due(job, pools[best.pool], view, times):
            return q, best.pool
        hold(job, best, pools, counts, times)
        planned[q] = True
    return -1, -1


@njit_allocating
def _with_scratch(rule: int, view: View) -> tuple[int, int]:
    times, counts = np.empty(len(view.gpus)), np.empty(len(view.pools))
    return _first_start(rule, view, times, counts, np.zeros(len(view.queue), np.bool_))


@njit
def largest_first_start(rule: int, view: View) -> tuple[int, int]:
    """Queue place and pool of the first start in a plan, largest first; (-1, -1) if all wait.

    By smallest completion (BY_END); by the loss between that and the second smallest (BY_LOSS); or
    by the time until then, negative, over the root of the priority (BY_WEIGHT). Of equals the
    earlier completion goes first, then the older job; all are computed anew after each job planned.
    Losses count in whole microseconds: on two pools of one model those of all jobs are equal but
    for rounding, which must not decide.
    """
    if not any_feasible(view):
        return -1, -1
    return _with_scratch(rule, view)
