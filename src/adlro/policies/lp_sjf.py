"""Shortest pair first within the capacity LP: a job uses only the pools that the LP gives its type.

The linear program min rho, sum_t lambda_t n_t m_t / v_tg x_tg <= rho N_g, sum_g x_tg = 1 gives each
job type t the pools g with x_tg > 0 (Al-Azzoni and Down 2008, linear programming-based affinity
scheduling); a job never starts on another pool just because it is free. Of the allowed pairs that
fit, the one with the least est * left starts. A job that can use none of its type's pools uses its
fastest eligible pool.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import fastest_up, fits, start
from adlro.policies import static_affinity_lp


def refuses(context):
    """A cluster for which the capacity LP cannot be solved: as for static-affinity-lp."""
    return static_affinity_lp.refuses(context)


def params(context):
    """1 where a job type may use a pool, flat [T * P]: as for static-affinity-lp."""
    return static_affinity_lp.params(context)


@njit
def _only_pool(job, seconds, may, shares, pools):
    """The fastest pool of a job without an LP pool that has enough GPUs up; -1 if it has one."""
    for p in range(len(pools)):
        if may[p] and shares[p] > 0.0 and pools[p].gpus >= job.gpus:
            return -1
    return fastest_up(job, seconds, may, pools)


@njit
def decide(view, params, memory, out):
    """Start the allowed feasible pair with the smallest estimate."""
    jobs, est, queue, eligible = view.jobs, view.est, view.queue, view.eligible
    pools, nodes, gpus, count = view.pools, view.nodes, view.gpus, len(view.pools)
    best, best_q, best_p = np.inf, -1, -1
    for q in range(len(queue)):
        j = queue[q].job
        shares = params[jobs[j].type * count : (jobs[j].type + 1) * count]
        only = _only_pool(jobs[j], est[j], eligible[q], shares, pools)
        for p in range(count):
            if p == only or (eligible[q, p] and shares[p] > 0.0):
                seconds = est[j, pools[p].model] * queue[q].left
                if seconds < best and fits(jobs[j], pools[p], nodes, gpus):
                    best, best_q, best_p = seconds, q, p
    if best_q < 0:
        return 0
    return start(out, queue[best_q].job, best_p)
