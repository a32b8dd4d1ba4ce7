"""The choices of a state as tables for an explanation: their costs and the plans they lead to.

Compiled code cannot return views of a scratch to Python, so both functions write to the caller's
tables.
"""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit, wide
from adlro.features.start_kernel import describe_choices, describe_more
from adlro.model.state import Floats
from adlro.model.view import View
from adlro.planning.drain import (
    cost_of,
    next_finish,
    place_in,
    prepare_drain,
    split_pairs,
)

CHOICE = ("place", "pool", "seconds", "drain")  # columns of a table of choices
PLANNED = (
    "place",
    "pool",
    "start",
    "end",
)  # columns of a plan; times in seconds since the start of the run


@njit
def write_choices(
    view: View, kinds: int, ranges: Floats, scratch: Floats, table: Floats, features: Floats
) -> tuple[int, int, float]:
    """Write the choices of a state to table [MOST_CHOICES, 4] and features [MOST_CHOICES, F].

    Returns:
        The number of choices (0 = nothing can start), the index of Min-Min's, and tau.
    """
    choices = describe_choices(view, scratch)
    if kinds > 0 and choices.count > 0:
        describe_more(kinds, ranges, choices, view, scratch)
    for i in range(choices.count):
        table[i, 0], table[i, 1] = choices.places[i], choices.pools[i]
        table[i, 2], table[i, 3] = choices.seconds[i], choices.costs[i]
        for f in range(features.shape[1]):
            features[i, f] = choices.features[i, f]
    return choices.count, choices.planned, choices.tau


@njit
def write_plan(i: int, count: int, table: Floats, view: View, scratch: Floats, plan: Floats) -> int:
    """Write Min-Min's plan after choice i of a table to plan [MOST_PLANNED, 4].

    The job that the choice starts comes first. Waiting starts nothing before the next expected end.

    Returns:
        The number of planned jobs.
    """
    now, pools = view.now, view.pools
    pairs, rest = split_pairs(scratch)
    for k in range(1, count):
        pairs.places[k - 1] = table[k, 0]
    drain = prepare_drain(view, pairs, count - 1, rest)
    known, first, k, p = len(drain.places), 0, wide(-1), wide(-1)
    time = next_finish(now, view.running)
    if i > 0:
        q, p, time = int(table[i, 0]), int(table[i, 1]), table[i, 2]
        k, first = place_in(drain, q), 1
        plan[0, 0], plan[0, 1], plan[0, 2], plan[0, 3] = q, p, now, now + time
    cost_of(k, p, time, np.inf, drain, pools)
    for n in range(known - first):
        at = int(drain.picks[n])
        k, start = at // len(pools), drain.pick_starts[n]
        plan[first + n, 0], plan[first + n, 1] = drain.places[k], at % len(pools)
        plan[first + n, 2], plan[first + n, 3] = start, start + drain.seconds[at]
    return known
