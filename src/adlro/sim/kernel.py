"""The event loop, compiled: the clock, starts and finishes. Rules: docs/simulator.md.

Two drivers use the same `advance` and `apply`: `run` here for compiled policies, and the loop in
simulator.py for policies in plain Python. Dimensions as in model/state.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adlro.compiled import njit
from adlro.model.room import any_feasible, capacity, fits, place, release
from adlro.model.state import PREEMPT, START, WAKE, WHOLE, Floats, Mask, Records, Row
from adlro.sim import faults
from adlro.sim.ends_kernel import put, remove, sift
from adlro.sim.queue_kernel import dequeue, enqueue, find, move

MOST_WAKES = 100_000  # timers in a row with nothing else between them


@njit
def _finish(
    slot: int,
    w: Row,
    running: Records,
    ends: Records,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    outcome: Records,
    spans: Records,
) -> None:
    run = running[slot]
    j = run.job
    outcome[j].finish = w.now
    g = run.gpu
    while g >= 0:
        gpus[g].busy += w.now - run.start
        if w.spans < len(spans):
            row = spans[w.spans]
            row.start, row.end = run.start, w.now
            row.job, row.gpu, row.share = j, g, WHOLE
            w.spans += 1
        g = gpus[g].next
    release(run, jobs, pools, nodes, gpus)
    w.busy_gpus -= jobs[j].gpus
    w.finished += 1
    remove(slot, w, running, ends)


@njit
def advance(
    world: Records,
    queue: Records,
    eligible: Mask,
    running: Records,
    ends: Records,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    allowed: Mask,
    outcome: Records,
    spans: Records,
) -> bool:
    """Move the clock to the next moment and let all that is due happen.

    Returns:
        False when nothing can happen any more: every job is done, or the policy stalled (a fault).
    """
    w = world[0]
    moment = w.wake
    if w.running > 0:
        moment = min(moment, ends[ends[0].slot].end)
    if w.arrived < len(jobs):
        moment = min(moment, jobs[w.arrived].arrival)
    if moment == np.inf or w.wakes >= MOST_WAKES:
        w.fault = faults.STALLED if moment == np.inf else faults.ENDLESS_WAKES
        w.fault_value = w.waiting if moment == np.inf else w.wakes
        w.fault_job = queue[w.head].job if w.waiting > 0 else -1
        return False
    passed = moment - w.now
    w.job_seconds += passed * (w.waiting + w.running)
    w.idle_seconds += passed * (w.up_gpus - w.busy_gpus)
    w.now = moment
    before = w.events
    while w.running > 0 and ends[ends[0].slot].end <= moment:
        _finish(ends[0].slot, w, running, ends, pools, nodes, gpus, jobs, outcome, spans)
        w.events += 1
    while w.arrived < len(jobs) and jobs[w.arrived].arrival <= moment:
        enqueue(w.arrived, w, queue, eligible, allowed)
        w.arrived += 1
        w.events += 1
    if w.events > before:
        w.wakes = 0
    if w.wake <= moment:
        w.wake = np.inf
        w.wakes += 1
        w.events += 1
    return w.finished < len(jobs)


@njit
def _stop(w: Row, fault: int, decision: Row, value: float) -> int:
    w.fault, w.fault_value = fault, value
    w.fault_job, w.fault_pool = decision.job, decision.pool
    return -1


@njit
def _check_start(
    decision: Row,
    q: int,
    w: Row,
    eligible: Mask,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
) -> int:
    """The fault of a start decision, 0 if it is feasible; q is its job's place in the queue."""
    if q < 0:
        return faults.NOT_WAITING
    if decision.pool < 0 or decision.pool >= len(pools):
        return faults.NO_SUCH_POOL
    if not eligible[q, decision.pool]:
        return faults.NOT_ELIGIBLE
    pool, job = pools[decision.pool], jobs[decision.job]
    if not fits(job, pool, nodes):
        return faults.NO_ROOM
    n = decision.node
    if n < -1 or decision.gpu < -1:
        return faults.NO_ROOM_THERE
    if decision.gpu >= 0:
        if decision.gpu >= len(gpus) or gpus[decision.gpu].free < WHOLE:
            return faults.NO_ROOM_THERE
        if n >= 0 and n != gpus[decision.gpu].node:
            return faults.NO_ROOM_THERE
        n = gpus[decision.gpu].node
    if n >= 0:
        if n < pool.first_node or n >= pool.first_node + pool.nodes:
            return faults.NO_ROOM_THERE
        if capacity(job, nodes[n]) < 1:
            return faults.NO_ROOM_THERE
    return faults.NONE


@njit
def _start(
    decision: Row,
    q: int,
    w: Row,
    queue: Records,
    eligible: Mask,
    running: Records,
    ends: Records,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    est: Floats,
    seconds: Floats,
    outcome: Records,
) -> None:
    j = decision.job
    job, pool = jobs[j], pools[decision.pool]
    first, spanned = place(decision, jobs, pools, nodes, gpus)
    factor = 1.0
    if spanned > 1:
        factor += job.communication * pool.span_cost
    length = seconds[j, pool.model] * queue[q].left * factor
    killed = length > job.limit
    slot = w.running
    run = running[slot]
    run.job, run.pool, run.gpu, run.nodes = j, decision.pool, first, spanned
    run.restarts, run.left = queue[q].restarts, queue[q].left
    run.start = w.now
    run.expected = w.now + min(est[j, pool.model] * run.left * factor, job.limit)
    ends[slot].end = w.now + (job.limit if killed else length)
    put(slot, slot, ends)
    w.running += 1
    sift(slot, w.running, running, ends)
    w.busy_gpus += job.gpus
    w.wakes = 0
    result = outcome[j]
    result.start, result.pool, result.nodes = w.now, decision.pool, spanned
    result.restarts, result.killed = run.restarts, killed
    dequeue(q, w, queue, eligible)


@njit
def apply(
    answered: int,
    out: Records,
    world: Records,
    queue: Records,
    eligible: Mask,
    running: Records,
    ends: Records,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    est: Floats,
    seconds: Floats,
    outcome: Records,
) -> int:
    """Carry out the first `answered` decisions of `out`, in order, each checked in its turn.

    Returns:
        How many jobs were started; -1 when the run stops with a fault.
    """
    w = world[0]
    if answered < 0 or answered > len(out):
        w.fault, w.fault_value, w.fault_job = faults.TOO_MANY, answered, len(out)
        return -1
    started = 0
    for i in range(answered):
        decision = out[i]
        if decision.kind == START:
            q = find(decision.job, w, queue)
            fault = _check_start(decision, q, w, eligible, pools, nodes, gpus, jobs)
            if fault != faults.NONE:
                named = decision.gpu if decision.gpu != -1 else decision.node
                return _stop(w, fault, decision, named)
            _start(
                decision, q, w, queue, eligible, running, ends, pools, nodes, gpus, jobs, est,
                seconds, outcome,
            )  # fmt: skip
            started += 1
            decision.node = decision.gpu = -1  # the next answer that names none means none
        elif decision.kind == WAKE:
            if not decision.at > w.now:
                return _stop(w, faults.WAKE_IN_THE_PAST, decision, decision.at)
            w.wake = min(w.wake, decision.at)
        elif PREEMPT <= decision.kind < WAKE:
            return _stop(w, faults.KIND_NOT_YET, decision, decision.kind)
        else:
            return _stop(w, faults.UNKNOWN_KIND, decision, decision.kind)
    return started


@njit
def run(
    decide: Callable[..., int],  # a first-class compiled function, see signature.py
    params: Floats,
    memory: Floats,
    out: Records,
    world: Records,
    queue: Records,
    eligible: Mask,
    running: Records,
    ends: Records,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    est: Floats,
    allowed: Mask,
    seconds: Floats,
    outcome: Records,
    spans: Records,
) -> None:
    """Play a workload to its end (or to a fault, noted in the world) under a compiled policy."""
    w = world[0]
    while advance(
        world, queue, eligible, running, ends, pools, nodes, gpus, jobs, allowed, outcome, spans
    ):
        started = 1
        while started > 0:
            waiting = queue[w.head : w.head + w.waiting]
            mask = eligible[w.head : w.head + w.waiting]
            w.decisions += 1
            some = w.waiting > 0 and w.busy_gpus < w.up_gpus
            if some and any_feasible(jobs, waiting, mask, pools, nodes):
                w.real_decisions += 1
            answered = decide(
                w.now, jobs[: w.arrived], est[: w.arrived], waiting, mask, running[: w.running],
                pools, nodes, gpus, params, memory, out,
            )  # fmt: skip
            if answered == 0:  # nothing to apply: the long call costs as much as a decision
                break
            started = apply(
                answered, out, world, queue, eligible, running, ends, pools, nodes, gpus, jobs,
                est, seconds, outcome,
            )  # fmt: skip
        if started < 0:
            break


@njit
def _copy(array: Records, to: Records) -> None:
    for i in range(len(array)):
        to[i] = array[i]


@njit
def clone(
    world: Records,
    queue: Records,
    eligible: Mask,
    running: Records,
    ends: Records,
    pools: Records,
    nodes: Records,
    gpus: Records,
    memory: Floats,
    to_world: Records,
    to_queue: Records,
    to_eligible: Mask,
    to_running: Records,
    to_ends: Records,
    to_pools: Records,
    to_nodes: Records,
    to_gpus: Records,
    to_memory: Floats,
) -> None:
    """Copy a state into another of the same cluster: only what is in use, whatever J is."""
    w = world[0]
    to_world[0] = w
    to_world[0].head = 0
    for i in range(w.waiting):
        move(w.head + i, i, queue, eligible, to_queue, to_eligible)
    for i in range(w.running):
        to_running[i] = running[i]
        to_ends[i] = ends[i]
    _copy(pools, to_pools)
    _copy(nodes, to_nodes)
    _copy(gpus, to_gpus)
    _copy(memory, to_memory)
