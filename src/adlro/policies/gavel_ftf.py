"""Gavel, finish-time fairness: time shares that minimise the worst ratio to an equal share.

A job's ratio is (age + w_j / sum over pools of v_jg X_jg) / isolated time, w_j being its estimated
remaining work; the largest ratio is minimised (Narayanan et al. 2020, OSDI, section 4.2; Mahajan et
al. 2020, NSDI). In isolation a job has one of |J| equal parts of every pool (a time share of
N_g / (|J| n_j), at most 1 over all pools). Its isolated time is w_j over its speed with that part,
plus the same for all work done before with the |J| of that time; work that was lost and is done
again counts twice.

No ratio can be below lo, the worst one if every job had its full speed. A worst ratio z requires
the speeds w_j / (z isolated - age); the largest s with s times these speeds is a linear program,
and z is feasible if s >= 1. The first z is 1.01 lo, the next ones bisect (by logarithm) the range
between lo and the worst ratio of the shares that maximise the least multiple of the isolated speed,
until both are within 1 %. The required speed is at least a hundredth of the isolated speed: less,
for a job that is nearly done, would be lost to rounding. Rounds last 360 s, and ties are broken by
the sum of speeds (planning/gavel.py, planning/allocation.py); planning/actions.py has the
preemptions.
"""

import numpy as np

from adlro.planning import gavel
from adlro.planning.active_jobs import plain_view
from adlro.planning.allocation import max_min_shares

PREEMPTIVE = True
params, memory = gavel.params, gavel.memory
_GAIN = 1.01  # factor on the smallest worst ratio that is close enough
_NEARLY = 1e-6
_LEAST = 0.01  # share of the isolated speed that is always required


def _equal_speeds(view, active):
    """Relative speed [A] of each job with an equal part of every pool."""
    gpus = view.jobs["gpus"][active.rows][:, None]
    shares = np.minimum(view.pools["gpus"] / (len(active.rows) * gpus), 1.0)
    shares = np.where(np.isfinite(active.seconds), shares, 0.0)
    shares /= np.maximum(shares.sum(axis=1), 1.0)[:, None]
    return (active.relative() * shares).sum(axis=1)


def _isolated(active, speed, best, own):
    """Isolated time [A] of each job from arrival to end; updates the policy's own columns."""
    past, left, before = own[active.rows, :3].T
    done = np.where(before > 0, np.maximum(left - active.left, 0.0), 0.0)
    past = past + np.divide(done, before, out=np.zeros_like(done), where=before > 0)
    rate = speed / best * active.left  # of the whole work in a second
    own[active.rows, :3] = np.column_stack([past, active.left, rate])
    return past + active.left / rate


def _solve(view, active, own):
    mask = active.open()
    able = mask.any(axis=1)
    fastest, speeds = active.fastest(), active.relative()
    best, speed = np.where(np.isfinite(fastest), fastest, 1.0), _equal_speeds(view, active)
    speed = np.where(speed > 0, speed, 1.0)
    alone = _isolated(active, speed, best, own)
    age, where = view.now - view.jobs["arrival"][active.rows], f"gavel-ftf at {view.now:.0f} s"
    if not able.any():
        return np.zeros(mask.shape)

    def worst(seconds):
        return ((age + seconds) / alone)[able].max()

    def shares_for(ratio):
        """The shares that come closest to a worst ratio, and True if they reach it."""
        need = best / np.where(able, ratio * alone - age, np.inf)
        need = np.maximum(need, _LEAST * speed)
        shares = max_min_shares(speeds, need, active, mask, where)
        return shares, ((speeds * shares).sum(axis=1) / need)[able].min() >= 1 - _NEARLY

    low, shares, high = worst(best), None, np.inf
    tried = low * _GAIN
    while high > low * _GAIN:
        found, is_feasible = shares_for(tried)
        if is_feasible:
            shares, high = found, tried
        else:
            low = tried
        if shares is None:
            shares = max_min_shares(speeds, speed, active, mask, where)
            high = worst(best / np.maximum((speeds * shares).sum(axis=1), _LEAST * speed))
        tried = np.sqrt(low * high)
    return shares


def decide(view, params, memory, out):
    """At a round, the pairs by priority; between rounds, jobs that fit."""
    return gavel.answer(plain_view(view), params, memory, out, _solve)
