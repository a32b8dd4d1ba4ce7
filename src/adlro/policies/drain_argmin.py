"""Drain argmin: of a few choices, the one with the least total completion time of waiting jobs.

The choices are Min-Min's own start, waiting for the next expected end of a run, and the 15 feasible
pairs of a job and a pool with the least remaining run time. The cost of a start is the run time of
its job (with the span penalty if it would span nodes) plus the sum of completion time minus now
over the other waiting jobs, as Min-Min plans them after this start. The cost of waiting is the same
sum over all waiting jobs, with no GPU free before the next expected end. Only the 40 shortest jobs
and those of the choices are planned (planning/drain.py) and, if they request less than twice the
GPUs of the cluster, more jobs by length (planning/drain_tail.py). The smallest cost wins; a choice
later in this list must be cheaper by more than a microsecond. No arrivals are assumed: the cost
measures how fast the queue drains. This is one step of the rollout algorithm (Bertsekas,
Tsitsiklis, Wu 1997) with the Min-Min plan as the base heuristic.
"""

import numpy as np

from adlro.compiled import njit, wide
from adlro.model.feasibility import start
from adlro.planning import drain as draining
from adlro.planning import drain_tail as following
from adlro.planning.drain import (
    MAX_PAIRS,
    cost_of,
    next_finish,
    place_in,
    prepare_drain,
    shortest_pairs,
    span_penalty,
    split_pairs,
)
from adlro.planning.drain_tail import delay_of, least_cost, prepare_tail, split_tail
from adlro.planning.min_min import min_min_start
from adlro.planning.min_min import scratch_size as plan_size

_CLEARLY = 1e-6  # seconds: a smaller difference of costs may be rounding


def memory(context):
    """Length of the memory: scratch for choices and plans; nothing is stored between calls."""
    gpus, pools = len(context.gpus), len(context.pools)
    plans = max(draining.scratch_size(gpus, pools), 3 * MAX_PAIRS + plan_size(gpus, pools))
    return following.scratch_size(pools) + plans


@njit
def decide(view, params, memory, out):
    """Make the choice with the smallest drain cost: a start, or to wait."""
    room, scratch = split_tail(len(view.pools), memory)
    pairs, scratch = split_pairs(scratch)
    count = shortest_pairs(MAX_PAIRS - 1, view, pairs)
    if count == 0:
        return 0
    jobs, queue, pools = view.jobs, view.queue, view.pools
    until = next_finish(view.now, view.running)
    q, p = min_min_start(view, scratch)
    known = count
    if q >= 0:
        pairs.places[count], known = q, count + 1
    drain = prepare_drain(view, pairs, known, scratch)
    tail = prepare_tail(view, drain, room)
    least = least_cost(view.now, tail)
    best, best_q, best_p = np.inf, q, p
    for i in range(-2, count):  # a single loop, because `cost_of` is inlined and large
        a, b, k, time = wide(-1), wide(-1), wide(-1), until  # i = -1: to wait
        if i == -2:
            a, b = q, p
            if q >= 0:
                time = view.est[queue[q].job, pools[p].model] * queue[q].left
        elif i >= 0:
            a, b, time = int(pairs.places[i]), int(pairs.pools[i]), pairs.seconds[i]
        is_again = i >= 0 and a == q and b == p
        if is_again or (i == -2 and q < 0) or (i == -1 and until == np.inf):
            continue
        if a >= 0:
            k = place_in(drain, a)
            time *= span_penalty(jobs[queue[a].job], pools[b], view.nodes)
        bound = best - _CLEARLY - least
        cost = cost_of(k, b, time, bound, drain, pools)
        if cost < bound and len(tail.ends) > 0:
            cost += delay_of(bound - cost, tail, drain, pools)
        if cost < bound:
            best, best_q, best_p = cost + least, a, b
    if best_q < 0:
        return 0
    return start(out, queue[best_q].job, best_p)
