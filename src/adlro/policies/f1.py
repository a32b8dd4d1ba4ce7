"""F1, a fitted ranking function: early submissions are next, then short and narrow jobs.

The job with the smallest log10(p) * n + 870 * log10(submit + 1) is next, with p the remaining run
time on the best eligible pool, n the number of GPUs (a slice: its share of one) and submit the
arrival, all times in seconds. Carastan-Santos and de Camargo 2017 (SC), function F1, fitted to
simulated schedules; the + 1 is ours, because our clock starts at 0.
"""

import math

from adlro.compiled import njit
from adlro.model.feasibility import better, no_pick, shortest, start_pick, width


@njit
def decide(view, params, memory, out):
    """Start the job with the smallest value of F1, of those that fit now."""
    jobs, est, queue = view.jobs, view.est, view.queue
    eligible, pools = view.eligible, view.pools
    pick = no_pick()
    for q in range(len(queue)):
        j = queue[q].job
        seconds = shortest(est[j], queue[q].left, eligible[q], pools)
        submitted = 870.0 * math.log10(jobs[j].arrival + 1.0)
        score = math.log10(seconds) * width(jobs[j]) + submitted
        pick = better(pick, score, q, view)
    return start_pick(pick, view, out)
