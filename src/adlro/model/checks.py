"""Is a decision feasible? The same checks in every world; what is wrong is a code of faults.py."""

from __future__ import annotations

from adlro.compiled import njit
from adlro.model import violations
from adlro.model.feasibility import anchors, capacity, fits
from adlro.model.state import Row
from adlro.model.view import View

_NEARLY = 1e-9  # seconds


@njit
def _check_named(decision: Row, view: View) -> int:
    """The fault of the node or GPU that a start names, 0 if there is room."""
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
    if capacity(job, nodes[n], gpus) < 1:
        return violations.NO_ROOM_THERE
    return violations.NONE


@njit
def check_start(decision: Row, q: int, view: View) -> int:
    """The fault of a start, 0 if it is feasible; q is the queue place of its job, -1 = none."""
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
    """The fault of a preemption or migration, 0 if it is feasible.

    slot is the place of its job in view.running, -1 = it does not run.
    """
    if slot < 0:
        return violations.NOT_RUNNING
    run = view.running[slot]
    if view.now - run.start < view.jobs[run.job].least_run - _NEARLY:
        return violations.TOO_YOUNG
    return violations.NONE
