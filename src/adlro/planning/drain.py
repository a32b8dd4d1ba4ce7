"""The drain cost of a choice: total completion time of the waiting jobs if no more arrive.

A choice is to start a job on a pool now, or to wait. After the choice, Min-Min plans the other
waiting jobs by estimates; the cost is the sum of all completion times, counted from now. The costs
of two choices are comparable because they cover the same jobs. The plan counts GPUs only, as in
planning/min_min.py; a slice holds a GPU, or none if it fits beside other slices where no GPU is
free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_apart, wide
from adlro.model.feasibility import expected_end, fits, large_enough, whole_capacity
from adlro.model.state import WHOLE, Floats, Records, Row
from adlro.model.view import View
from adlro.planning.min_min import (
    fill_free_times,
    fill_one_node_times,
    needs_one_node,
)

MAX_PAIRS = 16  # maximum number of choices
MAX_SHORTEST = 40  # maximum number of planned jobs, besides those of the choices
MAX_PLANNED = MAX_SHORTEST + MAX_PAIRS


class Drain(NamedTuple):
    """The plan of K jobs before any choice, and buffers for the plan after one; P pools, G GPUs."""

    now: float
    places: Floats  # [K] queue positions, rising; jobs that no pool can hold are left out
    seconds: Floats  # [K * P] estimates; infinite where the job cannot run
    needs: Floats  # [K * P] free GPUs required by the plan; 0 = a slice that fits now
    ends: Floats  # [K] smallest expected completion: a lower bound for every choice
    ends_on: Floats  # [K] the pool of this completion
    order: Floats  # [K] the planned jobs by `ends`, the smallest first; of equals the first
    floors: Floats  # [K * P] earliest start of a gang that needs one node; [0] = none needs it
    counts: Floats  # [P] number of free times in use
    times: Floats  # [G] expected free times, sorted within each pool
    own_ends: Floats  # [K] ends under the current choice, in the order of `own_order`
    own_ends_on: Floats  # [K] the pool of this completion, by job
    own_order: Floats  # [K] the jobs that are not yet planned come last, the next one first
    # Free times under the current choice, sorted within each pool. Those of a pool move up in its
    # part of the array as the earliest are used up: this moves fewer of them.
    own_times: Floats  # [2 * G]
    begins: Floats  # [P] where those of a pool begin; there are as many as `counts`
    picks: Floats  # [K] plan after the current choice, in order: planned job * P + pool
    pick_starts: Floats  # [K] start times of that plan


class Pairs(NamedTuple):
    """Pairs of a waiting job and a pool where it can start now, the smallest estimate first."""

    places: Floats  # [MAX_PAIRS] queue positions
    pools: Floats  # [MAX_PAIRS]
    seconds: Floats  # [MAX_PAIRS] estimates


def scratch_size(gpus: int, pools: int) -> int:
    """Size of the scratch buffer that `split_pairs` and `prepare_drain` divide up."""
    return 3 * MAX_PAIRS + 3 * gpus + 2 * pools + MAX_PLANNED * (9 + 3 * pools)


@njit
def split_pairs(scratch: Floats) -> tuple[Pairs, Floats]:
    """Divide the scratch buffer into the arrays of `Pairs`, and the rest for `prepare_drain`."""
    n = MAX_PAIRS
    return Pairs(scratch[:n], scratch[n : 2 * n], scratch[2 * n : 3 * n]), scratch[3 * n :]


@njit
def _put_pair(count: int, limit: int, q: int, p: int, seconds: float, pairs: Pairs) -> int:
    """Insert a pair into the list of the `limit` pairs with the smallest estimates.

    Returns the new length. Ties keep their order of insertion; if the list is full, the pair with
    the largest estimate is dropped.
    """
    if count == limit and seconds >= pairs.seconds[limit - 1]:
        return count
    i = min(count, limit - 1)
    while i > 0 and pairs.seconds[i - 1] > seconds:
        pairs.places[i], pairs.pools[i] = pairs.places[i - 1], pairs.pools[i - 1]
        pairs.seconds[i] = pairs.seconds[i - 1]
        i -= 1
    pairs.places[i], pairs.pools[i], pairs.seconds[i] = q, p, seconds
    return min(count + 1, limit)


@njit
def shortest_pairs(limit: int, view: View, pairs: Pairs) -> int:
    """Write the `limit` possible starts with the smallest estimates; returns their number.

    Ties go to the older job, then to the lower pool.
    """
    jobs, est, queue, eligible = view.jobs, view.est, view.queue, view.eligible
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    count = wide(0)
    for q in range(len(queue)):
        j, left = queue[q].job, queue[q].left
        job = jobs[j]
        for p in range(len(pools)):
            if eligible[q, p]:
                seconds = est[j, pools[p].model] * left
                is_short = count < limit or seconds < pairs.seconds[limit - 1]
                if is_short and fits(job, pools[p], nodes, gpus):
                    count = _put_pair(count, limit, q, p, seconds, pairs)
    return count


@njit
def span_penalty(job: Row, pool: Row, nodes: Records) -> float:
    """Factor on the run time of a whole-GPU job that starts on a pool now.

    1 if one node can hold the job, else the factor for spanning several nodes.
    """
    factor: float = 1.0 + job.communication * pool.span_cost
    if job.gpus == 1 or factor == 1.0:
        return 1.0
    for n in range(pool.first_node, pool.first_node + pool.nodes):
        if whole_capacity(job, nodes[n]) >= job.gpus:
            return 1.0
    return factor


@njit
def next_finish(now: float, running: Records) -> float:
    """Earliest expected end of a run; infinite if nothing runs."""
    soonest = np.inf
    for r in range(len(running)):
        soonest = min(soonest, expected_end(running[r], now))
    return soonest


@njit
def _put_place(count: int, q: int, places: Floats) -> int:
    """Insert a queue position into a rising list if it is not there; returns the new length."""
    i = count
    while i > 0 and places[i - 1] >= q:
        i -= 1
    if i < count and places[i] == q:
        return count
    for k in range(count, i, -1):
        places[k] = places[k - 1]
    places[i] = q
    return count + 1


@njit
def _shortest_places(view: View, lengths: Floats, places: Floats) -> int:
    """Write the queue positions of the MAX_SHORTEST shortest jobs, rising; returns their number.

    The length of a job is its estimate on the fastest pool that can hold it. Shapes: lengths and
    places [MAX_PLANNED].
    """
    jobs, est, queue, eligible = view.jobs, view.est, view.queue, view.eligible
    pools, count = view.pools, 0
    for q in range(len(queue)):
        j, best = queue[q].job, np.inf
        job = jobs[j]
        for p in range(len(pools)):
            if eligible[q, p] and large_enough(job, pools[p]):
                best = min(best, est[j, pools[p].model] * queue[q].left)
        if best < np.inf and (count < MAX_SHORTEST or best < lengths[count - 1]):
            i = min(count, MAX_SHORTEST - 1)
            while i > 0 and lengths[i - 1] > best and len(queue) > MAX_SHORTEST:
                lengths[i], places[i] = lengths[i - 1], places[i - 1]
                i -= 1
            lengths[i], places[i] = best, q
            count = min(count + 1, MAX_SHORTEST)
    for k in range(1, count):
        q, i = places[k], k
        while i > 0 and places[i - 1] > q:
            places[i] = places[i - 1]
            i -= 1
        places[i] = q
    return count


@njit
def _fill_needs(k: int, q: int, view: View, seconds: Floats, needs: Floats) -> None:
    """Write the estimates of planned job k on each pool, and the free GPUs it needs there.

    q: its position in the queue. seconds, needs [K * P] as in `Drain`.
    """
    est, eligible, pools, nodes, gpus = view.est, view.eligible, view.pools, view.nodes, view.gpus
    j, left = view.queue[q].job, view.queue[q].left
    job = view.jobs[j]
    for p in range(len(pools)):
        at = k * len(pools) + p
        seconds[at], needs[at] = np.inf, job.gpus
        if eligible[q, p] and large_enough(job, pools[p]):
            seconds[at] = est[j, pools[p].model] * left
            if job.share < WHOLE and fits(job, pools[p], nodes, gpus):
                needs[at] = 0.0


@njit_apart
def _fill_floors(places: Floats, one_node: Floats, view: View, floors: Floats) -> None:
    """Write the earliest start of the planned jobs on each pool, as far as they need one node.

    places [K]: queue positions; one_node [G]: from `fill_one_node_times`; floors [K * P].
    """
    pools = view.pools
    for k in range(len(places)):
        job = view.jobs[view.queue[int(places[k])].job]
        for p in range(len(pools)):
            floor = 0.0
            if needs_one_node(job) and large_enough(job, pools[p]):
                floor = one_node[pools[p].first_gpu + job.gpus - 1]
            floors[k * len(pools) + p] = floor


@njit
def _end_on(k: int, p: int, earliest: float, drain: Drain, pools: Records) -> float:
    """Expected completion of planned job k on pool p, one where it can run.

    earliest: start of a slice that needs no free GPU.
    """
    at = k * len(pools) + p
    need = int(drain.needs[at])
    ready = drain.own_times[int(drain.begins[p]) + need - 1] if need > 0 else earliest
    if len(drain.floors) > 0:
        ready = max(ready, drain.floors[at])
    end: float = ready + drain.seconds[at]
    return end


@njit
def _completion(k: int, earliest: float, drain: Drain, pools: Records) -> tuple[float, int]:
    """Smallest expected completion of planned job k, and the first pool where it completes then.

    earliest: as in `_end_on`.
    """
    best, best_p = np.inf, 0
    for p in range(len(pools)):
        if drain.seconds[k * len(pools) + p] < np.inf:
            end = _end_on(k, p, earliest, drain, pools)
            if end < best:
                best, best_p = end, p
    return best, best_p


@njit
def _sort_places(ends: Floats, order: Floats) -> None:
    """Write the indices of `ends`, the smallest end first and of equals the first, to `order`."""
    for k in range(len(ends)):
        i = k
        while i > 0 and ends[int(order[i - 1])] > ends[k]:
            order[i] = order[i - 1]
            i -= 1
        order[i] = k


@njit
def restart(time: float, drain: Drain, pools: Records) -> None:
    """Start a plan: copy the free times; those before `time` become `time`."""
    for p in range(len(pools)):
        first = pools[p].first_gpu
        times, own = drain.times[first:], drain.own_times[2 * first :]
        drain.begins[p] = 2 * first
        for i in range(int(drain.counts[p])):
            own[i] = max(times[i], time)


@njit
def prepare_drain(view: View, pairs: Pairs, count: int, scratch: Floats) -> Drain:
    """Prepare the plan that all choices share; scratch is the rest returned by `split_pairs`.

    The planned jobs are the same for each choice: the MAX_SHORTEST shortest waiting jobs and the
    jobs of the first `count` entries of `pairs`.
    """
    now, jobs, queue, pools = view.now, view.jobs, view.queue, view.pools
    total, a = len(view.gpus), 3 * len(view.gpus) + 2 * len(pools)
    times, own_times = scratch[:total], scratch[total : 3 * total]
    one_node = own_times[:total]  # until own_times is filled
    counts = scratch[3 * total : 3 * total + len(pools)]
    begins = scratch[3 * total + len(pools) : a]
    size, cells = MAX_PLANNED, MAX_PLANNED * len(pools)
    per_job = scratch[a : a + 9 * size].reshape((9, size))
    places, ends, ends_on, order = per_job[0], per_job[1], per_job[2], per_job[3]
    own_ends, own_ends_on, own_order = per_job[4], per_job[5], per_job[6]
    b = a + 9 * size
    seconds, needs = scratch[b : b + cells], scratch[b + cells : b + 2 * cells]
    floors = scratch[b + 2 * cells : b + 3 * cells]
    known = _shortest_places(view, ends, places)
    if len(queue) > known:
        for i in range(count):
            known = _put_place(known, int(pairs.places[i]), places)
    asked, gangs = wide(0), 0
    for k in range(known):
        q = int(places[k])
        asked += jobs[queue[q].job].gpus
        gangs += needs_one_node(jobs[queue[q].job])
        _fill_needs(k, q, view, seconds, needs)
    if gangs > 0:
        fill_one_node_times(view, one_node)
        _fill_floors(places[:known], one_node, view, floors)
    drain = Drain(
        now, places[:known], seconds, needs, ends[:known], ends_on[:known], order[:known],
        floors[: cells if gangs > 0 else 0], counts, times, own_ends[:known], own_ends_on[:known],
        own_order[:known], own_times, begins, per_job[7], per_job[8],
    )  # fmt: skip
    fill_free_times(asked, view, counts, times)
    restart(now, drain, pools)
    for k in range(known):
        ends[k], p = _completion(k, now, drain, pools)
        ends_on[k] = p
    _sort_places(drain.ends, drain.order)
    return drain


@njit
def place_in(drain: Drain, q: int) -> int:
    """Index among the planned jobs of the job at queue position q; -1 = not planned."""
    for k in range(len(drain.places)):
        if drain.places[k] == q:
            return k
    return -1


@njit
def hold(need: int, p: int, until: float, drain: Drain, pools: Records) -> None:
    """Replace the `need` earliest free times of pool p by `until` in the current plan."""
    count, begin = int(drain.counts[p]), int(drain.begins[p])
    first, size = 2 * pools[p].first_gpu, 2 * pools[p].size
    times = drain.own_times[begin:]
    if begin + count + need > first + size:  # no room behind the last one
        begin, own = first, drain.own_times[first:]
        for i in range(count):
            own[i] = times[i]
        times = own
    i = count
    while i > need and times[i - 1] > until:
        times[i - 1 + need] = times[i - 1]
        i -= 1
    later = times[i:]
    for k in range(need):
        later[k] = until
    drain.begins[p] = begin + need


@njit
def _hold(need: int, p: int, earliest: float, until: float, drain: Drain, pools: Records) -> None:
    """Reserve `need` GPUs of pool p until `until` in the plan of the current choice.

    A slice that needs no free GPU (0) takes one if a GPU is free at `earliest`.
    """
    if need == 0 and drain.counts[p] > 0 and drain.own_times[int(drain.begins[p])] <= earliest:
        need = 1
    if need > 0:
        hold(need, p, until, drain, pools)


@njit
def _put_later(first: int, end: float, drain: Drain) -> None:
    """Change the end of the next job of the plan, at `first` of own_order, and restore the order.

    Jobs with equal ends stay in the order of their indices.
    """
    ends, order, i = drain.own_ends, drain.own_order, first
    k, last = order[i], len(ends) - 1
    while i < last and (ends[i + 1] < end or (ends[i + 1] == end and order[i + 1] < k)):
        ends[i], order[i] = ends[i + 1], order[i + 1]
        i += 1
    ends[i], order[i] = end, k


@njit
def _plan(
    first: int, cost: float, bound: float, earliest: float, drain: Drain, pools: Records
) -> float:
    """Plan the jobs of own_order from `first` on by Min-Min; returns `cost` plus their completions.

    Infinite if that is not below `bound`. Completions only grow as the plan fills up, so a stored
    one is a lower bound. It still holds if it does on its own pool, and is recomputed if not. Jobs
    complete in rising order, so each remaining job costs at least as much as the last one planned:
    the search stops once the cost cannot stay below `bound`.
    """
    now, i = drain.now, first
    while i < len(drain.own_ends):
        k, end = int(drain.own_order[i]), drain.own_ends[i]
        p = int(drain.own_ends_on[k])
        if _end_on(k, p, earliest, drain, pools) > end:
            end, p = _completion(k, earliest, drain, pools)
            drain.own_ends_on[k] = p
            if end > drain.own_ends[i]:
                _put_later(i, end, drain)
                continue
        cost += end - now
        i += 1
        if cost + (len(drain.own_ends) - i) * (end - now) >= bound:
            return np.inf
        at = k * len(pools) + p
        drain.picks[i - 1 - first] = at
        drain.pick_starts[i - 1 - first] = end - drain.seconds[at]
        _hold(int(drain.needs[at]), p, earliest, end, drain, pools)
    return cost


@njit
def cost_of(k: int, p: int, time: float, bound: float, drain: Drain, pools: Records) -> float:
    """Drain cost of a choice; infinite if it is not below `bound`.

    Args:
        k: planned job that starts now; -1 = none, wait.
        p: pool where it starts.
        time: seconds that it runs there; for k = -1 the time before which nothing starts.
        bound: upper bound; the evaluation stops early at this cost.
        drain: from `prepare_drain`; on return it holds the plan that follows the choice.
        pools: [P].
    """
    ends, now = drain.ends, drain.now
    cost, earliest = 0.0, time
    if k >= 0:
        cost, earliest, least = time, now, time
        if bound < np.inf:
            for i in range(len(ends)):
                least += ends[i] - now if i != k else 0.0
        if least >= bound:
            return np.inf
    i = len(ends)
    for o in range(len(ends) - 1, -1, -1):  # from behind, so that job k leaves room in front
        j = int(drain.order[o])
        drain.own_ends_on[j] = drain.ends_on[j]
        if j != k:
            i -= 1
            drain.own_ends[i], drain.own_order[i] = ends[j], j
    restart(now if k >= 0 else time, drain, pools)
    if k >= 0:
        _hold(int(drain.needs[k * len(pools) + p]), p, now, now + time, drain, pools)
    return _plan(i, cost, bound, earliest, drain, pools)
