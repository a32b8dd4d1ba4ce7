"""The event loop, compiled: the clock and the decisions. Rules: docs/simulator.md.

Two drivers use the same `advance` and `apply`: `run` here for compiled policies, and the loop in
simulator.py for policies in plain Python. Dimensions as in model/state.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adlro.compiled import njit, njit_apart, wide
from adlro.model.place import join, place
from adlro.model.room import anchors, any_feasible, capacity, fits
from adlro.model.state import (
    FINISH,
    MIGRATE,
    PREEMPT,
    START,
    WAKE,
    WHOLE,
    Counts,
    Floats,
    Mask,
    Records,
    Row,
)
from adlro.sim import faults
from adlro.sim.close_kernel import close, cut_short, find_run, pace_slices, read_chain
from adlro.sim.eligible_kernel import has_rules, is_over, renew
from adlro.sim.ends_kernel import put, sift
from adlro.sim.event_kernel import happen
from adlro.sim.queue_kernel import dequeue, enqueue, find, move
from adlro.sim.run_kernel import end_after, put_end, slowness, span_factor

MOST_WAKES = 100_000  # timers in a row with no finish, event or arrival between them
MOST_CALLS = 100_000  # of decide in one moment
_NEARLY = 1e-9  # seconds


@njit_apart
def _stall(w: Row, queue: Records, moment: float) -> bool:
    w.fault = faults.STALLED if moment == np.inf else faults.ENDLESS_WAKES
    w.fault_value = w.waiting if moment == np.inf else w.wakes
    w.fault_job = queue[w.head].job if w.waiting > 0 else -1
    return False


@njit
def advance(
    world: Records,
    queue: Records,
    eligible: Mask,
    undone: Floats,
    running: Records,
    ends: Records,
    wear: Floats,
    cells: Floats,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    est: Floats,
    allowed: Mask,
    seconds: Floats,
    events: Records,
    colocation: Floats,
    demands: Records,
    readings: Records,
    holders: Counts,
    quotas: Records,
    caps: Counts,
    ageing: Floats,
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
    if w.events_done < len(events):
        moment = min(moment, max(events[w.events_done].time, w.now))
    if moment == np.inf or w.wakes >= MOST_WAKES:
        return _stall(w, queue, moment)
    passed = moment - w.now
    w.job_seconds += passed * (w.waiting + w.running)
    w.wait_seconds += passed * w.waiting
    w.idle_seconds += passed * (w.up_gpus - w.busy_gpus)
    if w.busy_slices > 0:
        w.idle_seconds -= passed * (w.busy_slices / WHOLE)
        w.stranded_seconds += passed * (w.stranded / WHOLE)
    w.now = moment
    before = w.events
    while w.running > 0 and ends[ends[0].slot].end <= moment:
        slot = wide(ends[0].slot)
        outcome[running[slot].job].finish = moment
        close(
            slot, wide(FINISH), w, running, ends, wear, cells, pools, nodes, gpus, jobs, colocation,
            readings, outcome, spans,
        )  # fmt: skip
        w.finished += 1
        w.events += 1
    while w.events_done < len(events) and events[w.events_done].time <= moment:
        happen(
            events[w.events_done], w, queue, eligible, undone, running, ends, wear, cells, pools,
            nodes, gpus, jobs, est, allowed, seconds, colocation, readings, outcome, spans,
        )  # fmt: skip
        w.events_done += 1
        w.events += 1
    while w.arrived < len(jobs) and jobs[w.arrived].arrival <= moment:
        enqueue(w.arrived, w, queue, eligible, undone, allowed)
        w.arrived += 1
        w.events += 1
    if w.events > before:
        w.wakes = 0
    if w.wake <= moment:
        w.wake = np.inf
        w.wakes += 1
        w.events += 1
    if has_rules(quotas, ageing):
        renew(
            w.head, w.waiting, w, queue, eligible, running, pools, jobs, est, allowed, holders,
            quotas, caps, ageing,
        )  # fmt: skip
    return w.finished < len(jobs)


@njit
def _stop(w: Row, fault: int, decision: Row, value: float) -> int:
    w.fault, w.fault_value = fault, value
    w.fault_job, w.fault_pool = decision.job, decision.pool
    return -1


@njit_apart
def _check_named(
    decision: Row, pools: Records, nodes: Records, gpus: Records, jobs: Records
) -> int:
    """The fault of the node or GPU that a start names, 0 if there is room."""
    pool, job, n = pools[decision.pool], jobs[decision.job], decision.node
    if n < -1 or decision.gpu < -1:
        return faults.NO_ROOM_THERE
    if decision.gpu >= 0:
        g = decision.gpu
        if g >= len(gpus) or (n >= 0 and n != gpus[g].node):
            return faults.NO_ROOM_THERE
        n = gpus[g].node
        if not anchors(job, gpus[g], nodes[n], gpus):
            return faults.NO_ROOM_THERE
    if n < pool.first_node or n >= pool.first_node + pool.nodes:
        return faults.NO_ROOM_THERE
    if capacity(job, nodes[n], gpus) < 1:
        return faults.NO_ROOM_THERE
    return faults.NONE


@njit
def _check_start(
    decision: Row,
    q: int,
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
    if not fits(jobs[decision.job], pools[decision.pool], nodes, gpus):
        return faults.NO_ROOM
    if decision.node != -1 or decision.gpu != -1:
        return _check_named(decision, pools, nodes, gpus, jobs)
    return faults.NONE


@njit
def _check_stop(j: int, slot: int, w: Row, running: Records, jobs: Records) -> int:
    """The fault of a preemption or migration, 0 if it is feasible; slot is the job's run."""
    if slot < 0:
        return faults.NOT_RUNNING
    if w.now - running[slot].start < jobs[j].least_run - _NEARLY:
        return faults.TOO_YOUNG
    return faults.NONE


@njit
def _start(
    decision: Row,
    q: int,
    w: Row,
    queue: Records,
    eligible: Mask,
    undone: Floats,
    running: Records,
    ends: Records,
    wear: Floats,
    cells: Floats,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    est: Floats,
    seconds: Floats,
    colocation: Floats,
    demands: Records,
    readings: Records,
    outcome: Records,
) -> None:
    j = decision.job
    job, pool, waiting = jobs[j], pools[decision.pool], queue[q]
    first, spanned = place(decision, jobs, demands, pools, nodes, gpus)
    slot, gpu = w.running, wide(first)
    run, end, result = running[slot], ends[slot], outcome[j]
    run.job, run.pool, run.gpu, run.nodes = j, decision.pool, first, spanned
    run.restarts, run.left, run.saved = waiting.restarts, waiting.left, waiting.saved
    run.start, run.served = w.now, waiting.served
    factor = span_factor(run, job, pool)
    seen = est[j, pool.model] * run.left * factor
    run.expected = min(end_after(seen, w.now, run, job), w.now + job.limit)
    end.todo = end.kept = seconds[j, pool.model] * undone[q]
    end.since, end.slowness = w.now, factor
    w.running += 1
    sliced = job.share < WHOLE
    if not sliced:
        w.busy_gpus += job.gpus
    else:
        w.busy_slices += job.share
        join(slot, running, gpus)
        if gpus[first].free + job.share < WHOLE:
            w.stranded -= job.share
        else:
            w.stranded += gpus[first].free
    if w.worn or sliced:
        end.slowness = slowness(slot, running, wear, cells, pools, gpus, jobs, colocation)
    put_end(slot, w.now, running, ends, job, result)
    put(slot, slot, ends)
    sift(slot, w.running, running, ends)
    if sliced:
        pace_slices(
            gpu, slot, w, running, ends, wear, cells, pools, gpus, jobs, colocation, outcome
        )
    if len(readings) > 0:
        read_chain(gpu, running, wear, pools, nodes, gpus, jobs, readings)
    if waiting.restarts == 0:
        result.start = w.now
    result.pool, result.nodes, result.restarts = decision.pool, spanned, waiting.restarts
    dequeue(q, w, queue, eligible, undone)


@njit
def apply(
    answered: int,
    out: Records,
    world: Records,
    queue: Records,
    eligible: Mask,
    undone: Floats,
    running: Records,
    ends: Records,
    wear: Floats,
    cells: Floats,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    est: Floats,
    allowed: Mask,
    seconds: Floats,
    events: Records,
    colocation: Floats,
    demands: Records,
    readings: Records,
    holders: Counts,
    quotas: Records,
    caps: Counts,
    ageing: Floats,
    outcome: Records,
    spans: Records,
) -> int:
    """Carry out the first `answered` decisions of `out`, in order, each checked in its turn.

    Returns:
        How many jobs were started or stopped; -1 when the run stops with a fault.
    """
    w = world[0]
    if answered < 0 or answered > len(out):
        w.fault, w.fault_value, w.fault_job = faults.TOO_MANY, answered, len(out)
        return -1
    done = 0
    for i in range(answered):
        decision = out[i]
        if decision.kind == WAKE:
            if not decision.at > w.now:
                return _stop(w, faults.WAKE_IN_THE_PAST, decision, decision.at)
            w.wake = min(w.wake, decision.at)
            continue
        done += 1
        if decision.kind != START:
            if decision.kind not in (PREEMPT, MIGRATE):
                return _stop(w, faults.UNKNOWN_KIND, decision, float(decision.kind))
            slot = find_run(decision.job, w, running)
            fault = _check_stop(decision.job, slot, w, running, jobs)
            if fault != faults.NONE:
                return _stop(w, fault, decision, float(decision.kind))
            held = wide(running[slot].pool)
            cut_short(
                slot, wide(0), w, queue, eligible, undone, running, ends, wear, cells, pools, nodes,
                gpus, jobs, est, allowed, seconds, colocation, readings, outcome, spans,
            )  # fmt: skip
            w.preemptions += 1
            if has_rules(quotas, ageing):
                q = find(decision.job, w, queue)
                renew(
                    q, wide(1), w, queue, eligible, running, pools, jobs, est, allowed, holders,
                    quotas, caps, ageing,
                )  # fmt: skip
                eligible[q, held] |= decision.kind == MIGRATE
        if decision.kind != PREEMPT:
            q = find(decision.job, w, queue)
            fault = _check_start(decision, q, eligible, pools, nodes, gpus, jobs)
            limited = fault == faults.NONE and len(quotas) > 0
            if limited and is_over(decision, w, running, pools, jobs, holders, quotas, caps):
                fault = faults.OVER_QUOTA
            if fault != faults.NONE:
                named = decision.gpu if decision.gpu != -1 else decision.node
                return _stop(w, fault, decision, float(named))
            _start(
                decision, q, w, queue, eligible, undone, running, ends, wear, cells, pools, nodes,
                gpus, jobs, est, seconds, colocation, demands, readings, outcome,
            )  # fmt: skip
        decision.node = decision.gpu = -1  # the next answer that names none means none
    if done > 0 and has_rules(quotas, ageing):
        renew(
            w.head, w.waiting, w, queue, eligible, running, pools, jobs, est, allowed, holders,
            quotas, caps, ageing,
        )  # fmt: skip
    return done


@njit
def run(
    decide: Callable[..., int],  # a first-class compiled function, see signature.py
    params: Floats,
    memory: Floats,
    out: Records,
    world: Records,
    queue: Records,
    eligible: Mask,
    undone: Floats,
    running: Records,
    ends: Records,
    wear: Floats,
    cells: Floats,
    pools: Records,
    nodes: Records,
    gpus: Records,
    jobs: Records,
    est: Floats,
    allowed: Mask,
    seconds: Floats,
    events: Records,
    colocation: Floats,
    demands: Records,
    readings: Records,
    holders: Counts,
    quotas: Records,
    caps: Counts,
    ageing: Floats,
    outcome: Records,
    spans: Records,
) -> None:
    """Play a workload to its end (or to a fault, noted in the world) under a compiled policy."""
    w = world[0]
    while advance(
        world, queue, eligible, undone, running, ends, wear, cells, pools, nodes, gpus, jobs, est,
        allowed, seconds, events, colocation, demands, readings, holders, quotas, caps, ageing,
        outcome, spans,
    ):  # fmt: skip
        done, last = 1, w.decisions + MOST_CALLS
        while done > 0:
            waiting = queue[w.head : w.head + w.waiting]
            mask = eligible[w.head : w.head + w.waiting]
            if w.decisions == last:
                w.fault, w.fault_value = faults.ENDLESS_ANSWERS, MOST_CALLS
                return
            w.decisions += 1
            answered = decide(
                w.now, jobs[: w.arrived], est[: w.arrived], waiting, mask, running[: w.running],
                pools, nodes, gpus, params, memory, out,
            )  # fmt: skip
            real = answered > 0 and out[0].kind == START  # it is checked, so it was feasible
            if not real and w.waiting > 0 and w.busy_gpus < w.up_gpus:
                real = any_feasible(jobs, waiting, mask, pools, nodes, gpus)
            w.real_decisions += real
            if answered == 0:  # nothing to apply: the long call costs as much as a decision
                break
            done = apply(
                answered, out, world, queue, eligible, undone, running, ends, wear, cells, pools,
                nodes, gpus, jobs, est, allowed, seconds, events, colocation, demands, readings,
                holders, quotas, caps, ageing, outcome, spans,
            )  # fmt: skip
        if done < 0:
            break


@njit
def _copy(array: Records, to: Records) -> None:
    for i in range(len(array)):
        to[i] = array[i]


@njit
def _copy_table(table: Floats, to: Floats) -> None:
    for i in range(table.shape[0]):
        for k in range(table.shape[1]):
            to[i, k] = table[i, k]


@njit
def clone(
    world: Records,
    queue: Records,
    eligible: Mask,
    undone: Floats,
    running: Records,
    ends: Records,
    wear: Floats,
    cells: Floats,
    pools: Records,
    nodes: Records,
    gpus: Records,
    memory: Floats,
    to_world: Records,
    to_queue: Records,
    to_eligible: Mask,
    to_undone: Floats,
    to_running: Records,
    to_ends: Records,
    to_wear: Floats,
    to_cells: Floats,
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
        move(w.head + i, i, queue, eligible, undone, to_queue, to_eligible, to_undone)
    for i in range(w.running):
        to_running[i] = running[i]
        to_ends[i] = ends[i]
    _copy_table(wear, to_wear)
    _copy_table(cells, to_cells)
    _copy(pools, to_pools)
    _copy(nodes, to_nodes)
    _copy(gpus, to_gpus)
    _copy(memory, to_memory)
