"""Static GPU affinity: each job type uses one GPU model, first come, first served.

This is the baseline of the ADLRO paper, which maps simulation to Volta, ML to Turing and data to
Radeon; the map is part of the scenario. A job that cannot run on the model of its type, or needs
more GPUs of it than are up, uses its fastest pool.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import fastest_up, fits, large_enough, start


def refuses(context):
    """Refuse a cluster without a known GPU model for each job type; return the reason, or None."""
    if len(context.affinity) == 0:
        return "it needs job types, which this cluster does not know"
    return None


def params(context):
    """Index of the GPU model that each of the T job types uses, [T]."""
    return np.array(context.affinity, dtype=np.float64)


def memory(context):
    """Length of the memory: scratch, one flag per pool; nothing is stored between calls."""
    return len(context.pools)


@njit
def decide(view, params, memory, out):
    """Start the oldest job of a pool if it fits there; younger jobs of that pool wait behind it."""
    jobs, est, queue, eligible = view.jobs, view.est, view.queue, view.eligible
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    closed = memory[: len(pools)]
    closed[:] = 0.0
    shut = 0
    for q in range(len(queue)):
        j = queue[q].job
        job, own_model, own = jobs[j], params[jobs[j].type], -1
        for p in range(len(pools)):
            is_own = eligible[q, p] and pools[p].model == own_model
            if is_own and large_enough(job, pools[p]):
                own = p
                break
        if own < 0:
            own = fastest_up(job, est[j], eligible[q], pools)
        if own >= 0 and closed[own] == 0.0:
            if fits(job, pools[own], nodes, gpus):
                return start(out, j, own)
            closed[own] = 1.0
            shut += 1
            if shut == len(pools):
                return 0
    return 0
