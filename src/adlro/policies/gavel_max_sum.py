"""Gavel, max-sum: time shares that maximise the sum of relative speeds, in rounds of 360 s.

The policy maximises the sum over jobs j and pools g of v_jg / v_j* X_jg. X_jg is the share of time
that the job gets on the pool, v_jg its speed there and v_j* its best speed (Narayanan et al. 2020,
OSDI, section 4.2, total throughput without costs); no run times are used. The optimum is seldom
unique, because many jobs can be fastest on the same pool: among equals the job with the least
service comes first, so that the jobs take turns, as with the interior-point solver of Gavel.
planning/gavel.py has the shares, rounds and priorities, planning/actions.py the preemptions.
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
    """In a round, preempt and start jobs by priority; between rounds, start jobs that fit."""
    return gavel.answer(plain_view(view), params, memory, out, _solve)
