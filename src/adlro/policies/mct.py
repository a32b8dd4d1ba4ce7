"""Minimum completion time: in queue order, each job is planned on the pool where it ends first.

At each event the whole queue is planned anew. A job's pool is the one with the smallest ready time
+ remaining run time, given the jobs before it; its reservation is fixed, even if it begins in the
future. The first start that is due now is made. Maheswaran et al. 1999 (MCT, an immediate mode
heuristic). min-min plans in the same way, but in another order of jobs.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import any_feasible, start
from adlro.planning.list_order import best_in_plan, hold, is_due, may_start
from adlro.planning.min_min import fill_plan


def memory(context):
    """Length of the memory: scratch for the plan; nothing is stored between calls."""
    return 2 * len(context.gpus) + len(context.pools)


@njit
def decide(view, params, memory, out):
    """Plan the queue anew and make the first planned start that is due now, if any."""
    if not any_feasible(view):
        return 0
    jobs, queue, pools, total = view.jobs, view.queue, view.pools, len(view.gpus)
    times, one_node, counts = memory[:total], memory[total : 2 * total], memory[2 * total :]
    fill_plan(view, counts, times, one_node)
    for q in range(len(queue)):
        if not may_start(q, view, counts, times):
            return 0
        j, best = queue[q].job, best_in_plan(q, view, times, one_node)
        if best.end < np.inf:
            if is_due(jobs[j], pools[best.pool], view, times, one_node):
                return start(out, j, best.pool)
            hold(jobs[j], best, pools, counts, times)
    return 0
