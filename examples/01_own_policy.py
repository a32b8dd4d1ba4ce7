"""A policy of your own: the widest job that fits goes first, on its fastest free pool.

Run it beside the others:  adlro compare paper16 --policies fcfs,min-min,examples/01_own_policy.py
"""

from adlro.compiled import njit
from adlro.model.feasibility import fastest_feasible, start


@njit
def decide(view, params, memory, out):
    """One call at each event, and again after each start; the answer 0 means wait."""
    best, best_p, widest = -1, -1, 0
    for q in range(len(view.queue)):
        j, p = view.queue[q].job, fastest_feasible(q, view)
        if p >= 0 and view.jobs[j].gpus > widest:
            best, best_p, widest = j, p, view.jobs[j].gpus
    return start(out, best, best_p) if best >= 0 else 0
