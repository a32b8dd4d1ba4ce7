"""The Min-Min plan of all waiting jobs by estimates: pool and start time of each.

Min-Min plans the job with the smallest expected completion next. A plan is one array of expected
free times, [G], sorted within each pool from times[p.first_gpu] on. For each pool only the earliest
times are stored, as many as the waiting jobs require in total. GPUs of draining nodes have none. A
gang that needs one node also waits until the runs of one node leave it enough GPUs
(`fill_one_node_times`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating, njit_apart, wide
from adlro.model.feasibility import any_feasible, expected_end, fits, large_enough
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


class Asked(NamedTuple):
    """What all waiting jobs request."""

    gpus: int  # number of GPUs; a slice counts as one
    one_node: int  # number of jobs that need one node


@njit
def asked(jobs: Records, queue: Records) -> Asked:
    """Sum up what all waiting jobs request."""
    gpus, one_node = wide(0), wide(0)
    for q in range(len(queue)):
        job = jobs[queue[q].job]
        gpus += job.gpus
        one_node += job.one_node
    return Asked(gpus, one_node)


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


@njit_apart
def _on_nodes_up(run: Row, nodes: Records, gpus: Records) -> int:
    """Number of GPUs of a run that are on nodes in service."""
    count, g = 0, wide(run.gpu)
    while g >= 0:
        count += nodes[gpus[g].node].up
        g = gpus[g].next
    return count


@njit
def returned(run: Row, view: View) -> int:
    """Number of GPUs that other jobs can use after a run: all but those on draining nodes."""
    count: int = wide(view.jobs[run.job].gpus)
    if view.pools[run.pool].draining > 0:
        count = _on_nodes_up(run, view.nodes, view.gpus)
    return count


@njit
def free_until(p: int, at: float, view: View) -> int:
    """Number of GPUs of pool p expected to be free at time `at` if no other job starts there."""
    now, jobs, running = view.now, view.jobs, view.running
    count: int = view.pools[p].free
    for r in range(len(running)):
        if running[r].pool == p and frees_at(r, now, jobs, running) <= at:
            count += returned(running[r], view)
    return count


@njit
def needs_one_node(job: Row) -> bool:
    """True for a gang of several GPUs that must be on one node."""
    needs: bool = job.one_node > 0 and job.gpus > 1
    return needs


@njit_apart
def _fill_gpu_times(view: View, times: Floats) -> None:
    """Write the expected free time of every GPU, [G] in the order of the GPUs; infinite if down."""
    now, gpus = view.now, view.gpus
    for g in range(len(gpus)):
        times[g] = now if view.nodes[gpus[g].node].up else np.inf
    for r in range(len(view.running)):
        ready, g = expected_end(view.running[r], now), wide(view.running[r].gpu)
        while g >= 0:
            times[g] = max(times[g], ready)
            g = gpus[g].next


@njit_apart
def _sort_node(first: int, count: int, times: Floats) -> None:
    """Sort the times of a node's GPUs: insertion sort, for a node has few."""
    for k in range(first + 1, first + count):
        value, i = times[k], k
        while i > first and times[i - 1] > value:
            times[i] = times[i - 1]
            i -= 1
        times[i] = value


@njit_apart
def fill_one_node_times(view: View, times: Floats) -> None:
    """Write when one node of each pool is expected to have 1, 2, 3 … GPUs free, by its runs.

    times [G]: entry p.first_gpu + k - 1 is the time for k GPUs of pool p.
    """
    pools, nodes = view.pools, view.nodes
    _fill_gpu_times(view, times)
    for p in range(len(pools)):
        first = pools[p].first_gpu
        for n in range(pools[p].first_node, pools[p].first_node + pools[p].nodes):
            begin, count = nodes[n].first_gpu, nodes[n].gpus
            _sort_node(wide(begin), wide(count), times)
            for k in range(count):
                times[first + k] = min(times[first + k], times[begin + k])


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
                count, gang = int(counts[running[r].pool]), returned(running[r], view)
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
def fill_plan(view: View, counts: Floats, times: Floats, one_node: Floats) -> None:
    """Write the plan before any waiting job is planned.

    counts [P] and times [G] are filled by `fill_free_times`, one_node [G] by `fill_one_node_times`
    if a waiting job needs one node.
    """
    wanted = asked(view.jobs, view.queue)
    fill_free_times(wanted.gpus, view, counts, times)
    if wanted.one_node > 0:
        fill_one_node_times(view, one_node)


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
def is_plain(job: Row) -> bool:
    """True for a job of whole GPUs on any nodes: the plan alone tells when it can start."""
    plain: bool = job.share == WHOLE and not job.one_node
    return plain


@njit
def plain_ready_time(job: Row, pool: Row, times: Floats) -> float:
    """As `ready_time`, for a job that is plain."""
    if pool.gpus < job.gpus:
        return np.inf
    ready: float = times[pool.first_gpu + job.gpus - 1]
    return ready


@njit
def ready_time(job: Row, pool: Row, view: View, times: Floats, one_node: Floats) -> float:
    """Earliest start of a job on a pool in the plan; infinite if too few of its GPUs are up.

    times [G]: the plan; one_node [G]: from `fill_one_node_times`.
    """
    if is_plain(job):
        return plain_ready_time(job, pool, times)
    if job.share < WHOLE and fits(job, pool, view.nodes, view.gpus):
        return view.now
    if not large_enough(job, pool):
        return np.inf
    ready: float = times[pool.first_gpu + job.gpus - 1]
    if needs_one_node(job):
        ready = max(ready, one_node[pool.first_gpu + job.gpus - 1])
    return ready


class QueuePlan(NamedTuple):
    """Free times of a plan, and the planned completion of each waiting job."""

    times: Floats  # [G] sorted within each pool
    one_node: Floats  # [G] from `fill_one_node_times`
    ends: Floats  # [Q] smallest expected completion; infinite for a job that no pool can hold
    choice: Floats  # [Q] pool of this completion


@njit
def completions(first: int, last: int, view: View, plan: QueuePlan) -> None:
    """Compute plan.ends and plan.choice of the jobs at queue positions first to last - 1."""
    jobs, est, queue, eligible, pools = view.jobs, view.est, view.queue, view.eligible, view.pools
    for q in range(first, last):
        j, left = queue[q].job, queue[q].left
        job, plain = jobs[j], is_plain(jobs[j])
        best, best_pool = np.inf, 0
        for p in range(len(pools)):
            pool = pools[p]
            if eligible[q, p]:
                if plain:
                    ready = plain_ready_time(job, pool, plan.times)
                else:
                    ready = ready_time(job, pool, view, plan.times, plan.one_node)
                end = ready + est[j, pool.model] * left
                if end < best:
                    best, best_pool = end, p
        plan.ends[q], plan.choice[q] = best, best_pool


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

    (-1, -1) if none starts now. scratch: room for 2 G + P + 3 Q numbers. Completions only grow as
    the plan fills up, so a stored one is a lower bound: the smallest is recomputed until it does
    not change. This gives the same order as recomputing all of them.
    """
    now, jobs, est, queue = view.now, view.jobs, view.est, view.queue
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    total, count, split = len(gpus), len(queue), 2 * len(gpus) + len(pools)
    times, one_node, counts = scratch[:total], scratch[total : 2 * total], scratch[2 * total :]
    ends, choice = scratch[split : split + count], scratch[split + count : split + 2 * count]
    heap, plan = scratch[split + 2 * count :], QueuePlan(times, one_node, ends, choice)
    fill_plan(view, counts, times, one_node)
    completions(wide(0), count, view, plan)
    possible = _possible_starts(jobs, queue, pools)  # upper bound; the plan ends at 0
    if count > _MAX_SCAN:
        _build_heap(heap, ends)
    while possible > 0:
        q = int(heap[0]) if count > _MAX_SCAN else _earliest(ends)
        if ends[q] == np.inf:
            break
        j, p = queue[q].job, int(choice[q])
        pool, gang = pools[p], wide(jobs[j].gpus)
        ready = ready_time(jobs[j], pool, view, times, one_node)
        if ready + est[j, pool.model] * queue[q].left > ends[q]:
            completions(q, q + 1, view, plan)
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
    scratch = np.empty(2 * len(view.gpus) + len(view.pools) + 3 * len(view.queue))
    return _first_start(view, scratch)


def scratch_size(gpus: int, pools: int) -> int:
    """Size of a scratch buffer with which queues of up to 128 jobs need no allocation."""
    return 2 * gpus + pools + 3 * 128


@njit
def min_min_start(view: View, scratch: Floats) -> tuple[int, int]:
    """Queue position and pool of the first job that the Min-Min plan starts now, or (-1, -1)."""
    if not any_feasible(view):
        return -1, -1
    if len(scratch) < 2 * len(view.gpus) + len(view.pools) + 3 * len(view.queue):
        return _long_queue_start(view)
    return _first_start(view, scratch)
