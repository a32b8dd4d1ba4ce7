"""UNICEP: jobs with a long wait relative to their run time are next, narrow jobs before wide ones.

The job with the largest wait / (max(1, log2(n)) * p) is next, with wait = now - arrival, p the
remaining run time on the best eligible pool and n the number of GPUs (a slice: one). Tang et al.
2009 (IEEE Cluster), a utility function of the Cobalt scheduler at Argonne; the original has log2(n)
alone, which is 0 for one GPU.
"""

import math

from adlro.compiled import njit
from adlro.model.feasibility import better, no_pick, shortest, start_pick


@njit
def decide(view, params, memory, out):
    """Start the job with the largest wait / (max(1, log2(n)) * p), of those that fit now."""
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
