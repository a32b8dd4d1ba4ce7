"""The waiting jobs that follow those of the drain cost in a plan, and what a choice costs them.

planning/drain.py plans the 40 shortest jobs. If these request less than the GPUs of the cluster,
its cost does not see what an idle GPU costs the jobs left out: a slow pool looks useless, because
the few planned jobs drain sooner on the fast ones. The tail is the next jobs by length, until all
together request PLANNED_LOADS times the GPUs of the cluster. After a choice and the plan of the
shortest jobs, each job of the tail in turn takes the pool where it completes first: coarser than
Min-Min, but linear in the number of jobs. It counts GPUs only; a slice holds a GPU.

Longer tails are worse: jobs that arrive later will overtake them, which no plan knows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_apart, wide
from adlro.model.feasibility import large_enough
from adlro.model.state import Floats, Records
from adlro.model.view import View
from adlro.planning.drain import Drain, hold, restart
from adlro.planning.min_min import asked, fill_free_times

MAX_TAIL = 216  # maximum number of jobs
PLANNED_LOADS = 2  # no more jobs once those before request this many times the GPUs that are up


class Tail(NamedTuple):
    """T jobs of the tail, the shortest first; P pools."""

    gpus: Floats  # [T] gang sizes
    ends: Floats  # [T] smallest expected completion: a lower bound for every choice
    seconds: Floats  # [T * P] estimates; infinite where the job cannot run


def scratch_size(pools: int) -> int:
    """Size of the scratch buffer that `split_tail` takes."""
    return MAX_TAIL * (2 + pools)


@njit
def split_tail(pools: int, scratch: Floats) -> tuple[Floats, Floats]:
    """Divide a scratch buffer into the part for `prepare_tail`, and the rest."""
    size = MAX_TAIL * (2 + pools)
    return scratch[:size], scratch[size:]


@njit
def _length(q: int, view: View) -> float:
    """Estimate of a waiting job on the fastest pool that can hold it; infinite if none can."""
    j, best = view.queue[q].job, np.inf
    for p in range(len(view.pools)):
        if view.eligible[q, p] and large_enough(view.jobs[j], view.pools[p]):
            best = min(best, view.est[j, view.pools[p].model] * view.queue[q].left)
    return best


@njit
def _shortest_rest(view: View, planned: Floats, lengths: Floats, places: Floats) -> int:
    """Write the queue positions of the shortest jobs that are not planned; returns their number.

    The shortest comes first; of equals the older. planned: queue positions, rising; lengths,
    places [MAX_TAIL].
    """
    count, k = wide(0), 0
    for q in range(len(view.queue)):
        if k < len(planned) and planned[k] == q:
            k += 1
            continue
        length = _length(q, view)
        if length == np.inf or (count == MAX_TAIL and length >= lengths[count - 1]):
            continue
        i = min(count, MAX_TAIL - 1)
        while i > 0 and lengths[i - 1] > length:
            lengths[i], places[i] = lengths[i - 1], places[i - 1]
            i -= 1
        lengths[i], places[i] = length, q
        count = min(count + 1, MAX_TAIL)
    return count


@njit
def _needed(view: View, planned: Floats, places: Floats) -> int:
    """Number of jobs of the tail, at most those of `places` (queue positions, in order)."""
    room, count = wide(0), wide(0)
    for p in range(len(view.pools)):
        room += PLANNED_LOADS * view.pools[p].gpus
    for k in range(len(planned)):
        room -= view.jobs[view.queue[int(planned[k])].job].gpus
    while count < len(places) and room > 0:
        room -= view.jobs[view.queue[int(places[count])].job].gpus
        count += 1
    return count


@njit
def _first_completion(i: int, tail: Tail, drain: Drain, pools: Records) -> tuple[float, int]:
    """Smallest expected completion of job i of the tail in the drain's plan, and the pool."""
    best, best_p, gang = np.inf, 0, int(tail.gpus[i])
    for p in range(len(pools)):
        seconds = tail.seconds[i * len(pools) + p]
        if seconds < np.inf:
            end = drain.own_times[int(drain.begins[p]) + gang - 1] + seconds
            if end < best:
                best, best_p = end, p
    return best, best_p


@njit_apart
def prepare_tail(view: View, drain: Drain, scratch: Floats) -> Tail:
    """Collect the tail; if there is any, extend `drain.times` to what the whole queue requests."""
    pools, size = view.pools, MAX_TAIL
    gpus, ends, seconds = scratch[:size], scratch[size : 2 * size], scratch[2 * size :]
    count = wide(0)
    if len(view.queue) > len(drain.places):
        count = _shortest_rest(view, drain.places, ends, gpus)
        count = _needed(view, drain.places, gpus[:count])
    tail = Tail(gpus[:count], ends[:count], seconds)  # `gpus` has queue positions until filled
    if count > 0:
        fill_free_times(asked(view.jobs, view.queue).gpus, view, drain.counts, drain.times)
        restart(view.now, drain, pools)
    for i in range(count):
        q = int(gpus[i])
        j, left = view.queue[q].job, view.queue[q].left
        for p in range(len(pools)):
            can_run = view.eligible[q, p] and large_enough(view.jobs[j], pools[p])
            seconds[i * len(pools) + p] = view.est[j, pools[p].model] * left if can_run else np.inf
        gpus[i] = view.jobs[j].gpus
        ends[i], _ = _first_completion(i, tail, drain, pools)
    return tail


@njit
def least_cost(now: float, tail: Tail) -> float:
    """Lower bound of the sum of completion times of the tail, counted from now."""
    cost = 0.0
    for i in range(len(tail.ends)):
        cost += tail.ends[i] - now
    return cost


@njit_apart
def delay_of(bound: float, tail: Tail, drain: Drain, pools: Records) -> float:
    """What a choice costs the tail above `least_cost`; infinite if it is not below `bound`.

    drain: as `cost_of` left it for this choice; the free times of its plan are used up.
    """
    cost = 0.0
    for i in range(len(tail.ends)):
        end, p = _first_completion(i, tail, drain, pools)
        cost += end - tail.ends[i]
        if cost >= bound:
            return np.inf
        hold(wide(tail.gpus[i]), p, end, drain, pools)
    return cost
