"""Prices of the capacity LP: no pool for which a job would pay much more than for its cheapest.

In the linear program min rho, sum_t lambda_t n_t m_t / v_tg x_tg <= rho N_g, the dual of a pool's
line, over N_g, is the price y_g of a GPU there (the dearest = 1; 0.1 at least). A job pays
est * left * y_g for each of its GPUs. It may use the pools that cost at most 1.5 times as much as
the cheapest of its eligible pools with enough GPUs up; of all such pairs that fit now, the one that
pays least for a GPU starts. If nothing runs and there is none: the feasible pair with the smallest
est * left.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import fits, smallest_feasible, start

_KAPPA = 1.5  # how many times the cheapest price a job pays
_LEAST = 0.1  # of the dearest price: a pool that the LP does not fill is not for nothing


def refuses(context):
    """A cluster for which the capacity LP cannot be solved: its job types are not known."""
    if len(context.lp_prices) == 0:
        return "it needs the prices of the capacity LP, which this cluster does not know"
    return None


def params(context):
    """How dear a pool may be at most, in times the cheapest, then the price of each, [1 + P]."""
    return np.array([_KAPPA, *np.maximum(context.lp_prices, _LEAST)])


@njit
def _cheapest(job, seconds, may, prices, pools):
    """What the job pays a GPU on its cheapest pool with enough GPUs up; seconds [M], may [P]."""
    least = np.inf
    for p in range(len(pools)):
        if may[p] and pools[p].gpus >= job.gpus:
            least = min(least, seconds[pools[p].model] * prices[p])
    return least


@njit
def decide(view, params, memory, out):
    """The cheapest pair at a fair price."""
    jobs, est, queue, eligible = view.jobs, view.est, view.queue, view.eligible
    pools, nodes, gpus, prices = view.pools, view.nodes, view.gpus, params[1:]
    best, best_q, best_p = np.inf, -1, -1
    for q in range(len(queue)):
        j = queue[q].job
        most = params[0] * _cheapest(jobs[j], est[j], eligible[q], prices, pools)
        for p in range(len(pools)):
            pays = est[j, pools[p].model] * prices[p]
            is_best = eligible[q, p] and pays <= most and pays * queue[q].left < best
            if is_best and fits(jobs[j], pools[p], nodes, gpus):
                best, best_q, best_p = pays * queue[q].left, q, p
    if best_q < 0 and len(view.running) == 0:
        best_q, best_p = smallest_feasible(view)
    if best_q < 0:
        return 0
    return start(out, queue[best_q].job, best_p)
