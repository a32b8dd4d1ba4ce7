"""Shadow prices of the capacity LP: a job uses only pools near its cheapest one, by GPU price.

In the linear program min rho, sum_t lambda_t n_t m_t / v_tg x_tg <= rho N_g (Al-Azzoni and Down
2008), the dual variable of a pool's constraint over N_g is the price y_g of a GPU there (the
highest = 1; at least 0.1). A job pays est * left * y_g per GPU. It may use the pools that cost at
most 1.5 times its cheapest eligible pool with enough GPUs up; of all such pairs that fit now, the
one that pays least per GPU starts. If nothing runs and there is none, the feasible pair with the
smallest est * left starts. The rule is ours.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import fits, smallest_feasible, start

_KAPPA = 1.5  # largest ratio of a job's price to its cheapest
_LEAST = 0.1  # smallest price: a pool that the LP does not fill is not free of charge


def refuses(context):
    """A cluster for which the capacity LP cannot be solved: its job types are not known."""
    if len(context.lp_prices) == 0:
        return "it needs the prices of the capacity LP, which this cluster does not know"
    return None


def params(context):
    """The largest ratio to the cheapest price, then the price of each pool, [1 + P]."""
    return np.array([_KAPPA, *np.maximum(context.lp_prices, _LEAST)])


@njit
def _cheapest(job, seconds, may, prices, pools):
    """The least price per GPU over the pools with enough GPUs up; seconds [M], may [P]."""
    least = np.inf
    for p in range(len(pools)):
        if may[p] and pools[p].gpus >= job.gpus:
            least = min(least, seconds[pools[p].model] * prices[p])
    return least


@njit
def decide(view, params, memory, out):
    """Start the allowed pair that pays least per GPU."""
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
