"""Gavel, makespan: time shares that minimise the completion time of the last job, in rounds.

The smallest T with sum over pools of v_jg X_jg >= w_j / T for every job, w_j being its estimated
remaining work (Narayanan et al. 2020, OSDI, section 4.2). With s = 1 / T this is one linear program
without a binary search: the largest s with speeds of at least w_j s. Rounds last 360 s, and ties
are broken by the sum of speeds (planning/gavel.py, planning/allocation.py); planning/actions.py has
the preemptions.
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
    """At a round, the pairs by priority; between rounds, jobs that fit."""
    return gavel.answer(plain_view(view), params, memory, out, _solve)
