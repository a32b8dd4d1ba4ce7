"""Gavel, finish-time fairness: time shares that make the worst ratio to an equal share small.

A job's ratio is (age + w_j / sum over pools of v_jg X_jg) / isolated time, w_j being the work that
it still has to do by the estimate; the smallest possible worst ratio is wanted (POLICIES 1.6c). In
isolation a job has, of every pool, one of |J| equal parts (a time share of N_g / (|J| n_j), cut to
a whole one over all pools); its isolated time is w_j over its speed with that, plus for all work
done before the same with the |J| of that time. (Lost work that is done again counts again.)
The search begins with the shares that are best for the worst-off in multiples of its isolated
speed, and goes down: with z the worst ratio so far, the speeds that keep everybody at z are w_j /
(z isolated - age); the largest s with s times these speeds is a linear program, and its shares
have a worst ratio below z unless s = 1. It ends when s is below 1.01. No job is asked to do with
less than a hundredth of its isolated speed: who is nearly done could do with so little that it is
lost to rounding. Rounds of 360 s, and what is left open settled by the sum of speeds: see gavel.py
and shares.py; moves as in moves.py.
"""

import numpy as np

from adlro.policies import gavel
from adlro.policies.active import plain_view
from adlro.policies.shares import fairest

PREEMPTIVE = True
params, memory = gavel.params, gavel.memory
_GAIN = 1.01
_LEAST = 0.01  # of its isolated speed


def _equal_speeds(view, active):
    """Speed [A], relative to its best, of each job with an equal part of every pool."""
    gpus = view.jobs["gpus"][active.ids][:, None]
    shares = np.minimum(view.pools["gpus"] / (len(active.ids) * gpus), 1.0)
    shares = np.where(np.isfinite(active.seconds), shares, 0.0)
    shares /= np.maximum(shares.sum(axis=1), 1.0)[:, None]
    return (active.relative() * shares).sum(axis=1)


def _isolated(active, speed, best, own):
    """Seconds [A] that each job takes in isolation from its arrival to its end; keeps the books."""
    past, left, before = own[active.ids, :3].T
    done = np.where(before > 0, np.maximum(left - active.left, 0.0), 0.0)
    past = past + np.divide(done, before, out=np.zeros_like(done), where=before > 0)
    rate = speed / best * active.left  # of the whole work in a second
    own[active.ids, :3] = np.column_stack([past, active.left, rate])
    return past + active.left / rate


def _solve(view, active, own):
    mask = active.open()
    able = mask.any(axis=1)
    fastest, speeds = active.fastest(), active.relative()
    best, speed = np.where(np.isfinite(fastest), fastest, 1.0), _equal_speeds(view, active)
    speed = np.where(speed > 0, speed, 1.0)
    alone = _isolated(active, speed, best, own)
    age, gain = view.now - view.jobs["arrival"][active.ids], np.inf
    where = f"gavel-ftf at {view.now:.0f} s"
    shares = fairest(speeds, speed, active, mask, where)
    while able.any() and gain > _GAIN:
        got = np.maximum((speeds * shares).sum(axis=1), _LEAST * speed)
        worst = ((age + best / got) / alone)[able].max()
        need = best / np.where(able, worst * alone - age, np.inf)
        need = np.maximum(need, _LEAST * speed)
        shares = fairest(speeds, need, active, mask, where)
        gain = ((speeds * shares).sum(axis=1) / need)[able].min()
    return shares


def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
    """In a round, the pairs by priority; between rounds, what fits."""
    view = plain_view(now, jobs, est, queue, eligible, running, pools, nodes, gpus)
    return gavel.answer(view, params, memory, out, _solve)
