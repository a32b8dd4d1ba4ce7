"""Hetero-SRPT: jobs and GPUs are matched by speed over remaining time, with preemption.

The weight of job j on pool g is (v_jg / v_j*) / (R_j + 1 s), with R_j its remaining seconds on its
fastest pool and v_jg / v_j* its speed on g relative to the best. It is multiplied by 1.05 where j
already runs, and on other pools by R_j / (R_j + c) if j has a checkpoint to restore, c being the
restart cost. Gangs and slices get their pools first, greedily by weight per GPU; then jobs of one
whole GPU are assigned to the remaining GPUs by a maximum-weight matching. Jobs that cannot be
preempted keep their GPUs. planning/actions.py has the preemptions and the starts of jobs without a
place in the plan. The policy asks to be woken only when a run becomes preemptible while a job
waits. The rule is ours: shortest remaining processing time (Schrage 1968) on unrelated machines.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from adlro.model.state import WHOLE
from adlro.planning.actions import preempt_for, start_what_fits, take_in_order, wake
from adlro.planning.active_jobs import (
    collect,
    fingerprint,
    memory_size,
    next_preemptible,
    notes_of,
    plain_view,
)

PREEMPTIVE = True
_STAY, _SOON = range(2)  # params
_MOMENT, _KNOWN = 1, slice(2, 5)  # memory: time and fingerprint of the plan


def params(context):
    """Factor on the weight where a job already runs, and seconds added to its remaining time."""
    return np.array([1.05, 1.0])


def memory(context):
    """Length of the memory: for each job what planning/active_jobs.py stores between calls."""
    return memory_size(context)


def _weights(view, active, params):
    """Return the weight [A, P] of each active job on each pool; 0 where it may not be placed."""
    fastest = active.fastest()
    left = np.where(np.isfinite(fastest), fastest, 0.0)
    cost = np.where(active.begun, view.jobs["checkpoint"][active.rows], 0.0)
    moved = left / (left + cost + 1e-300)
    stays = active.pool[:, None] == np.arange(len(view.pools))
    worth = active.relative() / (left + params[_SOON])[:, None]
    worth *= np.where(stays, params[_STAY], moved[:, None])
    return np.where(active.open(), worth, 0.0)


def _match(worth, room):
    """Match A one-GPU jobs to the GPUs left, room [P], by weight; return their pools, -1 = none."""
    places = np.minimum(np.floor(room + 1e-9).astype(np.int64), len(worth))
    slots = np.repeat(np.arange(len(room)), np.maximum(places, 0))
    target = np.full(len(worth), -1)
    rows, columns = linear_sum_assignment(worth[:, slots], maximize=True)
    useful = worth[rows, slots[columns]] > 0
    target[rows[useful]] = slots[columns[useful]]
    return target


def _targets(view, active, worth):
    single = active.width == 1
    single &= view.jobs["share"][active.rows] == WHOLE
    target, room = np.full(len(worth), -1), active.room.copy()
    if not single.all():
        a, p = np.nonzero(worth)
        order = np.argsort(-worth[a, p] / active.width[a], kind="stable")
        take_in_order(a[order], p[order], active.width, room, target)
        used = ~single & (target >= 0)
        room = active.room - np.bincount(target[used], active.width[used], len(room))
    target[single] = _match(worth[single], room)
    return target


def decide(view, params, memory, out):
    """Plan and preempt once per event time, then make the planned starts one by one."""
    view = plain_view(view)
    notes, known = notes_of(memory, view), fingerprint(view)
    if notes.head[_MOMENT] != view.now or tuple(notes.head[_KNOWN]) != known:
        notes.head[_MOMENT], notes.head[_KNOWN] = view.now, known
        active = collect(view, notes)
        worth = _weights(view, active, params)
        target = _targets(view, active, worth)
        at = np.take_along_axis(worth, np.maximum(target, 0)[:, None], 1)[:, 0] / active.width
        order = np.lexsort((active.fastest(), -np.where(target >= 0, at, 0.0)))
        count = preempt_for(view, notes, active, target, order, out)
        if count > 0:
            return count
    shortest = np.where(view.eligible, view.est[view.queue["job"]][:, view.pools["model"]], np.inf)
    worth = -shortest.min(axis=1, initial=np.inf) * view.queue["left"]
    count = start_what_fits(view, notes, worth, out)
    if count > 0 or len(view.queue) == 0:
        return count
    return wake(next_preemptible(view), out)
