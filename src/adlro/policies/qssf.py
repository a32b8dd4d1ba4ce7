"""Quasi-shortest service first: the job that needs the least GPU-time goes first.

Smallest p * n first, with p the run time by the estimate on the best eligible pool and n the GPUs
(a slice: its share). Hu et al., SC 2021 (Helios); POLICIES 1.3.
"""

import numpy as np

from adlro.compiled import njit_allocating
from adlro.model.room import shortest, start_by_score, width


@njit_allocating
def decide(view, params, memory, out):
    """Of the jobs that fit somewhere, the one with the smallest p * n."""
    jobs, est, queue = view.jobs, view.est, view.queue
    eligible, pools = view.eligible, view.pools
    scores = np.empty(len(queue))
    for q in range(len(queue)):
        j = queue[q].job
        seconds = shortest(est[j], queue[q].left, eligible[q], pools)
        scores[q] = seconds * width(jobs[j])
    return start_by_score(scores, view, out)
