"""Tables for `adlro policy explain`: the choices of a state, their costs and the plans after them.

Compiled code cannot return views of a scratch buffer to Python, so both functions write to tables
of the caller.
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
    """Write the choices of a state to `table`, and their F first features to `features`.

    Args:
        view: the state.
        kinds: kinds of features to compute besides PLAIN, see start_kernel.kinds_of.
        ranges: [M * RANGES] bounds of telemetry readings, see telemetry_kernel.py.
        scratch: of the length start_kernel.scratch_size.
        table: [MOST_CHOICES, 4] with the columns CHOICE.
        features: [MOST_CHOICES, F].

    Returns:
        The number of choices (0 = nothing can start), the index of Min-Min's choice, and tau.
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
    """Write the plan that Min-Min makes after choice i to `plan`.

    The job that the choice starts comes first. After the choice to wait (i = 0) nothing starts
    before the next expected end.

    Args:
        i: index of the choice.
        count: number of choices in the table.
        table: as written by `write_choices`.
        view: the same state.
        scratch: of the same length as for `write_choices`.
        plan: [MAX_PLANNED, 4] with the columns PLANNED.

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
