"""ADLRO that may preempt: a network weighs every job that waits or could be stopped, on every pool.

At each moment it plans as if all that can be stopped were: who runs where, and who waits. A job
that gets the pool on which it runs is kept, one that gets another moves, one that gets none makes
room if its GPUs are wanted; whoever cannot be stopped keeps its GPUs. Two ways to plan:

- If every active job takes one whole GPU and can checkpoint: the matching of jobs to GPUs with the
  largest sum of exp(-cost), where a network of its own gives the cost of each pair
  (features/pair_kernel.py). With a network of zeros that is Hetero-SRPT.
- Else jobs are chosen one after the other by adlro's network, until it would rather wait, with
  restarts as run time (planning/relaxed_state.py); runs that have less left than ten restarts take
  go on. Where nobody can checkpoint, these are adlro's own decisions.

From plan to decisions as in moves.py, but beyond the plan only those start that can checkpoint, for
they can be stopped again. It wakes only for a run that becomes old enough while a job waits.
"""

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.feasibility import shortest, start
from adlro.model.state import PREEMPT, WAKE, WHOLE
from adlro.model.view import View
from adlro.nets import q_network
from adlro.nets.pair_network import weigh
from adlro.planning.actions import first_start, plan_actions
from adlro.planning.active_jobs import (
    GOAL,
    HEAD,
    SHARED,
    STEP,
    Active,
    gather,
    memory_size,
    note_jobs,
    preemptible_at,
)
from adlro.planning.assignment import match
from adlro.planning.relaxed_state import (
    complete_order,
    pin_costly_restarts,
    relax,
    relaxed_view,
    start_chosen,
)
from adlro.policies import adlro
from adlro.policies.loading import learned

PREEMPTIVE = True
_MOMENT = 1  # memory: from here on when the plan was made, and for which jobs and nodes
_SCRATCH, _STAY, _DEAR, _FIRST, _NETWORKS = range(5)  # params
_IN_TURN = (1.3, 10.0)  # factor on run times after a move; restarts that a run must have left


def params(context, weights=None):
    """The weights that come with the package: those for pairs, unless told others, and adlro's."""
    scratch = q_network.scratch_size(len(context.gpus), len(context.pools))
    first = learned.shipped("adlro-preemptive").params if weights is None else weights
    head = [scratch, *_IN_TURN, len(first)]
    return np.concatenate([head, first, learned.shipped().params_for(context)])


def memory(context, weights=None):
    """As in active.py, and scratch for adlro's look."""
    return memory_size(context) + q_network.scratch_size(len(context.gpus), len(context.pools))


@njit
def _is_new(head, view):
    """True when there is no plan yet for this moment; a node that goes or comes makes a new one."""
    up = 0.0
    for n in range(len(view.nodes)):
        up = (31.0 * up + view.nodes[n].up) % 1e12
    active = len(view.queue) + len(view.running)
    known = (view.now, float(view.arrived), float(active), up)
    is_new = False
    for i in range(4):
        is_new = is_new or head[_MOMENT + i] != known[i]
        head[_MOMENT + i] = known[i]
    return is_new


@njit
def _nobody_can(view):
    """True when no active job can checkpoint."""
    queue, running = view.queue, view.running
    for i in range(len(queue) + len(running)):
        j = queue[i].job if i < len(queue) else running[i - len(queue)].job
        if view.jobs[j].checkpoint >= 0:
            return False
    return True


@njit
def _all_single(active, jobs):
    """True when every active job takes one whole GPU and can be stopped, now or later."""
    for a in range(len(active.rows)):
        job = jobs[active.rows[a]]
        if job.gpus > 1 or job.share < WHOLE or job.checkpoint < 0:
            return False
    return True


@njit_allocating
def _matched(active, view, params):
    """Targets [A] of the matching, and the jobs in the order of what they are worth there."""
    worth = weigh(active, view, params)
    target, key = match(worth, active.room), np.zeros(len(active.rows))
    for a in range(len(key)):
        if target[a] >= 0:
            key[a] = -worth[a, target[a]]
    return target, np.argsort(key, kind="mergesort")


@njit_allocating
def _stop(active, target, order, rows, view, out):
    """Write the stops that lead to the targets, and note who starts where; how many stops."""
    total, stops = len(view.pools), 0
    stop, step = plan_actions(order, target, active, view)
    for a in range(len(order)):
        j = active.rows[a]
        rows[j, total + STEP], rows[j, total + GOAL] = step[a], target[a]
        if stop[a]:
            out[stops].kind, out[stops].job = PREEMPT, j
            stops += 1
    return stops


@njit_allocating
def _start(view, rows, out):
    """Write a start of the plan, or of who can be stopped again, the shortest first."""
    queue, total = view.queue, len(view.pools)
    worth, may = np.empty(len(queue)), view.eligible.copy()
    for q in range(len(queue)):
        j = queue[q].job
        worth[q] = -shortest(view.est[j], queue[q].left, view.eligible[q], view.pools)
        if rows[j, total + STEP] == 0.0 and view.jobs[j].checkpoint < 0:
            may[q, :] = False
    narrowed = View(
        view.now, view.jobs, view.est, queue, may, view.running, view.pools, view.nodes, view.gpus,
        view.arrived, view.recent,
    )  # fmt: skip
    return first_start(worth, rows[:, total + STEP], rows[:, total + GOAL], narrowed, out)


@njit_allocating
def decide(view, params, memory, out):
    """Once a moment, make the plan and stop whom it stops; then start what it starts."""
    columns, end = len(view.pools) + SHARED, HEAD + int(params[_SCRATCH])
    scratch, rest = memory[HEAD:end], memory[end:]
    rows = rest.reshape((len(rest) // columns, columns))
    note_jobs(view, rows)
    patient = _nobody_can(view)
    if patient or _is_new(memory, view):
        active = Active(*gather(view, rows))
        pairs = params[_NETWORKS : _NETWORKS + int(params[_FIRST])]
        if not patient and _all_single(active, view.jobs):
            target, order = _matched(active, view, pairs)
        else:
            weights = params[_NETWORKS + len(pairs) :]
            pin_costly_restarts(active, view.jobs, params[_DEAR])
            then = relax(params[_STAY], active, rows, view)
            while (
                then.counts[0] > 0
                and adlro.decide(relaxed_view(then), weights, scratch, then.out) > 0
            ):
                if patient:
                    return start(out, active.rows[then.out[0].job], then.out[0].pool)
                start_chosen(active, then)
            if patient:
                return 0
            complete_order(then)
            target, order = then.target, then.order
        count = _stop(active, target, order, rows, view, out)
        if count > 0:
            return count
    count = _start(view, rows, out)
    if count > 0 or len(view.queue) == 0:
        return count
    at = preemptible_at(view)
    if at == np.inf:
        return 0
    out[0].kind, out[0].at = WAKE, at
    return 1
