"""Quasi-shortest service first: the job with the least GPU-time is next.

GPU-time is p * n, with p the estimated remaining run time on the best eligible pool and n the
number of GPUs (a slice: its share of one). Hu et al. 2021 (Helios, SC), the QSSF case study.
"""

from adlro.compiled import njit
from adlro.model.feasibility import better, no_pick, shortest, start_pick, width


@njit
def decide(view, params, memory, out):
    """Start the job with the smallest p * n, of those that fit now."""
    jobs, est, queue = view.jobs, view.est, view.queue
    eligible, pools = view.eligible, view.pools
    pick = no_pick()
    for q in range(len(queue)):
        j = queue[q].job
        seconds = shortest(est[j], queue[q].left, eligible[q], pools)
        score = seconds * width(jobs[j])
        pick = better(pick, score, q, view)
    return start_pick(pick, view, out)
