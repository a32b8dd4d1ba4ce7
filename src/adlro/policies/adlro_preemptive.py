"""ADLRO with preemption: a network weighs every active job on every pool, and a plan assigns GPUs.

At each event time the policy plans as though every preemptible run had released its GPUs. A running
job continues if the plan assigns it the pool where it runs, migrates if it is assigned another
pool, and without a pool is preempted if its GPUs are needed. There are two planners:

- If every active job takes one whole GPU and can checkpoint: the maximum-weight matching of jobs to
  GPUs with weights exp(-cost), where a separate network predicts the cost of each pair
  (features/pair_kernel.py). With all weights of the network at zero this is Hetero-SRPT. That rule
  also decides without the network while no job is faster on one pool than on another: on one GPU
  without restart costs it is optimal.
- Otherwise adlro's network selects one job after the other until it prefers to wait, with restart
  costs added to run times (planning/relaxed_state.py); runs with less left than ten restart costs
  are not preempted. A plan that preempts is compared with the plan of the same network in which
  every run continues, and carried out only if its cost is lower (planning/plan_cost.py). If no job
  can checkpoint the decisions are those of adlro.

planning/actions.py turns the plan into decisions; beyond the plan only jobs that can checkpoint
start, because they can be preempted again. The policy asks to be woken only when a run becomes
preemptible while a job waits.
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
    ActiveJobs,
    gather,
    keep_all,
    memory_size,
    note_jobs,
    preemptible_at,
)
from adlro.planning.assignment import match
from adlro.planning.plan_cost import plan_cost
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
_MOMENT = 1  # memory: from here on the time and fingerprint of the plan
_SCRATCH, _STAY, _DEAR, _FIRST, _NETWORKS = range(5)  # params
_SEQUENTIAL = (1.3, 10.0)  # factor on run times after a migration; least restarts left of a run


def params(context, weights=None):
    """Weights of two networks: for pairs of a job and a pool (given or shipped), and of adlro.

    They follow four numbers: see _SCRATCH, _STAY, _DEAR and _FIRST.
    """
    scratch = q_network.scratch_size(len(context.gpus), len(context.pools))
    first = learned.shipped("adlro-preemptive").params if weights is None else weights
    head = [scratch, *_SEQUENTIAL, len(first)]
    return np.concatenate([head, first, learned.shipped().params_for(context)])


def memory(context, weights=None):
    """Length of the memory: what planning/active_jobs.py stores for each job, and scratch."""
    return memory_size(context) + q_network.scratch_size(len(context.gpus), len(context.pools))


@njit
def _is_new(head, view):
    """Return True if the time, the active jobs or the nodes changed since the last plan.

    The present ones are written to the head of the memory.
    """
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
def _none_preemptible(view):
    """Return True if no waiting or running job can checkpoint."""
    queue, running = view.queue, view.running
    for i in range(len(queue) + len(running)):
        j = queue[i].job if i < len(queue) else running[i - len(queue)].job
        if view.jobs[j].checkpoint >= 0:
            return False
    return True


@njit
def _all_single(active, jobs):
    """True if every active job takes one whole GPU and can checkpoint."""
    for a in range(len(active.rows)):
        job = jobs[active.rows[a]]
        if job.gpus > 1 or job.share < WHOLE or job.checkpoint < 0:
            return False
    return True


@njit_allocating
def _matched(active, view, pairs):
    """Return the plan of the matching: target pools [A] (-1 = none), `stop` and `step` [A].

    stop and step are those of `plan_actions`, for jobs by falling weight of their pair, those
    without a pool last. pairs: weights of the network.
    """
    worth = weigh(active, view, pairs)
    target, key = match(worth, active.room), np.zeros(len(active.rows))
    for a in range(len(key)):
        if target[a] >= 0:
            key[a] = -worth[a, target[a]]
    stop, step = plan_actions(np.argsort(key, kind="mergesort"), target, active, view)
    return target, stop, step


@njit_allocating
def _in_turn(active, rows, params, scratch, view):
    """Return the plan of adlro's network in the form of `_matched`, and its cost; rows as below."""
    weights = params[_NETWORKS + int(params[_FIRST]) :]
    then = relax(params[_STAY], active, rows, view)
    while then.counts[0] > 0 and adlro.decide(relaxed_view(then), weights, scratch, then.out) > 0:
        start_chosen(active, then)
    complete_order(then)
    target, pools = then.target, active.pool.copy()
    stop, step = plan_actions(then.order, target, active, view)
    for a in range(len(pools)):
        if step[a]:
            pools[a] = target[a]
        elif stop[a]:
            pools[a] = -1
    return (target, stop, step), plan_cost(pools, active, view)


@njit_allocating
def _cheaper(active, rows, params, scratch, view):
    """Return the plan of `_in_turn`, or that which keeps all runs if preempting is no cheaper."""
    plan, cost = _in_turn(active, rows, params, scratch, view)
    if plan[1].any():
        kept, kept_cost = _in_turn(keep_all(active), rows, params, scratch, view)
        if kept_cost <= cost:
            return kept
    return plan


@njit_allocating
def _first_choice(active, rows, params, scratch, view, out):
    """Write the first start of the plan in turn, if any, and return their number."""
    weights = params[_NETWORKS + int(params[_FIRST]) :]
    then = relax(params[_STAY], active, rows, view)
    if len(view.queue) == 0 or adlro.decide(relaxed_view(then), weights, scratch, then.out) == 0:
        return 0
    return start(out, active.rows[then.out[0].job], then.out[0].pool)


@njit_allocating
def _preempt(active, target, stop, step, rows, out):
    """Write the preemptions of a plan [A], and return their number.

    The starts that follow are noted in rows, the part of the memory with a row for each job.
    """
    total, preemptions = rows.shape[1] - SHARED, 0
    for a in range(len(target)):
        j = active.rows[a]
        rows[j, total + STEP], rows[j, total + GOAL] = step[a], target[a]
        if stop[a]:
            out[preemptions].kind, out[preemptions].job = PREEMPT, j
            preemptions += 1
    return preemptions


@njit_allocating
def _start(view, rows, out):
    """Write one start: of a planned job, else of the shortest preemptible job; return 1.

    Returns 0 if no such job fits.
    """
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
    """Plan and preempt once per event time, then make the planned starts one by one."""
    columns, end = len(view.pools) + SHARED, HEAD + int(params[_SCRATCH])
    scratch, rest = memory[HEAD:end], memory[end:]
    rows = rest.reshape((len(rest) // columns, columns))
    note_jobs(view, rows)
    never_preempts = _none_preemptible(view)
    if never_preempts or _is_new(memory, view):
        active = ActiveJobs(*gather(view, rows))
        if never_preempts:
            return _first_choice(active, rows, params, scratch, view, out)
        if _all_single(active, view.jobs):
            pairs = params[_NETWORKS : _NETWORKS + int(params[_FIRST])]
            target, stop, step = _matched(active, view, pairs)
        else:
            pin_costly_restarts(active, view.jobs, params[_DEAR])
            target, stop, step = _cheaper(active, rows, params, scratch, view)
        count = _preempt(active, target, stop, step, rows, out)
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
