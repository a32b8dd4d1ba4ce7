"""Minimum completion time, re-planned at each event: in queue order, each where it ends first.

Job after job goes to the pool with the smallest ready time + est * left, given those before it, and
holds that place, even in the future; the first whose turn is now is started. Source: MCT of
Maheswaran et al. (1999), with late binding; the plan is that of min-min but for its order.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import any_feasible, start
from adlro.planning.list_order import best_in_plan, hold, is_due, may_start
from adlro.planning.min_min import asked, fill_free_times


def memory(context):
    """Scratch for the plan; nothing is kept from call to call."""
    return len(context.gpus) + len(context.pools)


@njit
def decide(view, params, memory, out):
    """The plan's first start."""
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
