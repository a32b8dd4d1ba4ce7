"""The Min-Min plan of all waiting jobs by estimates: pool and start time of each.

Min-Min plans the job with the smallest expected completion next. A plan is one array of expected
free times, [G], sorted within each pool from times[p.first_gpu] on. For each pool only the earliest
times are stored, as many as the waiting jobs require in total.
"""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit, njit_allocating, njit_apart, wide
from adlro.model.feasibility import any_feasible, expected_end, fits
from adlro.model.state import WHOLE, Floats, Records, Row
from adlro.model.view import View

_MAX_SCAN = 24  # up to this length a scan is faster than a heap


@njit
def _possible_starts(jobs: Records, queue: Records, pools: Records) -> int:
    """Upper bound of the number of jobs that can start now: free GPUs plus waiting slices.

    A slice may start where no GPU is free.
    """
    count = 0
    for p in range(len(pools)):
        count += pools[p].free
    for q in range(len(queue)):
        count += jobs[queue[q].job].share < WHOLE
    return count


@njit
def asked(jobs: Records, queue: Records) -> int:
    """Number of GPUs that all waiting jobs request; a slice counts as one."""
    count = 0
    for q in range(len(queue)):
        count += jobs[queue[q].job].gpus
    return count


@njit
def _sink(times: Floats, first: int, k: int, count: int) -> None:
    """Sift entry k down in the max-heap times[first : first + count]."""
    value = times[first + k]
    while 2 * k + 1 < count:
        below = 2 * k + 1
        if below + 1 < count and times[first + below + 1] > times[first + below]:
            below += 1
        if times[first + below] <= value:
            break
        times[first + k] = times[first + below]
        k = below
    times[first + k] = value


@njit
def _insert(ready: float, gpus: int, first: int, count: int, limit: int, times: Floats) -> int:
    """Insert a time `gpus` times into a sorted list of the earliest times; returns its length.

    The list is times[first : first + count]; it holds at most `limit` times.
    """
    while gpus > 0 and (count < limit or ready < times[first + count - 1]):
        k = min(count, limit - 1)
        while k > 0 and times[first + k - 1] > ready:
            times[first + k] = times[first + k - 1]
            k -= 1
        times[first + k] = ready
        count = min(count + 1, limit)
        gpus -= 1
    return count


@njit_apart
def _keep_earliest(
    ready: float, gpus: int, first: int, count: int, limit: int, times: Floats
) -> int:
    """Insert a time `gpus` times into a max-heap of the earliest times; returns its size.

    The heap is times[first : first + count]; it holds at most `limit` times.
    """
    while gpus > 0 and count < limit:
        k = count
        while k > 0 and times[first + ((k - 1) >> 1)] < ready:
            times[first + k] = times[first + ((k - 1) >> 1)]
            k = (k - 1) >> 1
        times[first + k] = ready
        count += 1
        gpus -= 1
    while gpus > 0 and count > 0 and ready < times[first]:
        times[first] = ready
        _sink(times, first, 0, count)
        gpus -= 1
    return count


@njit_apart
def _sort_heap(times: Floats, first: int, count: int) -> None:
    for end in range(count - 1, 0, -1):
        last = times[first + end]
        times[first + end] = times[first]
        times[first] = last
        _sink(times, first, 0, end)


@njit_apart
def _last_slice_end(slot: int, now: float, running: Records) -> float:
    """Expected time when the GPU of a slice is free: the latest end of all slices on it.

    Infinite unless the run `slot` is first in the GPU's list of slices, so that the GPU counts
    once.
    """
    if running[slot].before >= 0:
        return np.inf
    latest = now
    while slot >= 0:
        latest = max(latest, expected_end(running[slot], now))
        slot = running[slot].after
    return latest


@njit
def frees_at(r: int, now: float, jobs: Records, running: Records) -> float:
    """Expected time when the GPUs of run r are free.

    For a slice: when all slices on its GPU have ended; infinite unless it is first in the GPU's
    list of slices, so that the GPU counts once.
    """
    if jobs[running[r].job].share < WHOLE:
        return _last_slice_end(r, now, running)
    return expected_end(running[r], now)


@njit
def free_until(p: int, at: float, view: View) -> int:
    """Number of GPUs of pool p expected to be free at time `at` if no other job starts there."""
    now, jobs, running = view.now, view.jobs, view.running
    count: int = view.pools[p].free
    for r in range(len(running)):
        if running[r].pool == p and frees_at(r, now, jobs, running) <= at:
            count += jobs[running[r].job].gpus
    return count


@njit
def fill_free_times(wanted: int, view: View, counts: Floats, times: Floats) -> None:
    """Write the expected free times of the GPUs that are up, sorted within each pool.

    The free time of an idle GPU is now.

    Args:
        wanted: number of earliest times needed per pool.
        view: the state.
        counts: [P], filled with the number of times written for each pool.
        times: [G], filled.
    """
    now, jobs, running, pools = view.now, view.jobs, view.running, view.pools
    waiting_for_runs = 0
    for p in range(len(pools)):
        pool = pools[p]
        free = min(pool.free, wanted)
        for i in range(pool.first_gpu, pool.first_gpu + free):
            times[i] = now
        counts[p] = 0
        waiting_for_runs += free < min(pool.gpus, wanted)
    if waiting_for_runs > 0:
        for r in range(len(running)):
            pool = pools[running[r].pool]
            free = min(pool.free, wanted)
            limit = min(pool.gpus, wanted) - free
            ready = frees_at(r, now, jobs, running) if limit > 0 else np.inf
            if ready < np.inf:
                count, gang = int(counts[running[r].pool]), jobs[running[r].job].gpus
                first = pool.first_gpu + free
                if limit <= _MAX_SCAN:
                    count = _insert(ready, gang, first, count, limit, times)
                else:
                    count = _keep_earliest(ready, gang, first, count, limit, times)
                counts[running[r].pool] = count
    for p in range(len(pools)):
        free = min(pools[p].free, wanted)
        if min(pools[p].gpus, wanted) - free > _MAX_SCAN:
            _sort_heap(times, pools[p].first_gpu + free, int(counts[p]))
        counts[p] += free


@njit
def reserve(first: int, count: int, gpus: int, until: float, times: Floats) -> None:
    """Replace the `gpus` smallest of the sorted times[first : first + count] by `until`."""
    i = first + gpus
    while i < first + count and times[i] <= until:
        times[i - gpus] = times[i]
        i += 1
    for k in range(i - gpus, i):
        times[k] = until


@njit
def ready_time(
    now: float, job: Row, pool: Row, nodes: Records, gpus: Records, times: Floats
) -> float:
    """Earliest start of a job on a pool in the plan; infinite if too few of its GPUs are up."""
    if job.share < WHOLE and fits(job, pool, nodes, gpus):
        return now
    if pool.gpus < job.gpus:
        return np.inf
    ready: float = times[pool.first_gpu + job.gpus - 1]
    return ready


@njit
def completions(
    first: int, last: int, view: View, times: Floats, ends: Floats, choice: Floats
) -> None:
    """Compute the smallest expected completion of the jobs at queue positions first to last - 1.

    Writes it to ends [Q], and its pool to choice [Q]; infinite for a job that no pool can hold.
    times [G]: the plan.
    """
    now, jobs, est, queue, eligible = view.now, view.jobs, view.est, view.queue, view.eligible
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    for q in range(first, last):
        j, left = queue[q].job, queue[q].left
        best, best_pool = np.inf, 0
        for p in range(len(pools)):
            pool = pools[p]
            if eligible[q, p]:
                ready = ready_time(now, jobs[j], pool, nodes, gpus, times)
                end = ready + est[j, pool.model] * left
                if end < best:
                    best, best_pool = end, p
        ends[q], choice[q] = best, best_pool


@njit
def _earliest(ends: Floats) -> int:
    """Index of the smallest entry; on ties, the first."""
    best, position = ends[0], 0
    for q in range(1, len(ends)):
        if ends[q] < best:
            best, position = ends[q], q
    return position


@njit
def _before(a: float, b: float, ends: Floats) -> bool:
    """True when position a of the queue comes before b: by smaller end, then by position."""
    first: bool = ends[int(a)] < ends[int(b)] or (ends[int(a)] == ends[int(b)] and a < b)
    return first


@njit
def _sift_down(heap: Floats, k: int, count: int, ends: Floats) -> None:
    """Sift entry k down in a heap of queue positions with the earliest end on top."""
    position = heap[k]
    while 2 * k + 1 < count:
        below = 2 * k + 1
        if below + 1 < count and _before(heap[below + 1], heap[below], ends):
            below += 1
        if not _before(heap[below], position, ends):
            break
        heap[k] = heap[below]
        k = below
    heap[k] = position


@njit_apart
def _build_heap(heap: Floats, ends: Floats) -> None:
    """Build the heap of all queue positions, the earliest end on top."""
    for q in range(len(ends)):
        heap[q] = q
    for k in range((len(ends) >> 1) - 1, -1, -1):
        _sift_down(heap, k, len(ends), ends)


@njit
def _first_start(view: View, scratch: Floats) -> tuple[int, int]:
    """Plan jobs one after the other until one starts now; returns its queue position and pool.

    (-1, -1) if none starts now. scratch: room for G + P + 3 Q numbers. Completions only grow as the
    plan fills up, so a stored one is a lower bound: the smallest is recomputed until it does not
    change. This gives the same order as recomputing all of them.
    """
    now, jobs, est, queue = view.now, view.jobs, view.est, view.queue
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    total, count, split = len(gpus), len(queue), len(gpus) + len(pools)
    times, counts = scratch[:total], scratch[total:split]
    ends, choice = scratch[split : split + count], scratch[split + count : split + 2 * count]
    heap = scratch[split + 2 * count : split + 3 * count]
    fill_free_times(asked(jobs, queue), view, counts, times)
    completions(wide(0), count, view, times, ends, choice)
    possible = _possible_starts(jobs, queue, pools)  # upper bound; the plan ends at 0
    if count > _MAX_SCAN:
        _build_heap(heap, ends)
    while possible > 0:
        q = int(heap[0]) if count > _MAX_SCAN else _earliest(ends)
        if ends[q] == np.inf:
            break
        j, p = queue[q].job, int(choice[q])
        pool, gang = pools[p], wide(jobs[j].gpus)
        ready = ready_time(now, jobs[j], pool, nodes, gpus, times)
        if ready + est[j, pool.model] * queue[q].left > ends[q]:
            completions(q, q + 1, view, times, ends, choice)
            if count > _MAX_SCAN:
                _sift_down(heap, wide(0), count, ends)
            continue
        if ready <= now and fits(jobs[j], pool, nodes, gpus):
            return q, p
        for k in range(pool.first_gpu, pool.first_gpu + gang):
            if times[k] <= now:
                possible -= 1
        reserve(pool.first_gpu, int(counts[p]), gang, ends[q], times)
        ends[q] = np.inf
        if count > _MAX_SCAN:
            _sift_down(heap, wide(0), count, ends)
    return -1, -1


@njit_allocating
def _long_queue_start(view: View) -> tuple[int, int]:
    scratch = np.empty(len(view.gpus) + len(view.pools) + 3 * len(view.queue))
    return _first_start(view, scratch)


def scratch_size(gpus: int, pools: int) -> int:
    """Size of a scratch buffer with which queues of up to 128 jobs need no allocation."""
    return gpus + pools + 3 * 128


@njit
def min_min_start(view: View, scratch: Floats) -> tuple[int, int]:
    """Queue position and pool of the first job that the Min-Min plan starts now, or (-1, -1)."""
    if not any_feasible(view):
        return -1, -1
    if len(scratch) < len(view.gpus) + len(view.pools) + 3 * len(view.queue):
        return _long_queue_start(view)
    return _first_start(view, scratch)
