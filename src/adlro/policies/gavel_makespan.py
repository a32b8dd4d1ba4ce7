"""Gavel, makespan: time shares that minimise the completion time of the last job, in rounds.

The policy finds the smallest T with sum over pools of v_jg X_jg >= w_j / T for every job j. X_jg is
the share of time that job j gets on pool g, v_jg its speed there and w_j its estimated remaining
work (Narayanan et al. 2020, OSDI, section 4.2). With s = 1 / T one linear program is enough, and no
binary search is needed: the largest s such that every job has at least the speed w_j s. Rounds last
360 s, and ties are broken by the sum of speeds (planning/gavel.py, planning/allocation.py);
planning/actions.py has the preemptions.
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
    """In a round, preempt and start jobs by priority; between rounds, start jobs that fit."""
    return gavel.answer(plain_view(view), params, memory, out, _solve)
