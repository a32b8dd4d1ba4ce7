"""Plans that are made in rounds, and no more often than they can change anything. Not a policy.

A round is due so many seconds after the last. It takes place when it is due and a job or a node has
come or gone since the last one, or the plan wants to rotate, or a run has become old enough to be
stopped while a job waits. Only a round stops runs; between rounds whoever waits starts as soon as
it fits, the older first. A timer is set only for a round that will take place, and not for the
jobs that came or went if every job runs on its fastest pool: no round could better that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adlro.model.state import Records
from adlro.model.view import View
from adlro.planning.actions import preempt_for, start_what_fits, wake
from adlro.planning.active_jobs import (
    Active,
    Indices,
    Notes,
    collect,
    fingerprint,
    next_preemptible,
    too_young,
)

BEGUN, LAST, ROTATES, MOMENT = range(1, 5)  # memory: a round has been; when; whether it rotates;
_KNOWN, _PLANNED = slice(5, 8), slice(8, 11)  # the moment; jobs and nodes then, and at the plan


class RoundPlan(NamedTuple):
    """What a round decides."""

    target: Indices  # [A] pools, -1 = none
    order: Indices  # [A] the most important first
    rotates: bool  # another round would decide otherwise, with nothing new


Planner = Callable[[View, Notes, Active, bool], RoundPlan]  # the last: jobs or nodes have changed


def _has_ripened(view: View, last: float) -> bool:
    if len(view.queue) == 0:
        return False
    jobs = view.jobs[view.running["job"]]
    able = (jobs["checkpoint"] >= 0) & ~too_young(view.now, view.running, jobs)
    return bool((able & too_young(last, view.running, jobs)).any())


def _all_at_their_best(view: View, notes: Notes) -> bool:
    """True when nobody waits and each run is on the pool where its job is fastest."""
    if len(view.queue) > 0:
        return False
    active = collect(view, notes)
    own = active.seconds[np.arange(len(active.rows)), active.pool]
    return bool((own <= active.fastest()).all())


def _next(view: View, notes: Notes, length: float) -> float:
    """When the next round takes place if nothing else happens; infinite = never."""
    head = notes.head
    due, at = head[LAST] + length, np.inf
    changed = (head[_KNOWN] != head[_PLANNED]).any()
    if head[ROTATES] or (changed and not _all_at_their_best(view, notes)):
        at = due
    if len(view.queue) > 0:
        at = min(at, max(due, next_preemptible(view)))
    return float(at)


def answer(view: View, notes: Notes, length: float, plan: Planner, out: Records) -> int:
    """Hold a round if one takes place now; start what fits; else wake for the next round.

    Args:
        view: what the policy sees.
        notes: its memory; this function keeps the head.
        length: seconds from round to round.
        plan: makes a round's plan.
        out: where decisions are written.
    """
    head, known = notes.head, fingerprint(view)
    if not head[BEGUN] or head[MOMENT] != view.now or tuple(head[_KNOWN]) != known:
        head[MOMENT], head[_KNOWN] = view.now, known
        notes.step[view.queue["job"]] = 0.0
        changed = not head[BEGUN] or (head[_KNOWN] != head[_PLANNED]).any()
        due = not head[BEGUN] or view.now >= head[LAST] + length - 1e-9
        if due and (changed or head[ROTATES] or _has_ripened(view, head[LAST])):
            active = collect(view, notes)
            made = plan(view, notes, active, bool(changed))
            head[BEGUN], head[LAST], head[ROTATES] = 1.0, view.now, made.rotates
            head[_PLANNED] = known
            count = preempt_for(view, notes, active, made.target, made.order, out)
            if count > 0:
                return count
    worth = -np.arange(len(view.queue), dtype=np.float64)  # the older first
    count = start_what_fits(view, notes, worth, out)
    return count if count > 0 else wake(_next(view, notes, length), out)
