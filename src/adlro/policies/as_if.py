"""A plan by adlro's network as if all that can be stopped had been stopped. Not a policy.

In copies of the cluster's records whoever can be stopped gives its GPUs back and waits with the
others. Then the network chooses, one after the other, until it would rather wait. Dimensions as in
active.py.
"""

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.encode.candidates_kernel import RECENT
from adlro.model.place import place, release
from adlro.model.state import DECISION, DEMAND, RUNNING, WAITING
from adlro.policies import adlro
from adlro.sim.run_kernel import span_factor

_LEAST = 0.1


@njit_allocating
def _estimates(first, active, stay, saved, jobs, est, pools):
    """Copy of est from job `first` on, with the cost of restarts where a job would pay it."""
    own = est[first:].copy()
    for a in range(len(active.ids)):
        j = active.ids[a]
        held = pools[active.pool[a]].model if active.pool[a] >= 0 else -1
        cost = max(jobs[j].checkpoint, 0.0) / active.left[a] if active.begun[a] else 0.0
        for m in range(est.shape[1]):
            if m == held and not active.pinned[a]:
                own[j - first, m] = max(est[j, m] - saved * cost, _LEAST * est[j, m])
            elif not active.pinned[a]:
                factor = stay if held >= 0 else 1.0
                own[j - first, m] = est[j, m] * factor + cost
    return own


@njit
def _leave(active, first, jobs, running, pools, nodes, gpus, runs, queue, eligible):
    """Fill in those who go on (runs) and those who wait (queue, eligible [A, P]); how many each."""
    going, waiting = 0, 0
    for a in range(len(active.ids)):
        if active.pinned[a]:
            runs[going] = running[active.run[a]]
            runs[going].job -= first
            going += 1
            continue
        if active.run[a] >= 0:
            release(running[active.run[a]], jobs, pools, nodes, gpus)
        queue[waiting].job, queue[waiting].left = active.ids[a] - first, active.left[a]
        for p in range(len(pools)):
            eligible[waiting, p] = active.seconds[a, p] < np.inf
        waiting += 1
    return going, waiting


@njit
def _begin(now, answer, left, jobs, est, demands, pools, nodes, gpus, run):
    """Carry out a start in the copies; fills in its run."""
    j, pool = answer.job, pools[answer.pool]
    run.gpu, run.nodes = place(answer, jobs, demands, pools, nodes, gpus)
    run.job, run.pool, run.start, run.left = j, answer.pool, now, left
    run.expected = now + est[j, pool.model] * left * span_factor(run, jobs[j], pool)


@njit_allocating
def choose_in_turn(
    now, active, stay, saved, jobs, est, running, pools, nodes, gpus, params, scratch
):
    """Targets [A], and the jobs in the order in which they were chosen, then by age.

    `stay` is the factor on the run time of a running job wherever it does not run.
    """
    count = len(active.ids)
    target, order = np.full(count, -1), np.empty(count, np.int64)
    first = min(active.ids[0], max(len(jobs) - RECENT, 0)) if count > 0 else 0
    known, own = jobs[first:], _estimates(first, active, stay, saved, jobs, est, pools)
    left, machines, cards = pools.copy(), nodes.copy(), gpus.copy()
    runs, queue = np.zeros(count, RUNNING), np.zeros(count, WAITING)
    eligible = np.zeros((count, len(pools)), np.bool_)
    out, demands = np.zeros(1, DECISION), np.zeros(0, DEMAND)
    going, waiting = _leave(
        active, first, jobs, running, left, machines, cards, runs, queue, eligible
    )
    chosen = 0
    while waiting > 0 and adlro.decide(
        now, known, own, queue[:waiting], eligible[:waiting], runs[:going], left, machines, cards,
        params, scratch, out,
    ) > 0:  # fmt: skip
        a = np.searchsorted(active.ids, out[0].job + first)
        target[a], order[chosen] = out[0].pool, a
        _begin(now, out[0], active.left[a], known, own, demands, left, machines, cards, runs[going])
        chosen, going, waiting = chosen + 1, going + 1, waiting - 1
        q = 0
        while queue[q].job != out[0].job:
            q += 1
        for k in range(q, waiting):
            queue[k] = queue[k + 1]
            eligible[k, :] = eligible[k + 1, :]
    for a in range(count):
        if target[a] < 0:
            order[chosen] = a
            chosen += 1
    return target, order
