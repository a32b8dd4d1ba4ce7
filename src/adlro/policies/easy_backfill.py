"""EASY backfilling on the fastest free pool: jobs may overtake, but never delay the oldest one.

The oldest job reserves the pool where it would end first; a younger one may start now if it uses
another pool, ends before the reservation, or fits beside it (POLICIES 1.1).
"""

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.encode.plan import fill_free_times
from adlro.model.room import fastest_feasible, fits, start


@njit
def _reservation(job, seconds, left, may, pools, times):
    """Pool, time and spare GPUs of the head's reservation; seconds [M], may [P], times [G]."""
    best, pool, at, spare = np.inf, -1, np.inf, 0
    for p in range(len(pools)):
        if may[p] and pools[p].gpus >= job.gpus:
            first = pools[p].first_gpu
            ready = times[first + job.gpus - 1]
            if ready + seconds[pools[p].model] * left < best:
                best, pool, at = ready + seconds[pools[p].model] * left, p, ready
                spare = -job.gpus
                for i in range(first, first + pools[p].gpus):
                    if times[i] <= ready:
                        spare += 1
    return pool, at, spare


@njit_allocating
def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
    """Start the head if it fits, else the first younger job that does not stand in its way."""
    if len(queue) == 0:
        return 0
    head = queue[0].job
    p = fastest_feasible(jobs[head], est[head], eligible[0], pools, nodes)
    if p >= 0:
        return start(out, head, p)
    times = np.empty(len(gpus))
    fill_free_times(now, jobs, running, pools, times)
    left = queue[0].left
    reserved, at, spare = _reservation(jobs[head], est[head], left, eligible[0], pools, times)
    for q in range(1, len(queue)):
        j = queue[q].job
        best, best_p = np.inf, -1
        for p in range(len(pools)):
            if eligible[q, p] and pools[p].free > 0:
                length = est[j, pools[p].model] * queue[q].left
                harmless = p != reserved or now + length <= at or jobs[j].gpus <= spare
                if harmless and length < best and fits(jobs[j], pools[p], nodes):
                    best, best_p = length, p
        if best_p >= 0:
            return start(out, j, best_p)
    return 0
