"""Round-based planning: plans are made at fixed intervals, and only if they can change anything.

A round is due `length` seconds after the last one. It takes place if by then a job or a node has
come or gone since the last round, or the plan rotates, or a run has become old enough to be
preempted while a job waits. Only a round preempts runs; between rounds a waiting job starts as soon
as it fits, the older first. The timer is set only for a round that will take place. A change of the
jobs or nodes sets no timer while every job runs on its fastest pool, as no round could improve it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adlro.model.state import Records
from adlro.model.view import View
from adlro.planning.actions import preempt_for, start_what_fits, wake
from adlro.planning.active_jobs import (
    ActiveJobs,
    Indices,
    Notes,
    collect,
    fingerprint,
    next_preemptible,
    too_young,
)

# Places in the head of the memory: 1 after the first round; time of the last round; 1 = its plan
# rotates; time of the last call; the fingerprints at the last call and at the last round.
BEGUN, LAST, ROTATES, MOMENT = range(1, 5)
_KNOWN, _PLANNED = slice(5, 8), slice(8, 11)


class RoundPlan(NamedTuple):
    """Plan of a round: target pools and order of the active jobs, and whether it rotates."""

    target: Indices  # [A] pools, -1 = none
    order: Indices  # [A] the most important job first
    rotates: bool  # the next round would plan otherwise even if no job or node comes or goes


Planner = Callable[
    [View, Notes, ActiveJobs, bool], RoundPlan
]  # the last: jobs or nodes have changed


def _newly_preemptible(view: View, last: float) -> bool:
    """True when a job waits and a run has become preemptible since the last round."""
    if len(view.queue) == 0:
        return False
    jobs = view.jobs[view.running["job"]]
    preemptible = (jobs["checkpoint"] >= 0) & ~too_young(view.now, view.running, jobs)
    return bool((preemptible & too_young(last, view.running, jobs)).any())


def _all_on_fastest_pool(view: View, notes: Notes) -> bool:
    """True when no job waits and each run is on the pool where its job is fastest."""
    if len(view.queue) > 0:
        return False
    active = collect(view, notes)
    present = active.seconds[np.arange(len(active.rows)), active.pool]
    return bool((present <= active.fastest()).all())


def _next_round(view: View, notes: Notes, length: float) -> float:
    """Time of the next round that takes place if no other event occurs; infinite = none."""
    head = notes.head
    due, at = head[LAST] + length, np.inf
    changed = (head[_KNOWN] != head[_PLANNED]).any()
    if head[ROTATES] or (changed and not _all_on_fastest_pool(view, notes)):
        at = due
    if len(view.queue) > 0:
        at = min(at, max(due, next_preemptible(view)))
    return float(at)


def answer(view: View, notes: Notes, length: float, plan: Planner, out: Records) -> int:
    """Write the decisions of a round-based policy; returns their number.

    Makes a plan if a round takes place now, and preempts for it; else starts one job that fits;
    else requests a wake for the next round.

    Args:
        view: the present view.
        notes: memory of the policy; this function maintains the head.
        length: length of a round in seconds.
        plan: makes the plan of a round.
        out: buffer for decisions.
    """
    head, known = notes.head, fingerprint(view)
    if not head[BEGUN] or head[MOMENT] != view.now or tuple(head[_KNOWN]) != known:
        head[MOMENT], head[_KNOWN] = view.now, known
        notes.step[view.queue["job"]] = 0.0
        changed = not head[BEGUN] or (head[_KNOWN] != head[_PLANNED]).any()
        due = not head[BEGUN] or view.now >= head[LAST] + length - 1e-9
        if due and (changed or head[ROTATES] or _newly_preemptible(view, head[LAST])):
            active = collect(view, notes)
            made = plan(view, notes, active, bool(changed))
            head[BEGUN], head[LAST], head[ROTATES] = 1.0, view.now, made.rotates
            head[_PLANNED] = known
            count = preempt_for(view, notes, active, made.target, made.order, out)
            if count > 0:
                return count
    worth = -np.arange(len(view.queue), dtype=np.float64)  # the older first
    count = start_what_fits(view, notes, worth, out)
    return count if count > 0 else wake(_next_round(view, notes, length), out)
