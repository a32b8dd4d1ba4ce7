"""Shortest pair first within the capacity LP: a job uses only the pools that the LP gives its type.

The linear program min rho, sum_t lambda_t n_t m_t / v_tg x_tg <= rho N_g, sum_g x_tg = 1 gives each
job type t the pools g with x_tg > 0 (Al-Azzoni and Down 2008, linear programming-based affinity
scheduling). Here lambda_t is the arrival rate of type t, n_t its GPUs, m_t its mean run time on the
reference GPU, v_tg its speed on pool g relative to that GPU, x_tg the share of its jobs that run on
pool g, N_g the GPUs of the pool and rho the utilisation. A job never starts on another pool just
because it is free. Of the allowed pairs of a job and a pool that fit, the one with the least
remaining run time starts. A job that can use none of its type's pools uses its fastest eligible
pool.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import fastest_up, fits, large_enough, start
from adlro.policies import static_affinity_lp


def refuses(context):
    """Refuse a cluster whose job types are unknown; return the reason, or None if it can run."""
    return static_affinity_lp.refuses(context)


def params(context):
    """Return 1 where the LP lets a job type use a pool, else 0; flat [T * P], T types, P pools."""
    return static_affinity_lp.params(context)


@njit
def _only_pool(job, seconds, may, shares, pools):
    """Return the only pool that a job may use if it cannot run on any pool of its type, else -1.

    That is its fastest eligible pool with enough GPUs up (-1 also if there is none). Shapes:
    seconds [M] by GPU model; may and shares [P]: eligible pools, and the type's row of params.
    """
    for p in range(len(pools)):
        if may[p] and shares[p] > 0.0 and large_enough(job, pools[p]):
            return -1
    return fastest_up(job, seconds, may, pools)


@njit
def decide(view, params, memory, out):
    """Start the job and pool with the least remaining run time, of the allowed pairs that fit."""
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
