"""Minimum completion time, re-planned at each event: in queue order, each where it ends first.

Job after job goes to the pool with the smallest ready time + est * left, given those before it, and
holds that place, even in the future; the first whose turn is now is started. Source: MCT of
Maheswaran et al. (1999), with late binding; the plan is that of min-min but for its order.
"""

import numpy as np

from adlro.compiled import njit
from adlro.encode.plan import asked, fill_free_times
from adlro.encode.plan_order import best_in_plan, hold, is_due, may_start
from adlro.model.room import any_feasible, start


def memory(setting):
    """Scratch for the plan; nothing is kept from call to call."""
    return len(setting.layout.gpus) + len(setting.pools)


@njit
def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
    """The plan's first start."""
    if not any_feasible(jobs, queue, eligible, pools, nodes, gpus):
        return 0
    times, counts = memory[: len(gpus)], memory[len(gpus) : len(gpus) + len(pools)]
    fill_free_times(now, asked(jobs, queue), jobs, running, pools, counts, times)
    for q in range(len(queue)):
        if not may_start(now, jobs, queue[q:], pools, counts, times):
            return 0
        j, left, may = queue[q].job, queue[q].left, eligible[q]
        best = best_in_plan(now, jobs[j], est[j], left, may, pools, nodes, gpus, times)
        if best.end < np.inf:
            if is_due(now, jobs[j], pools[best.pool], nodes, gpus, times):
                return start(out, j, best.pool)
            hold(jobs[j], best, pools, counts, times)
    return 0
