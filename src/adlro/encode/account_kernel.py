"""The choices of a state written out for people: what each costs, and the plan that it leads to.

Compiled code hands no views of a scratch to Python, so both functions fill in the caller's tables.
"""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit
from adlro.encode.candidates_kernel import look
from adlro.encode.drain import (
    MOST_PAIRS,
    cost_of_start,
    cost_of_waiting,
    next_finish,
    open_drain,
    place_in,
    shortest_pairs,
    split_pairs,
)
from adlro.model.state import Floats, Mask, Records

CHOICE = ("place", "pool", "seconds", "drain")  # columns of a table of choices
PLANNED = ("place", "pool", "start", "end")  # columns of a plan; times of the run


@njit
def write_choices(
    now: float, jobs: Records, est: Floats, queue: Records, eligible: Mask, running: Records,
    pools: Records, nodes: Records, gpus: Records, scratch: Floats, table: Floats,
    features: Floats,
) -> tuple[int, int, float]:  # fmt: skip
    """Fill in what `look` finds: table [MOST_CHOICES, 4], features [MOST_CHOICES, F].

    Returns:
        How many choices there are (0 = nothing can start), which is Min-Min's, and tau.
    """
    choices = look(now, jobs, est, queue, eligible, running, pools, nodes, gpus, scratch)
    for i in range(choices.count):
        table[i, 0], table[i, 1] = choices.places[i], choices.pools[i]
        table[i, 2], table[i, 3] = choices.seconds[i], choices.costs[i]
        for f in range(features.shape[1]):
            features[i, f] = choices.features[i, f]
    return choices.count, choices.planned, choices.tau


@njit
def write_plan(
    q: int, p: int, seconds: float, now: float, jobs: Records, est: Floats, queue: Records,
    eligible: Mask, running: Records, pools: Records, nodes: Records, gpus: Records,
    scratch: Floats, plan: Floats,
) -> int:  # fmt: skip
    """Fill in how Min-Min would go on after a choice, plan [MOST_PLANNED, 4], in its order.

    The choice is to start queue place q (of the shortest pairs) on pool p for so many seconds, or
    to start nothing before the next expected end (q < 0). What starts is part of the plan.

    Returns:
        How many jobs are planned.
    """
    pairs, rest = split_pairs(scratch)
    count = shortest_pairs(MOST_PAIRS - 1, jobs, est, queue, eligible, pools, nodes, gpus, pairs)
    drain = open_drain(
        now, jobs, est, queue, eligible, running, pools, nodes, gpus, pairs, count, rest
    )
    known, first = len(drain.places), 0
    if q < 0:
        cost_of_waiting(next_finish(now, running), np.inf, drain, pools)
    else:
        cost_of_start(place_in(drain, q), p, seconds, np.inf, drain, pools)
        plan[0, 0], plan[0, 1], plan[0, 2], plan[0, 3] = q, p, now, now + seconds
        first = 1
    for i in range(known - first):
        at = int(drain.picks[i])
        k, start = at // len(pools), drain.pick_starts[i]
        plan[first + i, 0], plan[first + i, 1] = drain.places[k], at % len(pools)
        plan[first + i, 2], plan[first + i, 3] = start, start + drain.seconds[at]
    return known
