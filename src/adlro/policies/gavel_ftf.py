"""Gavel, finish-time fairness: time shares that make the worst ratio to an equal share small.

A job's ratio is (age + w_j / sum over pools of v_jg X_jg) / isolated time, w_j being the work that
it still has to do by the estimate; the smallest possible worst ratio is wanted (POLICIES 1.6c). In
isolation a job has, of every pool, one of |J| equal parts (a time share of N_g / (|J| n_j), cut to
a whole one over all pools); its isolated time is w_j over its speed with that, plus for all work
done before the same with the |J| of that time. (Lost work that is done again counts again.)
No ratio can be below lo, the worst with every job at its full speed. To keep everybody at a ratio z
the speeds w_j / (z isolated - age) are needed; the largest s with s times these speeds is a linear
program, and z can be kept if s >= 1. Tried are 1.01 lo, then halves (by logarithm) of what is left
between lo and the worst ratio of the shares that are best for the worst-off in multiples of its
isolated speed, until the two are within 1 % of each other. No job is asked to do with
less than a hundredth of its isolated speed: who is nearly done could do with so little that it is
lost to rounding. Rounds of 360 s, and what is left open settled by the sum of speeds: see gavel.py
and shares.py; moves as in moves.py.
"""

import numpy as np

from adlro.planning import gavel
from adlro.planning.active_jobs import plain_view
from adlro.planning.allocation import max_min_shares

PREEMPTIVE = True
params, memory = gavel.params, gavel.memory
_GAIN = 1.01  # a worst ratio within this of the smallest is good enough
_NEARLY = 1e-6
_LEAST = 0.01  # of its isolated speed


def _equal_speeds(view, active):
    """Speed [A], relative to its best, of each job with an equal part of every pool."""
    gpus = view.jobs["gpus"][active.rows][:, None]
    shares = np.minimum(view.pools["gpus"] / (len(active.rows) * gpus), 1.0)
    shares = np.where(np.isfinite(active.seconds), shares, 0.0)
    shares /= np.maximum(shares.sum(axis=1), 1.0)[:, None]
    return (active.relative() * shares).sum(axis=1)


def _isolated(active, speed, best, own):
    """Seconds [A] that each job takes in isolation from its arrival to its end; keeps the books."""
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

    def keeping(ratio):
        """Shares that come nearest to a worst ratio, and whether they keep it."""
        need = best / np.where(able, ratio * alone - age, np.inf)
        need = np.maximum(need, _LEAST * speed)
        shares = max_min_shares(speeds, need, active, mask, where)
        return shares, ((speeds * shares).sum(axis=1) / need)[able].min() >= 1 - _NEARLY

    low, shares, high = worst(best), None, np.inf
    tried = low * _GAIN
    while high > low * _GAIN:
        found, is_kept = keeping(tried)
        if is_kept:
            shares, high = found, tried
        else:
            low = tried
        if shares is None:
            shares = max_min_shares(speeds, speed, active, mask, where)
            high = worst(best / np.maximum((speeds * shares).sum(axis=1), _LEAST * speed))
        tried = np.sqrt(low * high)
    return shares


def decide(view, params, memory, out):
    """In a round, the pairs by priority; between rounds, what fits."""
    return gavel.answer(plain_view(view), params, memory, out, _solve)
