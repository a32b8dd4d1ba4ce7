"""A policy of your own: the widest job that fits goes first, on its fastest free pool.

Run it beside the others:  adlro compare paper16 --policies fcfs,min-min,examples/01_own_policy.py
"""

from adlro.compiled import njit
from adlro.model.room import fastest_feasible, start


@njit
def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
    """One call at each event, and again after each start; the answer 0 means wait."""
    best, best_p, widest = -1, -1, 0
    for q in range(len(queue)):
        j = queue[q].job
        p = fastest_feasible(jobs[j], est[j], eligible[q], pools, nodes, gpus)
        if p >= 0 and jobs[j].gpus > widest:
            best, best_p, widest = j, p, jobs[j].gpus
    return start(out, best, best_p) if best >= 0 else 0
