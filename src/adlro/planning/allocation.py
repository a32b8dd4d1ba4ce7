"""Linear programs over time shares: the share of its time that each job spends on each pool.

Variables X [A, P] >= 0, for A active jobs and P pools. For each job, the sum of X over the pools is
at most 1; for each pool, the sum of width * X over the jobs is at most room, where width is the
number of GPUs that a job holds and room that of the pool (Narayanan et al., Gavel, OSDI 2020).
Solved by HiGHS' dual simplex, so that the solution is a vertex with few fractional shares; through
scipy's milp (without integer variables), which returns the same solutions as linprog, digit for
digit, in 60 % of its time.

A long queue makes a large program, and each round with an arrival solves another one. There jobs
that differ only in their need form a class, and the program has one row of variables per class: the
sum of the shares of its jobs. Each job of a class gets its part of this sum in proportion to its
need. The program of the classes is a relaxation of that of the jobs, so if no job gets more than
all of its time, the shares are an optimum of both. Otherwise each job that would get more becomes a
class of its own, and the program is solved again. The optimum is the same as without classes, but
it is another vertex: jobs of a class with equal needs have equal shares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import csc_array

from adlro.errors import PolicyError
from adlro.model.state import Floats, Mask
from adlro.planning.active_jobs import ActiveJobs, Indices

TIME_LIMIT_S = 30.0  # for one program
_SUM_WEIGHT = 1e-3  # weight of the mean speed beside the smallest normalised speed
_TOLERANCE = 1e-6  # shares this near to 0 or 1 are rounded
_MANY = 1000  # pairs (job, pool), above which a program is solved by classes if a queue is long
_LONG = 2.0  # times the GPUs of the cluster: a queue is long if all jobs together need more
_DIGITS = 9  # speeds that agree in so many decimals are equal


class _MaxMin(NamedTuple):
    """A max-min program of C classes of jobs."""

    speeds: Floats  # [C, P]
    mask: Mask  # [C, P] pairs that may be used
    width: Floats  # [C] GPUs that a job holds
    jobs: Floats  # [C] number of jobs
    need: Floats  # [C] sum of the needs of the jobs
    room: Floats  # [P] GPUs of each pool


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


def _solve_classes(program: _MaxMin, where: str) -> Floats:
    """Shares [C, P], summed over the jobs of each class, that maximise s; see max_min_shares."""
    speeds, mask, room = program.speeds, program.mask, program.room
    a, p = np.nonzero(mask)
    able, count, last = np.flatnonzero(mask.any(axis=1)), len(mask), len(a)
    first = count + len(room)  # first row of the needs; the rows of jobs and pools are before it
    values = [np.ones(last), program.width[a], -speeds[mask], program.need[able]]
    rows = [a, count + p, first + np.searchsorted(able, a), first + np.arange(len(able))]
    columns = np.concatenate([np.tile(np.arange(last), 3), np.full(len(able), last)])
    bounds = np.concatenate([program.jobs, np.maximum(room, 0.0), np.zeros(len(able))])
    places = (np.concatenate(rows), columns)
    matrix = csc_array((np.concatenate(values), places), shape=(len(bounds), last + 1))
    weight = _SUM_WEIGHT / program.jobs[able].sum()
    shares = np.zeros(mask.shape)
    shares[mask] = _solve(np.append(speeds[mask] * weight, 1.0), matrix, bounds, where)[:last]
    return shares


def _in_order(label: Indices) -> tuple[Indices, Indices]:
    """First job [C] of each class, in the order of the jobs, and the class [A] of each job."""
    first, of = np.unique(label, return_index=True, return_inverse=True)[1:]
    order = np.argsort(first)
    return first[order], np.argsort(order)[of.ravel()]


def _solve_by_class(each: _MaxMin, where: str) -> Floats:
    """Shares [A, P] of an optimum of the program `each`, found with one class for equal jobs."""
    like = np.column_stack([np.where(each.mask, each.speeds.round(_DIGITS), -1.0), each.width])
    label = np.unique(like, axis=0, return_inverse=True)[1].ravel()
    alone = np.zeros(len(label), np.bool_)
    while True:
        own = np.where(alone, len(label) + np.arange(len(label)), label)
        first, of = _in_order(own)
        need = np.bincount(of, each.need).astype(np.float64)
        jobs = np.bincount(of).astype(np.float64)
        total = _solve_classes(
            _MaxMin(each.speeds[first], each.mask[first], each.width[first], jobs, need, each.room),
            where,
        )
        shares: Floats = total[of] * (each.need / need[of])[:, None]
        over = shares.sum(axis=1) > 1 + _TOLERANCE
        if not (over & ~alone).any():
            return shares
        alone |= over


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
    able = mask.any(axis=1)
    if not able.any():
        return np.zeros(mask.shape)
    ones, scaled = np.ones(len(mask)), need / need[able].max()
    each = _MaxMin(speeds, mask, active.width, ones, scaled, active.room)
    waits = active.width[able].sum() > _LONG * np.maximum(active.room, 0.0).sum()
    solve = _solve_by_class if waits and mask.sum() > _MANY else _solve_classes
    return _table(solve(each, where)[mask], mask)
