"""Shortest pair first: of all feasible (job, pool) pairs, the one with the least run time starts.

Some papers call this Min-Min; it never waits for a better GPU.
"""

from adlro.compiled import njit
from adlro.model.feasibility import smallest_feasible, start


@njit
def decide(view, params, memory, out):
    """Start the feasible pair with the smallest estimate."""
    q, p = smallest_feasible(view)
    if q < 0:
        return 0
    return start(out, view.queue[q].job, p)
