"""Minimum completion time, re-planned at each event: in queue order, each job where it ends first.

Job after job is planned on the pool with the smallest ready time + est * left, given the jobs
before it, and keeps that reservation, even in the future; the first start that is due now is made.
Maheswaran et al. 1999 (MCT, an immediate mode heuristic). The plan is that of min-min in another
order.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import any_feasible, start
from adlro.planning.list_order import best_in_plan, hold, is_due, may_start
from adlro.planning.min_min import asked, fill_free_times


def memory(context):
    """Scratch for the plan; nothing is stored between calls."""
    return len(context.gpus) + len(context.pools)


@njit
def decide(view, params, memory, out):
    """Make the first start of the plan that is due now."""
    if not any_feasible(view):
        return 0
    jobs, queue, pools, total = view.jobs, view.queue, view.pools, len(view.gpus)
    times, counts = memory[:total], memory[total : total + len(pools)]
    fill_free_times(asked(jobs, queue), view, counts, times)
    for q in range(len(queue)):
        if not may_start(q, view, counts, times):
            return 0
        j, best = queue[q].job, best_in_plan(q, view, times)
        if best.end < np.inf:
            if is_due(jobs[j], pools[best.pool], view, times):
                return start(out, j, best.pool)
            hold(jobs[j], best, pools, counts, times)
    return 0
