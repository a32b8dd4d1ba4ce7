"""Gavel's heterogeneity-blind LAS: max-min fairness with all GPUs taken as equally fast, in rounds.

This is the baseline with which Gavel is compared: its max-min policy with every throughput set to 1
(Narayanan et al. 2020, OSDI; class MaxMinFairnessPolicy in the authors' code). The smallest n_j *
sum over pools of X_jg is maximised, X_jg being the share of time that job j of n_j GPUs gets on
pool g. Estimates are used nowhere, neither for the shares nor for starts between rounds, which take
the first pool with room; only pools on which a job cannot run at all are avoided. Rounds, rotation
and preemptions are those of gavel-max-min.

The optimum leaves open who gets which GPUs. If all jobs may use the same pools and all fit at once,
each keeps the pool where it runs, and a waiting job gets the pool with the most room: without
speeds there is no reason to pay for a move. If not all fit, each job spends its time on the pools
in proportion to their GPUs, as an interior-point solver, such as that of Gavel, would divide it. If
jobs may use different pools, the shares are those of planning/allocation.py.
"""

import numpy as np

from adlro.planning import gavel
from adlro.planning.active_jobs import plain_view
from adlro.planning.allocation import max_min_shares

PREEMPTIVE = True
params, memory = gavel.params, gavel.memory


def equal_time(gangs, width, room):
    """Return the time shares [A] <= 1 that maximise the smallest gangs * share, then the others.

    Shapes: gangs [A] number of GPUs, a slice as 1; width [A] GPUs held, a slice as its share; room:
    GPUs of all pools. Jobs with full time leave the rest of the GPUs to the wider ones.
    """
    order = np.argsort(gangs, kind="stable")
    n, w = gangs[order].astype(np.float64), width[order]
    before = np.concatenate([[0.0], np.cumsum(w)[:-1]])  # held by the jobs with full time
    after = np.cumsum((w / n)[::-1])[::-1]
    level = (room - before) / after  # of gangs * share, if the jobs from here on get equal levels
    limited = np.flatnonzero(level < n)
    if len(limited) == 0:
        return np.ones(len(gangs))
    return np.minimum(1.0, max(level[limited[0]], 0.0) / gangs)


def settled(pool, width, room):
    """Return the pool [A] of each job if all can run at once without a move, else None.

    Shapes: pool [A] where each job runs, -1 = it waits; width [A] GPUs held; room [P] GPUs.
    """
    runs, found = pool >= 0, pool.copy()
    left = room - np.bincount(pool[runs], width[runs], len(room))
    for a in np.flatnonzero(~runs):
        found[a] = int(np.argmax(left))
        left[found[a]] -= width[a]
    return found if left.min() >= -1e-9 else None


def _solve(view, active, own):
    mask = active.open()
    able, gangs, pools = mask.any(axis=1), view.jobs["gpus"][active.rows], mask.any(axis=0)
    shares, room = np.zeros(mask.shape), np.where(pools, active.room, 0.0)
    if not able.any():
        return shares
    if not (mask[able] == pools).all():
        where = f"gavel-max-min-blind at {view.now:.0f} s"
        return max_min_shares(mask.astype(np.float64), 1.0 / gangs, active, mask, where)
    target = settled(active.pool[able], active.width[able], room)
    if target is not None:
        shares[np.flatnonzero(able), target] = 1.0
    else:
        time = equal_time(gangs[able], active.width[able], room.sum())
        shares[able] = time[:, None] * (room / room.sum())
    return shares


def decide(view, params, memory, out):
    """In a round, preempt and start jobs by priority; between rounds, start jobs that fit."""
    view = plain_view(view)
    alike = view._replace(est=np.where(np.isfinite(view.est), 1.0, np.inf))
    return gavel.answer(alike, params, memory, out, _solve)
