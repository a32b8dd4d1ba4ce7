"""List scheduling in other orders than Min-Min's (MCT, Max-Min, sufferage, weighted Min-Min).

The plan has the format of planning/min_min.py: expected free times [G], sorted within each pool.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating, wide
from adlro.model.feasibility import any_feasible, fits
from adlro.model.state import WHOLE, Floats, Mask, Records, Row
from adlro.model.view import View
from adlro.planning.min_min import fill_plan, is_plain, plain_ready_time, ready_time, reserve

BY_END, BY_LOSS, BY_WEIGHT = range(3)  # rules for the next job, see `largest_first_start`
_MIN_PRIORITY = 0.01  # lower priorities count as this


class Best(NamedTuple):
    """Pool where a job completes first in the plan, and its completions there and elsewhere."""

    end: float  # smallest expected completion; infinite if no pool can hold the job
    pool: int  # the pool of this completion
    second: float  # smallest completion on any other pool; infinite if there is none


@njit
def may_start(first: int, view: View, counts: Floats, times: Floats) -> bool:
    """False when no job can start now: the plan has no free GPU left and no slice waits.

    Only slices from queue position `first` on are considered.
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
def best_in_plan(q: int, view: View, times: Floats, one_node: Floats) -> Best:
    """Find the pool where the job at queue position q completes first in the plan.

    times [G]: expected free times of the plan; one_node [G]: from `fill_plan`.
    """
    est, eligible, pools = view.est, view.eligible, view.pools
    j, left = view.queue[q].job, view.queue[q].left
    job, plain = view.jobs[j], is_plain(view.jobs[j])
    end, pool, second = np.inf, 0, np.inf
    for p in range(len(pools)):
        if eligible[q, p]:
            if plain:
                ready = plain_ready_time(job, pools[p], times)
            else:
                ready = ready_time(job, pools[p], view, times, one_node)
            other = ready + est[j, pools[p].model] * left
            if other < end:
                end, pool, second = other, p, end
            elif other < second:
                second = other
    return Best(end, pool, second)


@njit
def is_due(job: Row, pool: Row, view: View, times: Floats, one_node: Floats) -> bool:
    """True when the plan starts the job on the pool now, and the job fits there."""
    due: bool = ready_time(job, pool, view, times, one_node) <= view.now
    return due and fits(job, pool, view.nodes, view.gpus)


@njit
def hold(job: Row, best: Best, pools: Records, counts: Floats, times: Floats) -> None:
    """Reserve the GPUs of a job on its best pool in the plan, until its completion."""
    gang = wide(job.gpus)
    reserve(pools[best.pool].first_gpu, int(counts[best.pool]), gang, best.end, times)


@njit
def _score(rule: int, now: float, job: Row, best: Best) -> float:
    """Score of a job by the rule; the job with the largest score is planned next."""
    if rule == BY_LOSS:
        sufferage: float = np.rint((best.second - best.end) * 1e6)
        return sufferage
    if rule == BY_WEIGHT:
        weighted: float = (now - best.end) / np.sqrt(max(job.priority, _MIN_PRIORITY))
        return weighted
    return best.end


@njit
def _largest(
    rule: int, view: View, times: Floats, one_node: Floats, planned: Mask
) -> tuple[int, Best]:
    """Queue position of the unplanned job with the largest score, and its best pool.

    -1 if no pool can hold any of these jobs. planned [Q]: jobs that are planned already.
    """
    now, jobs, queue = view.now, view.jobs, view.queue
    next_q, largest, chosen = -1, -np.inf, Best(np.inf, 0, np.inf)
    for q in range(len(queue)):
        if not planned[q]:
            best = best_in_plan(q, view, times, one_node)
            if best.end < np.inf:
                score = _score(rule, now, jobs[queue[q].job], best)
                if score > largest or (score == largest and best.end < chosen.end):
                    next_q, largest, chosen = q, score, best
    return next_q, chosen


@njit
def _first_start(
    rule: int, view: View, times: Floats, one_node: Floats, counts: Floats, planned: Mask
) -> tuple[int, int]:
    """As `largest_first_start`, with scratch times and one_node [G], counts [P], planned [Q]."""
    jobs, queue, pools = view.jobs, view.queue, view.pools
    fill_plan(view, counts, times, one_node)
    while may_start(wide(0), view, counts, times):
        q, best = _largest(rule, view, times, one_node, planned)
        if q < 0:
            break
        job = jobs[queue[q].job]
        if is_due(job, pools[best.pool], view, times, one_node):
            return q, best.pool
        hold(job, best, pools, counts, times)
        planned[q] = True
    return -1, -1


@njit_allocating
def _with_scratch(rule: int, view: View) -> tuple[int, int]:
    total, planned = len(view.gpus), np.zeros(len(view.queue), np.bool_)
    scratch = np.empty(2 * total + len(view.pools))
    times, one_node, counts = scratch[:total], scratch[total : 2 * total], scratch[2 * total :]
    return _first_start(rule, view, times, one_node, counts, planned)


@njit
def largest_first_start(rule: int, view: View) -> tuple[int, int]:
    """Queue position and pool of the first job to start now, by falling score; (-1, -1) if none.

    The score is the smallest completion (BY_END); the difference between the second smallest and
    the smallest completion, the sufferage (BY_LOSS); or the negative time until completion over the
    square root of the priority (BY_WEIGHT). Ties go to the earlier completion, then to the older
    job. Scores are recomputed after each planned job. Sufferage is rounded to microseconds: on two
    pools of one model it is equal for all jobs except for rounding errors, which must not decide.
    """
    if not any_feasible(view):
        return -1, -1
    return _with_scratch(rule, view)
