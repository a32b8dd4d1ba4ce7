"""The Min-Min plan: who would run where and when, if all waiting jobs were placed by estimates.

A plan is one array of expected free times, [G], sorted within each pool: pool p owns
times[p.first_gpu : p.first_gpu + p.gpus].
"""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.room import any_feasible, expected_end, fits
from adlro.model.state import Floats, Mask, Records, Row


@njit
def free_gpus(pools: Records) -> int:
    """How many GPUs of the cluster have nothing on them."""
    count = 0
    for p in range(len(pools)):
        count += pools[p].free
    return count


@njit
def _sort(times: Floats, first: int, end: int) -> None:
    """Sort times[first:end] in place, by Shell's method: no recursion, quick on a few numbers."""
    gap = 1
    while 9 * gap < end - first:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, end):
            value, k = times[i], i
            while k >= first + gap and times[k - gap] > value:
                times[k] = times[k - gap]
                k -= gap
            times[k] = value
        gap = gap // 3


@njit
def fill_free_times(
    now: float, jobs: Records, running: Records, pools: Records, times: Floats
) -> None:
    """Write the expected free time of every GPU, sorted within each pool; free = now, times [G]."""
    for p in range(len(pools)):
        first = pools[p].first_gpu
        end = first + pools[p].free
        for i in range(first, end):
            times[i] = now
        for r in range(len(running)):
            if running[r].pool == p:
                ready = expected_end(running[r], now)
                for k in range(end, end + jobs[running[r].job].gpus):
                    times[k] = ready
                end += jobs[running[r].job].gpus
        _sort(times, first + pools[p].free, end)


@njit
def reserve(pool: Row, gpus: int, until: float, times: Floats) -> None:
    """Replace the `gpus` smallest free times of a pool by `until`."""
    i = pool.first_gpu + gpus
    while i < pool.first_gpu + pool.gpus and times[i] <= until:
        times[i - gpus] = times[i]
        i += 1
    for k in range(i - gpus, i):
        times[k] = until


@njit
def completions(
    places: tuple[int, int],
    jobs: Records,
    est: Floats,
    queue: Records,
    eligible: Mask,
    pools: Records,
    times: Floats,
    ends: Floats,
    choice: Floats,
) -> None:
    """Write, for a range of queue places, the smallest expected completion and its pool.

    Shapes: times [G], ends and choice [Q]; a job that no pool can take ends at infinity.
    """
    for q in range(places[0], places[1]):
        j, left = queue[q].job, queue[q].left
        gang = jobs[j].gpus
        best, best_pool = np.inf, 0
        for p in range(len(pools)):
            pool = pools[p]
            if eligible[q, p] and pool.gpus >= gang:
                end = times[pool.first_gpu + gang - 1] + est[j, pool.model] * left
                if end < best:
                    best, best_pool = end, p
        ends[q], choice[q] = best, best_pool


@njit
def _earliest(ends: Floats) -> int:
    """Place of the smallest number; the first of equals."""
    best, place = ends[0], 0
    for q in range(1, len(ends)):
        if ends[q] < best:
            best, place = ends[q], q
    return place


@njit
def _first_start(
    now: float,
    jobs: Records,
    est: Floats,
    queue: Records,
    eligible: Mask,
    running: Records,
    pools: Records,
    nodes: Records,
    gpus: Records,
    scratch: Floats,
) -> tuple[int, int]:
    """Plan job after job until one starts now; scratch holds G + 2 Q numbers.

    Completions only grow as the plan fills up, so a stale one is a lower bound: the job with the
    smallest is recomputed until its value stands. That is the same order as recomputing all.
    """
    total, count = len(gpus), len(queue)
    times, ends = scratch[:total], scratch[total : total + count]
    choice = scratch[total + count : total + 2 * count]
    fill_free_times(now, jobs, running, pools, times)
    completions((0, count), jobs, est, queue, eligible, pools, times, ends, choice)
    free = free_gpus(pools)  # GPUs that the plan still has free now
    while free > 0:
        q = _earliest(ends)
        if ends[q] == np.inf:
            break
        j, p = queue[q].job, int(choice[q])
        pool, gang = pools[p], jobs[j].gpus
        ready = times[pool.first_gpu + gang - 1]
        if ready + est[j, pool.model] * queue[q].left > ends[q]:
            completions((q, q + 1), jobs, est, queue, eligible, pools, times, ends, choice)
            continue
        if ready <= now and fits(jobs[j], pool, nodes):
            return q, p
        for k in range(pool.first_gpu, pool.first_gpu + gang):
            if times[k] <= now:
                free -= 1
        reserve(pool, gang, ends[q], times)
        ends[q] = np.inf
    return -1, -1


@njit_allocating
def _long_queue_start(
    now: float,
    jobs: Records,
    est: Floats,
    queue: Records,
    eligible: Mask,
    running: Records,
    pools: Records,
    nodes: Records,
    gpus: Records,
) -> tuple[int, int]:
    scratch = np.empty(len(gpus) + 2 * len(queue))
    return _first_start(now, jobs, est, queue, eligible, running, pools, nodes, gpus, scratch)


def scratch_size(gpus: int) -> int:
    """How many numbers of scratch spare an everyday queue an allocation of its own."""
    return gpus + 2 * 128


@njit
def min_min_start(
    now: float,
    jobs: Records,
    est: Floats,
    queue: Records,
    eligible: Mask,
    running: Records,
    pools: Records,
    nodes: Records,
    gpus: Records,
    scratch: Floats,
) -> tuple[int, int]:
    """Queue place and pool of the first start in the Min-Min plan; (-1, -1) if all should wait."""
    if not any_feasible(jobs, queue, eligible, pools, nodes):
        return -1, -1
    if len(scratch) < len(gpus) + 2 * len(queue):
        return _long_queue_start(now, jobs, est, queue, eligible, running, pools, nodes, gpus)
    return _first_start(now, jobs, est, queue, eligible, running, pools, nodes, gpus, scratch)
