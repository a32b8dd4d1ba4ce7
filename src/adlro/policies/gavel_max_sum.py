"""Gavel, max-sum: time shares with the largest sum of relative speeds, in rounds of 360 s.

Maximise the sum over jobs and pools of v_jg / v_j* X_jg (POLICIES 1.6a; v_j* is the job's best
speed): no sizes are used. Between equals a job stays where it runs (worth a thousandth), then the
older one goes first (a ten-thousandth from the oldest to the youngest). Shares, rounds and
priorities as in gavel.py, moves as in moves.py.
"""

import numpy as np

from adlro.policies import gavel
from adlro.policies.active import plain_view
from adlro.policies.shares import most

PREEMPTIVE = True
params, memory = gavel.params, gavel.memory


def _solve(view, active, own):
    count, mask = len(active.ids), active.open()
    stays = active.pool[:, None] == np.arange(len(view.pools))
    age = 1.0 - np.arange(count)[:, None] / count
    gain = active.relative() + gavel.STAY * stays + gavel.OLDER * age
    return most(gain, active, mask, f"gavel-max-sum at {view.now:.0f} s")


def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
    """In a round, the pairs by priority; between rounds, what fits."""
    view = plain_view(now, jobs, est, queue, eligible, running, pools, nodes, gpus)
    return gavel.decide(view, params, memory, out, _solve)
