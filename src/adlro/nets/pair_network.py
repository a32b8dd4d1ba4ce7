"""Inference of adlro-preemptive's network: a weight for each pair of an active job and a pool."""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.features.pair_kernel import PAIR_FEATURES, SRPT, TIME_LEFT, describe, measure
from adlro.features.start_kernel import DRAIN, DRAIN_LOG
from adlro.model.state import Floats
from adlro.model.view import View
from adlro.nets.q_network import UNITS, predict
from adlro.planning.active_jobs import ActiveJobs

_COST_MOST = 60.0  # larger costs count as this

if (SRPT, TIME_LEFT) != (DRAIN, DRAIN_LOG):
    raise ImportError("q_network.predict reads the residual from other columns")


@njit
def _is_uniform(open_pairs: Floats, seconds: Floats) -> bool:
    """True if every active job is equally fast on all pools where a plan may place it.

    Shapes: open_pairs [A, P], 0 = not open; seconds [A, P].
    """
    for a in range(len(seconds)):
        least, most = np.inf, 0.0
        for p in range(seconds.shape[1]):
            if open_pairs[a, p] > 0.0:
                least, most = min(least, seconds[a, p]), max(most, seconds[a, p])
        if most > least * (1.0 + 1e-9):
            return False
    return True


@njit_allocating
def weigh(active: ActiveJobs, view: View, params: Floats) -> Floats:
    """Return the weight [A, P] of each pair of an active job and a pool: exp(-predicted cost).

    The weight is 0 where a plan may not place the job: it is pinned, too wide or cannot run there.
    """
    count, total = active.seconds.shape
    worth, is_open = np.zeros((count, total)), np.zeros(count, np.bool_)
    for a in range(count):
        for p in range(total):
            fits_in = active.width[a] <= active.room[p] + 1e-9 and not active.pinned[a]
            if fits_in and active.seconds[a, p] < np.inf:
                worth[a, p], is_open[a] = 1.0, True
    crowd, jobs = measure(active, is_open, view), view.jobs
    is_uniform = _is_uniform(worth, active.seconds)
    scratch, x = np.empty(UNITS), np.zeros(len(PAIR_FEATURES))
    for a in range(count):
        for p in range(total):
            if worth[a, p] > 0.0:
                describe(a, p, jobs[active.rows[a]], active, crowd, x)
                if is_uniform:
                    cost = x[SRPT]
                else:
                    predict(x, params, scratch)
                    cost = scratch[0]
                worth[a, p] = np.exp(-max(min(cost, _COST_MOST), -_COST_MOST))
    return worth
