"""Affinity by the capacity LP: each job type uses the pools that the LP gives it, oldest job first.

The linear program spreads the job types over the pools so that the cluster carries the largest
load (Al-Azzoni and Down 2008, linear programming-based affinity scheduling). Each pool is served
first come, first served: a job that cannot start yet closes its pools to younger jobs.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import fastest_up, fits, large_enough, start


def refuses(context):
    """Refuse a cluster whose job types are unknown; return the reason, or None if it can run."""
    if len(context.type_shares) == 0:
        return "it needs job types, which this cluster does not know"
    return None


def params(context):
    """Return 1 where the LP lets a job type use a pool, else 0; flat [T * P], T types, P pools."""
    return (context.type_shares > 1e-9).astype(np.float64).ravel()


def memory(context):
    """Length of the memory: scratch, two flags per pool; nothing is stored between calls."""
    return 2 * len(context.pools)


@njit
def _mark(job, own, may, shares, pools, fastest):
    """Write 1 to may [P] for each pool that a job may use, 0 for the others.

    These are the eligible pools of its type with enough GPUs up; if there are none, only `fastest`,
    its fastest eligible pool. Shapes: own [P] eligible; shares [P] the type's row of params.
    """
    found = False
    for p in range(len(may)):
        may[p] = 1.0 if own[p] and shares[p] > 0.0 and large_enough(job, pools[p]) else 0.0
        found = found or may[p] > 0.0
    if not found and fastest >= 0:
        may[fastest] = 1.0


@njit
def decide(view, params, memory, out):
    """Start the oldest job that fits on a pool not closed by an older job that cannot start."""
    jobs, est, queue, eligible = view.jobs, view.est, view.queue, view.eligible
    pools, nodes, gpus, count = view.pools, view.nodes, view.gpus, len(view.pools)
    closed, may = memory[:count], memory[count : 2 * count]
    closed[:] = 0.0
    shut = 0
    for q in range(len(queue)):
        j = queue[q].job
        shares = params[jobs[j].type * count : (jobs[j].type + 1) * count]
        fastest = fastest_up(jobs[j], est[j], eligible[q], pools)
        _mark(jobs[j], eligible[q], may, shares, pools, fastest)
        best, best_p = np.inf, -1
        for p in range(count):
            quicker = may[p] > 0.0 and closed[p] == 0.0 and est[j, pools[p].model] < best
            if quicker and fits(jobs[j], pools[p], nodes, gpus):
                best, best_p = est[j, pools[p].model], p
        if best_p >= 0:
            return start(out, j, best_p)
        for p in range(count):
            if may[p] > 0.0 and closed[p] == 0.0:
                closed[p] = 1.0
                shut += 1
        if shut == count:
            return 0
    return 0
