"""Affinity by the capacity LP: each job type uses the pools that the LP gives it, oldest job first.

The linear program spreads the job types over the pools so that the cluster carries the largest
load (Al-Azzoni and Down 2008, linear programming-based affinity scheduling). Each pool is served
first come, first served: an old job that cannot start closes its pools to younger ones.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import fastest_up, fits, start


def refuses(context):
    """A cluster for which the capacity LP cannot be solved: its job types are not known."""
    if len(context.type_shares) == 0:
        return "it needs job types, which this cluster does not know"
    return None


def params(context):
    """1 where a job type may use a pool, flat [T * P]."""
    return (context.type_shares > 1e-9).astype(np.float64).ravel()


def memory(context):
    """Two flags per pool: closed to younger jobs; allowed for the current job."""
    return 2 * len(context.pools)


@njit
def _mark(job, own, may, shares, pools, fastest):
    """Set may[p] where a job may run: its type's pools, or else only its fastest. All [P]."""
    found = False
    for p in range(len(may)):
        may[p] = 1.0 if own[p] and shares[p] > 0.0 and pools[p].gpus >= job.gpus else 0.0
        found = found or may[p] > 0.0
    if not found and fastest >= 0:
        may[fastest] = 1.0


@njit
def decide(view, params, memory, out):
    """In queue order, a job starts on its fastest open pool or closes all pools it may use."""
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
