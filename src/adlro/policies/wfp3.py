"""WFP3: jobs with a long wait relative to their run time are next, wide jobs before narrow ones.

The job with the largest (wait / p)^3 * n is next, with wait = now - arrival, p the remaining run
time on the best eligible pool and n the number of GPUs (a slice: its share of one). Tang et al.
2009 (IEEE Cluster), the utility function of the Cobalt scheduler at Argonne.
"""

from adlro.compiled import njit
from adlro.model.feasibility import better, no_pick, shortest, start_pick, width


@njit
def decide(view, params, memory, out):
    """Start the job with the largest (wait / p)^3 * n, of those that fit now."""
    now, jobs, est, queue = view.now, view.jobs, view.est, view.queue
    eligible, pools = view.eligible, view.pools
    pick = no_pick()
    for q in range(len(queue)):
        j = queue[q].job
        seconds = shortest(est[j], queue[q].left, eligible[q], pools)
        ratio = (now - jobs[j].arrival) / seconds
        score = -(ratio * ratio * ratio * width(jobs[j]))
        pick = better(pick, score, q, view)
    return start_pick(pick, view, out)
