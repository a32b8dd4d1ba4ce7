"""Shortest job first: of the jobs that fit now, the one with the least run time starts.

The run time of a job is the remaining one on its best eligible pool, free or not; the job starts on
its fastest pool that has room.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import fastest_feasible, start


@njit
def decide(view, params, memory, out):
    """Start the job with the smallest run time on its best eligible pool, of those that fit now."""
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
