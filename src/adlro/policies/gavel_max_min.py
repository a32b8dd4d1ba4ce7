"""Gavel, max-min (LAS): time shares that make the worst-off job as well off as can be, in rounds.

Maximise the smallest n_j / v_j^prop * sum over pools of v_jg X_jg, with v_j^prop the speed that the
job has with all GPUs shared out evenly (POLICIES 1.6b); n_j is the gang's size (a slice counts as 1
here), and all jobs weigh the same: `priority` is not used. Rounds of 360 s, and what is left open
settled by the sum of speeds: see gavel.py and shares.py; moves as in moves.py.
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
    """In a round, the pairs by priority; between rounds, what fits."""
    return gavel.answer(plain_view(view), params, memory, out, _solve)
