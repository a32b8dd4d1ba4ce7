"""Shortest pair first: of all feasible (job, pool) pairs, the one with the least run time starts.

Some papers call this rule Min-Min. It never waits for a better GPU.
"""

from adlro.compiled import njit
from adlro.model.feasibility import smallest_feasible, start


@njit
def decide(view, params, memory, out):
    """Start the feasible pair of a job and a pool with the least remaining run time."""
    q, p = smallest_feasible(view)
    if q < 0:
        return 0
    return start(out, view.queue[q].job, p)
