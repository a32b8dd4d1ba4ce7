"""Linear programs over time shares: the share of its time that each job spends on each pool.

Variables X [A, P] >= 0, for A active jobs and P pools. For each job, the sum of X over the pools is
at most 1; for each pool, the sum of width * X over the jobs is at most room, where width is the
number of GPUs that a job holds and room that of the pool (Narayanan et al., Gavel, OSDI 2020).
Solved by HiGHS' dual simplex, so that the solution is a vertex with few fractional shares; through
scipy's milp (without integer variables), which returns the same solutions as linprog, digit for
digit, in 60 % of its time.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import csc_array

from adlro.errors import PolicyError
from adlro.model.state import Floats, Mask
from adlro.planning.active_jobs import ActiveJobs, Indices

TIME_LIMIT_S = 30.0  # for one program
_SUM_WEIGHT = 1e-3  # weight of the mean speed beside the smallest normalised speed
_TOLERANCE = 1e-6  # shares this near to 0 or 1 are rounded


def _solve(gain: Floats, rows: csc_array, bounds: Floats, where: str) -> Floats:
    """Return the x >= 0 that maximises gain @ x subject to rows @ x <= bounds.

    Raises:
        PolicyError: there is no solution, or the solver gave up.
    """
    limits = LinearConstraint(rows, -np.inf, bounds)
    found = milp(-gain, constraints=limits, options={"time_limit": TIME_LIMIT_S})
    if found.status != 0:
        reason = " ".join(str(found.message).split())
        raise PolicyError(f"policy {where}: its linear program was not solved: {reason}")
    return np.asarray(found.x, np.float64)


def _limits(a: Indices, p: Indices, active: ActiveJobs) -> tuple[Floats, Indices, Floats]:
    """Coefficients, their rows, and bounds of the constraints: A rows for jobs, then P for pools.

    a, p: job and pool of each variable. A variable has one coefficient in each of the two parts.
    """
    jobs = len(active.rows)
    coefficients = np.concatenate([np.ones(len(a)), active.width[a]])
    bounds = np.concatenate([np.ones(jobs), np.maximum(active.room, 0.0)])
    return coefficients, np.concatenate([a, jobs + p]), bounds


def _table(x: Floats, mask: Mask) -> Floats:
    """Shares [A, P] from the solution x of the pairs in the mask; nearly 0 or 1 is rounded."""
    x = np.where(x < _TOLERANCE, 0.0, np.where(x > 1 - _TOLERANCE, 1.0, x))
    shares = np.zeros(mask.shape)
    shares[mask] = x
    return shares


def max_total_shares(gain: Floats, active: ActiveJobs, mask: Mask, where: str) -> Floats:
    """Shares [A, P] that maximise the sum of gain * X; 0 for pairs outside the mask.

    Raises:
        PolicyError: see _solve.
    """
    a, p = np.nonzero(mask)
    if len(a) == 0:
        return np.zeros(mask.shape)
    values, rows, bounds = _limits(a, p, active)
    columns = np.tile(np.arange(len(a)), 2)
    matrix = csc_array((values, (rows, columns)), shape=(len(bounds), len(a)))
    return _table(_solve(gain[mask], matrix, bounds, where), mask)


def max_min_shares(
    speeds: Floats, need: Floats, active: ActiveJobs, mask: Mask, where: str
) -> Floats:
    """Shares [A, P] that maximise s, where each job has at least the speed s * need.

    The mean of all speeds is maximised too, with a thousandth of the weight.

    Args:
        speeds: [A, P] speed of a job that spends all its time there, relative to its best.
        need: [A] > 0, speed that a job should have in proportion to the other jobs.
        active: the active jobs, with their widths and the GPUs of each pool.
        mask: [A, P] pairs that may be used; a job without any is left out.
        where: policy and time, for the error message.

    Raises:
        PolicyError: see _solve.
    """
    a, p = np.nonzero(mask)
    if len(a) == 0:
        return np.zeros(mask.shape)
    able = np.flatnonzero(mask.any(axis=1))
    scale = need[able] / need[able].max()
    values, rows, bounds = _limits(a, p, active)
    first, last = len(bounds), len(a)  # first row of the needs, and column of s
    values = np.concatenate([values, -speeds[mask], scale])
    rows = np.concatenate([rows, first + np.searchsorted(able, a), first + np.arange(len(able))])
    columns = np.concatenate([np.tile(np.arange(last), 3), np.full(len(able), last)])
    bounds = np.concatenate([bounds, np.zeros(len(able))])
    matrix = csc_array((values, (rows, columns)), shape=(len(bounds), last + 1))
    gain = np.append(speeds[mask] * (_SUM_WEIGHT / len(able)), 1.0)
    return _table(_solve(gain, matrix, bounds, where)[:last], mask)
