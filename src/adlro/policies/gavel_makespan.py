"""Gavel, makespan: time shares that let the last of the jobs end as soon as can be, in rounds.

The smallest T with sum over pools of v_jg X_jg >= w_j / T for every job, w_j being the work that it
still has to do by the estimate (POLICIES 1.6d). As 1 / T stands alone on its side this is one
linear program, without a search: the largest s with speeds of at least w_j s. Rounds of 360 s, and
what is left open settled by the sum of speeds: see gavel.py and shares.py; moves as in moves.py.
"""

import numpy as np

from adlro.planning import gavel
from adlro.planning.active_jobs import plain_view
from adlro.planning.allocation import max_min_shares

PREEMPTIVE = True
params, memory = gavel.params, gavel.memory


def _solve(view, active, own):
    fastest, mask = active.fastest(), active.open()
    need = np.where(np.isfinite(fastest), fastest, 1.0)  # work, where the best speed is 1
    where = f"gavel-makespan at {view.now:.0f} s"
    return max_min_shares(active.relative(), need, active, mask, where)


def decide(view, params, memory, out):
    """In a round, the pairs by priority; between rounds, what fits."""
    return gavel.answer(plain_view(view), params, memory, out, _solve)
