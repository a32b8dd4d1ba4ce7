"""Shadow prices of the capacity LP: a job uses only pools that cost little more than its cheapest.

In the linear program min rho, sum_t lambda_t n_t m_t / v_tg x_tg <= rho N_g (Al-Azzoni and Down
2008; lp-sjf defines the symbols), the price y_g of a GPU is the dual variable of its pool's
constraint divided by N_g, scaled so that the highest price is 1, and at least 0.1. A job pays its
remaining run time * y_g per GPU. It may use the pools that cost at most 1.5 times as much as its
cheapest eligible pool with enough GPUs up. Of all such pairs of a job and a pool that fit now, the
one that pays least per GPU starts. If nothing runs and there is no such pair, the feasible pair
with the least remaining run time starts. The rule is ours.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import fits, large_enough, smallest_feasible, start

_KAPPA = 1.5  # largest ratio of a job's price to its cheapest
_LEAST = 0.1  # smallest price: a pool that the LP does not fill is not free of charge


def refuses(context):
    """Refuse a cluster without prices of the capacity LP, which needs job types; return the reason.

    Returns None if it can run.
    """
    if len(context.lp_prices) == 0:
        return "it needs the prices of the capacity LP, which this cluster does not know"
    return None


def params(context):
    """Largest allowed ratio of a job's cost to its least; then the GPU price of each of P pools."""
    return np.array([_KAPPA, *np.maximum(context.lp_prices, _LEAST)])


@njit
def _cheapest(job, seconds, may, prices, pools):
    """Return the least cost per GPU of a job over its eligible pools with enough GPUs up.

    The cost is for the whole job. Shapes: seconds [M] by GPU model, may [P] eligible, prices [P].
    """
    least = np.inf
    for p in range(len(pools)):
        if may[p] and large_enough(job, pools[p]):
            least = min(least, seconds[pools[p].model] * prices[p])
    return least


@njit
def decide(view, params, memory, out):
    """Start the job and pool that cost least per GPU, of the allowed pairs that fit."""
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
