"""Drain argmin: of a few choices, the one after which all waiting jobs are done soonest.

The choices are Min-Min's own, to wait for the next expected end, and the 15 feasible pairs with the
smallest est * left. The cost of a start is its own run time, with the span penalty if it would
span, plus the sum of c_j - now over the others as Min-Min plans them around it; that of waiting is
the sum over all, no GPU free before the next expected end. The smallest wins; to be preferred to a
choice named earlier, one must cost more than a microsecond less. No arrivals are foreseen: what
counts is how fast the queue would drain (encode/drain.py).
"""

import numpy as np

from adlro.compiled import njit
from adlro.encode import drain as draining
from adlro.encode.drain import (
    MOST_PAIRS,
    cost_of_start,
    cost_of_waiting,
    next_finish,
    open_drain,
    place_in,
    shortest_pairs,
    span_penalty,
    split_pairs,
)
from adlro.encode.plan import min_min_start
from adlro.encode.plan import scratch_size as plan_size
from adlro.model.room import start

_CLEARLY = 1e-6  # seconds: costs that differ by less are the same but for rounding


def memory(setting):
    """Scratch for the choices and both plans; nothing is kept from call to call."""
    gpus, pools = len(setting.layout.gpus), len(setting.pools)
    return max(draining.scratch_size(gpus, pools), 3 * MOST_PAIRS + plan_size(gpus, pools))


@njit
def _cost(q, p, seconds, most, jobs, queue, pools, nodes, drain):
    """Drain cost of starting a pair."""
    job = jobs[queue[q].job]
    seconds *= span_penalty(job, pools[p], nodes)
    return cost_of_start(place_in(drain, q), p, seconds, most, drain, pools)


@njit
def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
    """The choice with the smallest drain cost."""
    pairs, scratch = split_pairs(memory)
    most = MOST_PAIRS - 1
    count = shortest_pairs(most, jobs, est, queue, eligible, pools, nodes, gpus, pairs)
    if count == 0:
        return 0
    until = next_finish(now, running)
    q, p = min_min_start(now, jobs, est, queue, eligible, running, pools, nodes, gpus, scratch)
    known = count
    if q >= 0:
        pairs.places[count], known = q, count + 1
    drain = open_drain(
        now, jobs, est, queue, eligible, running, pools, nodes, gpus, pairs, known, scratch
    )
    best, best_q, best_p = np.inf, q, p
    if q >= 0:
        seconds = est[queue[q].job, pools[p].model] * queue[q].left
        best = _cost(q, p, seconds, best, jobs, queue, pools, nodes, drain)
    if until < np.inf:
        cost = cost_of_waiting(until, best - _CLEARLY, drain, pools)
        if cost < best - _CLEARLY:
            best, best_q = cost, -1
    for i in range(count):
        a, b = int(pairs.places[i]), int(pairs.pools[i])
        if a != q or b != p:
            cost = _cost(a, b, pairs.seconds[i], best - _CLEARLY, jobs, queue, pools, nodes, drain)
            if cost < best - _CLEARLY:
                best, best_q, best_p = cost, a, b
    if best_q < 0:
        return 0
    return start(out, queue[best_q].job, best_p)
