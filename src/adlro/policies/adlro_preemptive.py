"""ADLRO that may preempt: a network weighs every job that waits or could be stopped, on every pool.

At each moment it plans as if all that can be stopped were: who runs where, and who waits. A job
that gets the pool on which it runs is kept, one that gets another moves, one that gets none makes
room if its GPUs are wanted; whoever cannot be stopped keeps its GPUs. Two ways to plan:

- If every active job takes one whole GPU and can checkpoint: the matching of jobs to GPUs with the
  largest sum of exp(-cost), where a network of its own gives the cost of each pair
  (encode/pair_kernel.py). With a network of zeros that is Hetero-SRPT.
- Else jobs are chosen one after the other by adlro's network, until it would rather wait, with
  restarts as run time (policies/as_if.py); runs that have less left than ten restarts take go on.
  Where nobody can checkpoint, these are adlro's own decisions.

From plan to decisions as in moves.py, but beyond the plan only those start that can checkpoint, for
they can be stopped again. It wakes only for a run that becomes old enough while a job waits.
"""

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.encode import network
from adlro.encode.pair_kernel import weigh
from adlro.model.room import shortest, start
from adlro.model.state import PREEMPT, WAKE, WHOLE
from adlro.policies import adlro, learned
from adlro.policies.active import HEAD, Active, gather, memory_size, note_eligible, ripe_at
from adlro.policies.as_if import as_if_stopped, carry_out, complete_order, pin_dear
from adlro.policies.matching import match
from adlro.policies.moves import first_start, plan_moves

PREEMPTIVE = True
_MOMENT = 1  # memory: from here on when the plan was made, and for which jobs and nodes
_SCRATCH, _STAY, _DEAR, _FIRST, _NETWORKS = range(5)  # params
_IN_TURN = (1.3, 10.0)  # factor on run times after a move; restarts that a run must have left


def params(setting, weights=None):
    """The weights that come with the package: those for pairs, unless told others, and adlro's."""
    scratch = network.scratch_size(len(setting.layout.gpus), len(setting.pools))
    first = learned.shipped("adlro-preemptive").params if weights is None else weights
    head = [scratch, *_IN_TURN, len(first)]
    return np.concatenate([head, first, learned.shipped().params_for(setting.layout)])


def memory(setting, weights=None):
    """As in active.py, and scratch for adlro's look."""
    scratch = network.scratch_size(len(setting.layout.gpus), len(setting.pools))
    return memory_size(setting) + scratch


@njit
def _is_new(now, head, jobs, queue, running, nodes):
    """True when there is no plan yet for this moment; a node that goes or comes makes a new one."""
    up = 0.0
    for n in range(len(nodes)):
        up = (31.0 * up + nodes[n].up) % 1e12
    known = (now, float(len(jobs)), float(len(queue) + len(running)), up)
    is_new = False
    for i in range(4):
        is_new = is_new or head[_MOMENT + i] != known[i]
        head[_MOMENT + i] = known[i]
    return is_new


@njit
def _nobody_can(jobs, queue, running):
    """True when no active job can checkpoint."""
    for i in range(len(queue) + len(running)):
        j = queue[i].job if i < len(queue) else running[i - len(queue)].job
        if jobs[j].checkpoint >= 0:
            return False
    return True


@njit
def _all_single(active, jobs):
    """True when every active job takes one whole GPU and can be stopped, now or later."""
    for a in range(len(active.ids)):
        job = jobs[active.ids[a]]
        if job.gpus > 1 or job.share < WHOLE or job.checkpoint < 0:
            return False
    return True


@njit_allocating
def _matched(now, active, jobs, est, pools, params):
    """Targets [A] of the matching, and the jobs in the order of what they are worth there."""
    worth = weigh(now, active, jobs, est, pools, params)
    target, key = match(worth, active.room), np.zeros(len(active.ids))
    for a in range(len(key)):
        if target[a] >= 0:
            key[a] = -worth[a, target[a]]
    return target, np.argsort(key, kind="mergesort")


@njit_allocating
def _stop(active, target, order, rows, jobs, running, pools, nodes, gpus, out):
    """Write the stops that lead to the targets, and note who starts where; how many stops."""
    count, total = len(order), len(pools)
    stop, step = np.zeros(count, np.int64), np.zeros(count, np.int64)
    runs, held = running.copy(), active.pool.copy()
    for r in range(len(runs)):
        runs[r].job = np.searchsorted(active.ids, running[r].job)
    plan_moves(
        order, target, active.pinned, active.run, held, jobs[active.ids], runs, pools.copy(),
        nodes.copy(), gpus.copy(), stop, step,
    )  # fmt: skip
    stops = 0
    for a in range(count):
        rows[active.ids[a], total], rows[active.ids[a], total + 1] = step[a], target[a]
        if stop[a]:
            out[stops].kind, out[stops].job = PREEMPT, active.ids[a]
            stops += 1
    return stops


@njit_allocating
def _start(jobs, est, queue, eligible, pools, nodes, gpus, rows, out):
    """Write a start of the plan, or of who can be stopped again, the shortest first."""
    total = len(pools)
    worth, may = np.empty(len(queue)), eligible.copy()
    for q in range(len(queue)):
        j = queue[q].job
        worth[q] = -shortest(est[j], queue[q].left, eligible[q], pools)
        if rows[j, total] == 0.0 and jobs[j].checkpoint < 0:
            may[q, :] = False
    return first_start(
        worth, rows[:, total], rows[:, total + 1], jobs, est, queue, may, pools, nodes, gpus, out
    )


@njit_allocating
def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
    """Once a moment, make the plan and stop whom it stops; then start what it starts."""
    total, end = len(pools), HEAD + int(params[_SCRATCH])
    scratch, rest = memory[HEAD:end], memory[end:]
    rows = rest.reshape((len(rest) // (total + 2), total + 2))
    note_eligible(queue, eligible, rows)
    patient = _nobody_can(jobs, queue, running)
    if patient or _is_new(now, memory, jobs, queue, running, nodes):
        active = Active(*gather(now, jobs, est, queue, rows, running, pools))
        pairs = params[_NETWORKS : _NETWORKS + int(params[_FIRST])]
        if not patient and _all_single(active, jobs):
            target, order = _matched(now, active, jobs, est, pools, pairs)
        else:
            pin_dear(active, jobs, params[_DEAR])
            then = as_if_stopped(
                params[_STAY], active, rows, jobs, est, running, pools, nodes, gpus
            )
            waiting, going = then.counts[0], then.counts[1]
            while waiting > 0 and adlro.decide(
                now, then.jobs, then.est, then.queue[:waiting], then.eligible[:waiting],
                then.running[:going], then.pools, then.nodes, then.gpus,
                params[_NETWORKS + len(pairs) :], scratch, then.out,
            ) > 0:  # fmt: skip
                if patient:
                    return start(out, then.out[0].job + then.first, then.out[0].pool)
                carry_out(now, active, then)
                waiting, going = then.counts[0], then.counts[1]
            if patient:
                return 0
            complete_order(then)
            target, order = then.target, then.order
        count = _stop(active, target, order, rows, jobs, running, pools, nodes, gpus, out)
        if count > 0:
            return count
    count = _start(jobs, est, queue, eligible, pools, nodes, gpus, rows, out)
    if count > 0 or len(queue) == 0:
        return count
    at = ripe_at(now, jobs, running)
    if at == np.inf:
        return 0
    out[0].kind, out[0].at = WAKE, at
    return 1
