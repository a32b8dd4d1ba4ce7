"""EASY backfilling: jobs may overtake the oldest job if they do not delay its expected start.

The oldest job has a reservation on the pool where it would end first. A younger job may start now
if it uses another pool, ends before the reserved time, or leaves enough GPUs for the reservation;
it starts on the fastest such pool. Lifka 1995 (JSSPP); Mu'alem and Feitelson 2001 (IEEE TPDS).
"""

import numpy as np

from adlro.compiled import njit, wide
from adlro.model.feasibility import fastest_feasible, fits, has_free, start
from adlro.planning.min_min import fill_free_times, free_until


def memory(context):
    """Length of the memory: scratch for the times when GPUs become free; nothing is stored."""
    return len(context.gpus) + len(context.pools)


@njit
def _reservation(view, times):
    """Return pool and time of the oldest job's reservation; pool -1 = no pool can ever hold it.

    times [G]: when the GPUs become free, sorted within each pool.
    """
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


@njit
def _backfill(reserved, at, spare, view):
    """Return queue position and pool of the first younger job that may start now, or (-1, -1).

    reserved, at: pool and time of the oldest job's reservation; spare: GPUs of that pool that the
    reservation leaves free.
    """
    now, jobs, est, queue, eligible = view.now, view.jobs, view.est, view.queue, view.eligible
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    for q in range(1, len(queue)):
        j = queue[q].job
        best, best_p = np.inf, -1
        for p in range(len(pools)):
            if eligible[q, p] and has_free(pools[p]):
                length = est[j, pools[p].model] * queue[q].left
                harmless = p != reserved or now + length <= at or jobs[j].gpus <= spare
                if harmless and length < best and fits(jobs[j], pools[p], nodes, gpus):
                    best, best_p = length, p
        if best_p >= 0:
            return q, best_p
    return -1, -1


@njit
def decide(view, params, memory, out):
    """Start the oldest job if it fits, else the first younger job that does not delay it."""
    queue, gpus, spare = view.queue, len(view.gpus), 0
    if len(queue) == 0:
        return 0
    p = fastest_feasible(wide(0), view)
    if p >= 0:
        return start(out, queue[0].job, p)
    times, counts = memory[:gpus], memory[gpus:]
    gang = wide(view.jobs[queue[0].job].gpus)
    fill_free_times(gang, view, counts, times)
    reserved, at = _reservation(view, times)
    if reserved >= 0:
        spare = free_until(reserved, at, view) - gang
    q, p = _backfill(reserved, at, spare, view)
    return start(out, queue[q].job, p) if q >= 0 else 0
