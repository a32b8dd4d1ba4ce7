"""Feasibility checks of decisions, for the simulator and a live cluster alike.

Each check returns a code of model/violations.py.
"""

from __future__ import annotations

from adlro.compiled import njit
from adlro.model import violations
from adlro.model.feasibility import anchors, capacity, fits, least_on_node
from adlro.model.state import Row
from adlro.model.view import View

_TOLERANCE_S = 1e-9


@njit
def _check_named(decision: Row, view: View) -> int:
    """Violation code of a start that names a node or GPU; 0 if the job can start there."""
    nodes, gpus = view.nodes, view.gpus
    pool, job, n = view.pools[decision.pool], view.jobs[decision.job], decision.node
    if n < -1 or decision.gpu < -1:
        return violations.NO_ROOM_THERE
    if decision.gpu >= 0:
        g = decision.gpu
        if g >= len(gpus) or (n >= 0 and n != gpus[g].node):
            return violations.NO_ROOM_THERE
        n = gpus[g].node
        if not anchors(job, gpus[g], nodes[n], gpus):
            return violations.NO_ROOM_THERE
    if n < pool.first_node or n >= pool.first_node + pool.nodes:
        return violations.NO_ROOM_THERE
    if capacity(job, nodes[n], gpus) < least_on_node(job):
        return violations.NO_ROOM_THERE
    return violations.NONE


@njit
def check_start(decision: Row, q: int, view: View) -> int:
    """Violation code of a start; 0 if it is feasible.

    q is the position of the job in the queue; -1 = the job does not wait.
    """
    if q < 0:
        return violations.NOT_WAITING
    if decision.pool < 0 or decision.pool >= len(view.pools):
        return violations.NO_SUCH_POOL
    if not view.eligible[q, decision.pool]:
        return violations.NOT_ELIGIBLE
    if not fits(view.jobs[decision.job], view.pools[decision.pool], view.nodes, view.gpus):
        return violations.NO_ROOM
    if decision.node != -1 or decision.gpu != -1:
        return _check_named(decision, view)
    return violations.NONE


@njit
def check_stop(slot: int, view: View) -> int:
    """Violation code of a preemption or migration; 0 if it is feasible.

    slot is the position of the job in view.running; -1 = the job does not run.
    """
    if slot < 0:
        return violations.NOT_RUNNING
    run = view.running[slot]
    if view.now - run.start < view.jobs[run.job].least_run - _TOLERANCE_S:
        return violations.TOO_YOUNG
    return violations.NONE
