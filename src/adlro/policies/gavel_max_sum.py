"""Gavel, max-sum: time shares with the largest sum of relative speeds, in rounds of 360 s.

Maximise the sum over jobs and pools of v_jg / v_j* X_jg (POLICIES 1.6a; v_j* is the job's best
speed): no sizes are used. The optimum is seldom unique, as any number of jobs are at their best on
the same pool: between equals who has been served least goes first (active.py), so that they share
the pool in turns, as they do with the interior-point solver that Gavel used. Shares, rounds and
priorities as in gavel.py, moves as in moves.py.
"""

from adlro.planning import gavel
from adlro.planning.active_jobs import plain_view
from adlro.planning.allocation import max_total_shares

PREEMPTIVE = True
params, memory = gavel.params, gavel.memory


def _solve(view, active, own):
    gain = active.relative() + active.tie_break()
    return max_total_shares(gain, active, active.open(), f"gavel-max-sum at {view.now:.0f} s")


def decide(view, params, memory, out):
    """In a round, the pairs by priority; between rounds, what fits."""
    return gavel.answer(plain_view(view), params, memory, out, _solve)
