"""Shortest job first, by the run time on its best pool; it starts on its fastest free pool."""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import fastest_feasible, start


@njit
def decide(view, params, memory, out):
    """Start the feasible job with the smallest estimate over all its pools."""
    est, queue, eligible, pools = view.est, view.queue, view.eligible, view.pools
    best, best_q, best_p = np.inf, -1, -1
    for q in range(len(queue)):
        j = queue[q].job
        shortest = np.inf
        for p in range(len(pools)):
            if eligible[q, p]:
                shortest = min(shortest, est[j, pools[p].model] * queue[q].left)
        if shortest < best:
            p = fastest_feasible(q, view)
            if p >= 0:
                best, best_q, best_p = shortest, q, p
    if best_q < 0:
        return 0
    return start(out, queue[best_q].job, best_p)
