"""EASY backfilling on the fastest free pool: jobs may overtake, but never delay the oldest one.

The oldest job reserves the pool where it would end first; a younger one may start now if it uses
another pool, ends before the reservation, or fits beside it (POLICIES 1.1).
"""

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.encode.plan import fill_free_times, free_until
from adlro.model.room import fastest_feasible, fits, has_some, start


@njit
def _reservation(job, seconds, left, may, pools, times):
    """Pool and time of the head's reservation; seconds [M], may [P], times [G]."""
    best, pool, at = np.inf, -1, np.inf
    for p in range(len(pools)):
        if may[p] and pools[p].gpus >= job.gpus:
            first = pools[p].first_gpu
            ready = times[first + job.gpus - 1]
            if ready + seconds[pools[p].model] * left < best:
                best, pool, at = ready + seconds[pools[p].model] * left, p, ready
    return pool, at


@njit_allocating
def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
    """Start the head if it fits, else the first younger job that does not stand in its way."""
    if len(queue) == 0:
        return 0
    head = queue[0].job
    p = fastest_feasible(jobs[head], est[head], eligible[0], pools, nodes, gpus)
    if p >= 0:
        return start(out, head, p)
    gang, left, may = jobs[head].gpus, queue[0].left, eligible[0]
    scratch, spare = np.empty(len(gpus) + len(pools)), 0
    times, counts = scratch[: len(gpus)], scratch[len(gpus) :]
    fill_free_times(now, gang, jobs, running, pools, counts, times)
    reserved, at = _reservation(jobs[head], est[head], left, may, pools, times)
    if reserved >= 0:
        spare = free_until(reserved, at, now, jobs, running, pools) - gang
    for q in range(1, len(queue)):
        j = queue[q].job
        best, best_p = np.inf, -1
        for p in range(len(pools)):
            if eligible[q, p] and has_some(pools[p]):
                length = est[j, pools[p].model] * queue[q].left
                harmless = p != reserved or now + length <= at or jobs[j].gpus <= spare
                if harmless and length < best and fits(jobs[j], pools[p], nodes, gpus):
                    best, best_p = length, p
        if best_p >= 0:
            return start(out, j, best_p)
    return 0
