"""Gavel, max-min fairness (LAS): time shares that maximise the least normalised speed, in rounds.

The policy maximises the smallest n_j / v_j^prop * sum over pools of v_jg X_jg over all jobs j. X_jg
is the share of time that job j gets on pool g, v_jg its speed there, v_j^prop its speed if all GPUs
are shared equally (Narayanan et al. 2020, OSDI, section 4.1), and n_j the number of its GPUs (a
slice counts as 1 here). All jobs have the same weight: `priority` is not used. Rounds last 360 s,
and ties are broken by the sum of speeds (planning/gavel.py, planning/allocation.py);
planning/actions.py has the preemptions.
"""

import numpy as np

from adlro.planning import gavel
from adlro.planning.active_jobs import plain_view
from adlro.planning.allocation import max_min_shares

PREEMPTIVE = True
params, memory = gavel.params, gavel.memory


def _solve(view, active, own):
    speeds, mask = active.relative(), active.open()
    even = speeds @ (view.pools["gpus"] / max(view.pools["gpus"].sum(), 1))
    need = np.where(even > 0, even, 1.0) / view.jobs["gpus"][active.rows]
    return max_min_shares(speeds, need, active, mask, f"gavel-max-min at {view.now:.0f} s")


def decide(view, params, memory, out):
    """In a round, preempt and start jobs by priority; between rounds, start jobs that fit."""
    return gavel.answer(plain_view(view), params, memory, out, _solve)
