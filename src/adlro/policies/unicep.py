"""UNICEP: jobs that have waited long for their length go first, the narrow before the wide ones.

Largest wait / (max(1, log2(n)) * p) first, with wait = now - arrival, p the run time on the best
eligible pool and n the GPUs (a slice: one). From the Cobalt scheduler of Argonne (Tang et al.,
Cluster 2009); POLICIES 1.1. The formula has log2(n) alone, which is 0 for one GPU.
"""

import math

from adlro.compiled import njit
from adlro.model.feasibility import better, no_pick, shortest, start_pick


@njit
def decide(view, params, memory, out):
    """Of the jobs that fit somewhere, the one with the largest wait / (log2(n) * p)."""
    now, jobs, est, queue = view.now, view.jobs, view.est, view.queue
    eligible, pools = view.eligible, view.pools
    pick = no_pick()
    for q in range(len(queue)):
        j = queue[q].job
        seconds = shortest(est[j], queue[q].left, eligible[q], pools)
        wait = now - jobs[j].arrival
        score = -(wait / (max(1.0, math.log2(jobs[j].gpus)) * seconds))
        pick = better(pick, score, q, view)
    return start_pick(pick, view, out)
