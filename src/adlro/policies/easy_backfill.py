"""EASY backfilling on the fastest free pool: jobs may overtake, but never delay the oldest one.

The oldest job reserves the pool where it would end first; a younger one may start now if it uses
another pool, ends before the reservation, or fits beside it (POLICIES 1.1).
"""

import numpy as np

from adlro.compiled import njit, njit_allocating, wide
from adlro.encode.plan import fill_free_times, free_until
from adlro.model.room import fastest_feasible, fits, has_some, start


@njit
def _reservation(view, times):
    """Pool and time of the head's reservation; times [G]."""
    est, eligible, pools = view.est, view.eligible, view.pools
    head, left = view.queue[0].job, view.queue[0].left
    job = view.jobs[head]
    best, pool, at = np.inf, -1, np.inf
    for p in range(len(pools)):
        if eligible[0, p] and pools[p].gpus >= job.gpus:
            first = pools[p].first_gpu
            ready = times[first + job.gpus - 1]
            end = ready + est[head, pools[p].model] * left
            if end < best:
                best, pool, at = end, p, ready
    return pool, at


@njit_allocating
def decide(view, params, memory, out):
    """Start the head if it fits, else the first younger job that does not stand in its way."""
    now, jobs, est, queue, eligible = view.now, view.jobs, view.est, view.queue, view.eligible
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    if len(queue) == 0:
        return 0
    head = queue[0].job
    p = fastest_feasible(wide(0), view)
    if p >= 0:
        return start(out, head, p)
    gang = wide(jobs[head].gpus)
    scratch, spare = np.empty(len(gpus) + len(pools)), 0
    times, counts = scratch[: len(gpus)], scratch[len(gpus) :]
    fill_free_times(gang, view, counts, times)
    reserved, at = _reservation(view, times)
    if reserved >= 0:
        spare = free_until(reserved, at, view) - gang
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
