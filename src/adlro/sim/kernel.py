"""The event loop, compiled: the clock and the decisions. Rules: docs/simulator.md.

Two drivers use the same `advance` and `apply`: `run` here for compiled policies, and the loop in
simulator.py, through steps.py, for policies in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adlro.compiled import njit, njit_apart, njit_part, wide
from adlro.model import violations
from adlro.model.checks import check_start, check_stop
from adlro.model.feasibility import any_feasible
from adlro.model.placement import link_slice, place
from adlro.model.rules import has_rules, is_over, refresh_mask
from adlro.model.state import FINISH, MIGRATE, PREEMPT, START, WAKE, WHOLE, Floats, Records, Row
from adlro.model.timeline import end_after, span_factor
from adlro.sim.completion_heap_kernel import place_in_heap, sift
from adlro.sim.event_kernel import apply_event
from adlro.sim.progress_kernel import put_end, slowness
from adlro.sim.queue_kernel import dequeue, enqueue, find, move
from adlro.sim.terminate_kernel import find_run, interrupt, pace_slices, read_chain, terminate
from adlro.sim.world import World, rules_of, tables_of, view_of

MOST_WAKES = 100_000  # timers in a row with no finish, event or arrival between them
MOST_CALLS = 100_000  # of decide in one moment


@njit_part
def advance(world: World) -> bool:
    """Move the clock to the next moment and let all that is due happen.

    Returns:
        False when nothing can happen any more: every job is done, or the policy stalled (a fault).
    """
    w = world.totals[0]
    moment = _next_moment(world)
    if moment == np.inf or w.wakes >= MOST_WAKES:
        return _stall(moment, world)
    _let_pass(moment - w.now, w)
    w.now = moment
    before = w.events
    while w.running > 0 and world.ends[world.ends[0].slot].end <= moment:
        _finish(wide(world.ends[0].slot), world)
    while w.events_done < len(world.events) and world.events[w.events_done].time <= moment:
        apply_event(world.events[w.events_done], world)
        w.events_done += 1
        w.events += 1
    while w.arrived < len(world.arrivals) and _next_arrival(world) <= moment:
        _arrive(world.arrivals[w.arrived], world)
    if w.events > before:
        w.wakes = 0
    if w.wake <= moment:
        w.wake = np.inf
        w.wakes += 1
        w.events += 1
    if has_rules(world.quotas, world.ageing):
        refresh_mask(wide(0), w.waiting, view_of(world), rules_of(world))
    return w.finished < len(world.arrivals)


@njit
def _next_arrival(world: World) -> float:
    """When the next job arrives; there must be one."""
    arrival: float = world.jobs[world.arrivals[world.totals[0].arrived]].arrival
    return arrival


@njit
def _next_moment(world: World) -> float:
    """When something happens next: a timer, a finish, an arrival or an event; infinite = never."""
    w = world.totals[0]
    moment: float = w.wake
    if w.running > 0:
        moment = min(moment, world.ends[world.ends[0].slot].end)
    if w.arrived < len(world.arrivals):
        moment = min(moment, _next_arrival(world))
    if w.events_done < len(world.events):
        moment = min(moment, max(world.events[w.events_done].time, w.now))
    return moment


@njit_apart
def _stall(moment: float, world: World) -> bool:
    """Note that nothing can happen any more, or nothing but timers."""
    w = world.totals[0]
    w.fault = violations.STALLED if moment == np.inf else violations.ENDLESS_WAKES
    w.fault_value = w.waiting if moment == np.inf else w.wakes
    w.fault_job = world.jobs[world.queue[w.head].job].id if w.waiting > 0 else -1
    return False


@njit
def _let_pass(seconds: float, w: Row) -> None:
    """Add the time that passes to the integrals."""
    w.job_seconds += seconds * (w.waiting + w.running)
    w.wait_seconds += seconds * w.waiting
    w.idle_seconds += seconds * (w.up_gpus - w.busy_gpus)
    if w.busy_slices > 0:
        w.idle_seconds -= seconds * (w.busy_slices / WHOLE)
        w.stranded_seconds += seconds * (w.stranded / WHOLE)


@njit
def _finish(slot: int, world: World) -> None:
    """End a run whose job is done."""
    w = world.totals[0]
    world.outcome[world.running[slot].job].finish = w.now
    terminate(slot, wide(FINISH), world)
    w.finished += 1
    w.events += 1


@njit
def _arrive(j: int, world: World) -> None:
    """Let the next job come."""
    w = world.totals[0]
    enqueue(j, world)
    w.arrived += 1
    w.rows = max(w.rows, j + 1)
    w.events += 1


@njit
def _stop(fault: int, decision: Row, value: float, w: Row) -> int:
    """Note why a run stops, and with which decision."""
    w.fault, w.fault_value = fault, value
    w.fault_job, w.fault_pool = decision.job, decision.pool
    return -1


@njit
def _start(decision: Row, q: int, world: World) -> None:
    """Start the job at place q of the queue, which has been checked."""
    w, running, ends, gpus = world.totals[0], world.running, world.ends, world.gpus
    j = decision.job
    job, pool, waiting = world.jobs[j], world.pools[decision.pool], world.queue[q]
    first, spanned = place(decision, world.jobs, world.demands, world.pools, world.nodes, gpus)
    slot, gpu = w.running, wide(first)
    run, end, result = running[slot], ends[slot], world.outcome[j]
    run.job, run.pool, run.gpu, run.nodes = j, decision.pool, first, spanned
    run.restarts, run.left, run.saved = waiting.restarts, waiting.left, waiting.saved
    run.start, run.served = w.now, waiting.served
    factor = span_factor(run, job, pool)
    seen = world.est[j, pool.model] * run.left * factor
    run.expected = min(end_after(seen, w.now, run, job), w.now + job.limit)
    end.todo = end.kept = world.seconds[j, pool.model] * world.undone[q]
    end.since, end.slowness = w.now, factor
    w.running += 1
    sliced = job.share < WHOLE
    if not sliced:
        w.busy_gpus += job.gpus
    else:
        w.busy_slices += job.share
        link_slice(slot, running, gpus)
        if gpus[first].free + job.share < WHOLE:
            w.stranded -= job.share
        else:
            w.stranded += gpus[first].free
    if w.worn or sliced:
        end.slowness = slowness(slot, world)
    put_end(slot, world)
    place_in_heap(slot, slot, ends)
    sift(slot, w.running, world)
    if sliced:
        pace_slices(gpu, slot, world)
    if len(world.readings) > 0:
        read_chain(gpu, world)
    if waiting.restarts == 0:
        result.start = w.now
    result.pool, result.nodes, result.restarts = decision.pool, spanned, waiting.restarts
    dequeue(q, world)


@njit_apart
def _preempt(slot: int, migrates: bool, world: World) -> None:
    """Stop a run for the policy; one that migrates may go back to where it was."""
    j, held = world.running[slot].job, wide(world.running[slot].pool)
    interrupt(slot, wide(0), world)
    world.totals[0].preemptions += 1
    if has_rules(world.quotas, world.ageing):
        q = find(j, world)
        refresh_mask(q - world.totals[0].head, wide(1), view_of(world), rules_of(world))
        world.eligible[q, held] |= migrates


@njit_part
def apply(answered: int, out: Records, world: World) -> int:
    """Carry out the first `answered` decisions of `out`, in order, each checked in its turn.

    Returns:
        How many jobs were started or stopped; -1 when the run stops with a fault.
    """
    w = world.totals[0]
    if answered < 0 or answered > len(out):
        w.fault, w.fault_value, w.fault_job = violations.TOO_MANY, answered, len(out)
        return -1
    done = 0
    for i in range(answered):
        decision = out[i]
        if decision.kind == WAKE:
            if not decision.at > w.now:
                return _stop(violations.WAKE_IN_THE_PAST, decision, decision.at, w)
            w.wake = min(w.wake, decision.at)
            continue
        done += 1
        if decision.kind != START:
            if decision.kind not in (PREEMPT, MIGRATE):
                return _stop(violations.UNKNOWN_KIND, decision, float(decision.kind), w)
            slot = find_run(decision.job, world)
            fault = check_stop(slot, tables_of(world))
            if fault != violations.NONE:
                return _stop(fault, decision, float(decision.kind), w)
            _preempt(slot, decision.kind == MIGRATE, world)
        if decision.kind != PREEMPT:
            q = find(decision.job, world)
            fault = check_start(decision, q, tables_of(world))
            limited = fault == violations.NONE and len(world.quotas) > 0
            if limited and is_over(decision, view_of(world), rules_of(world)):
                fault = violations.OVER_QUOTA
            if fault != violations.NONE:
                named = decision.gpu if decision.gpu != -1 else decision.node
                return _stop(fault, decision, float(named), w)
            _start(decision, q, world)
        decision.node = decision.gpu = -1  # the next answer that names none means none
    if done > 0 and has_rules(world.quotas, world.ageing):
        refresh_mask(wide(0), w.waiting, view_of(world), rules_of(world))
    return done


@njit
def run(
    decide: Callable[..., int],  # a first-class compiled function, see signature.py
    params: Floats,
    memory: Floats,
    out: Records,
    world: World,
) -> None:
    """Play a workload to its end (or to a fault, noted in the totals) under a compiled policy."""
    w = world.totals[0]
    while advance(world):
        done, last = 1, w.decisions + MOST_CALLS
        while done > 0:
            if w.decisions == last:
                w.fault, w.fault_value = violations.ENDLESS_ANSWERS, MOST_CALLS
                return
            w.decisions += 1
            view = view_of(world)
            answered = decide(view, params, memory, out)
            real = answered > 0 and out[0].kind == START  # it is checked, so it was feasible
            if not real and w.waiting > 0 and w.busy_gpus < w.up_gpus:
                real = any_feasible(view)
            w.real_decisions += real
            if answered == 0:
                break
            done = apply(answered, out, world)
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


@njit_part
def copy_memory(memory: Floats, to: Floats) -> None:
    """Copy what a policy keeps from call to call."""
    for i in range(len(memory)):
        to[i] = memory[i]


@njit_part
def clone(world: World, to: World) -> None:
    """Copy the state of a world into another of the same cluster: only what is in use.

    What it costs does not depend on how many jobs there are. Workload and books stay as they are.
    """
    w = world.totals[0]
    to.totals[0] = w
    to.totals[0].head = 0
    for i in range(w.waiting):
        move(w.head + i, i, world, to)
    for i in range(w.running):
        to.running[i] = world.running[i]
        to.ends[i] = world.ends[i]
    _copy_table(world.wear, to.wear)
    _copy_table(world.cells, to.cells)
    _copy(world.pools, to.pools)
    _copy(world.nodes, to.nodes)
    _copy(world.gpus, to.gpus)
