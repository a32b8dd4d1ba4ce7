"""Static GPU affinity: each job type has one GPU model, first come, first served on each.

This is the baseline of the ADLRO paper, which maps simulation to Volta, ML to Turing and data to
Radeon; the map is part of the scenario. A job that cannot run on its model, or finds too few of its
GPUs up, uses its fastest pool.
"""

import numpy as np

from adlro.compiled import njit
from adlro.model.feasibility import fastest_up, fits, start


def refuses(context):
    """A cluster whose job types, or their GPU models, are not known."""
    if len(context.affinity) == 0:
        return "it needs job types, which this cluster does not know"
    return None


def params(context):
    """The GPU model of each job type, [T]."""
    return np.array(context.affinity, dtype=np.float64)


def memory(context):
    """One flag per pool: closed for younger jobs."""
    return len(context.pools)


@njit
def decide(view, params, memory, out):
    """In queue order, the first job of each pool starts there or closes the pool to the others."""
    jobs, est, queue, eligible = view.jobs, view.est, view.queue, view.eligible
    pools, nodes, gpus = view.pools, view.nodes, view.gpus
    closed = memory[: len(pools)]
    closed[:] = 0.0
    shut = 0
    for q in range(len(queue)):
        j = queue[q].job
        own = -1
        for p in range(len(pools)):
            own_model = pools[p].model == params[jobs[j].type]
            if own_model and eligible[q, p] and pools[p].gpus >= jobs[j].gpus:
                own = p
                break
        if own < 0:
            own = fastest_up(jobs[j], est[j], eligible[q], pools)
        if own >= 0 and closed[own] == 0.0:
            if fits(jobs[j], pools[own], nodes, gpus):
                return start(out, j, own)
            closed[own] = 1.0
            shut += 1
            if shut == len(pools):
                return 0
    return 0
