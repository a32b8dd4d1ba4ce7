"""Gavel, finish-time fairness: time shares that minimise the worst delay against an equal share.

The ratio of job j is (age + w_j / sum over pools of v_jg X_jg) / isolated time. X_jg is the share
of time that the job gets on pool g, v_jg its speed there and w_j its estimated remaining work. The
largest ratio of all jobs is minimised (Narayanan et al. 2020, OSDI, section 4.2; Mahajan et al.
2020, NSDI). The isolated time is what the job would need from arrival to end with one of |J| equal
parts of every pool, |J| being the number of active jobs: a time share of N_g / (|J| n_j) on a pool
of N_g GPUs for a job of n_j, at most 1 over all pools. Work done earlier counts with the |J| of its
time; work that was lost and is done again counts twice.

The optimum is found by bisection. No worst ratio can be below lo, the worst ratio if every job had
its full speed. A worst ratio of z requires that each job has the speed w_j / (z isolated - age).
The largest s such that all jobs have s times these speeds is a linear program, and z is feasible if
s >= 1. The first z is 1.01 lo; the next ones bisect, on a log scale, the range between lo and the
worst ratio of the shares that maximise the least multiple of the isolated speed, until the bounds
are within 1 %. The required speed is at least a hundredth of the isolated speed: less, for a job
that is nearly done, would be lost to rounding. Rounds last 360 s, and ties are broken by the sum of
speeds (planning/gavel.py, planning/allocation.py); planning/actions.py has the preemptions.
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
    """Return the speed [A] of each job with an equal part of every pool, relative to its best."""
    gpus = view.jobs["gpus"][active.rows][:, None]
    shares = np.minimum(view.pools["gpus"] / (len(active.rows) * gpus), 1.0)
    shares = np.where(np.isfinite(active.seconds), shares, 0.0)
    shares /= np.maximum(shares.sum(axis=1), 1.0)[:, None]
    return (active.relative() * shares).sum(axis=1)


def _isolated(active, speed, best, own):
    """Return the isolated time [A] of each active job, from arrival to end.

    Shapes: speed [A] with an equal part of every pool, relative to the fastest; best [A] remaining
    seconds on the fastest pool. own [J, 3] stores for each job the isolated seconds of its work
    done so far, its share of work left and the share done per isolated second; it is updated.
    """
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
        """Return the shares [A, P] that come closest to a worst ratio; True if they reach it."""
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
    """In a round, preempt and start jobs by priority; between rounds, start jobs that fit."""
    return gavel.answer(plain_view(view), params, memory, out, _solve)
