"""The compiled event loop: clock, events and decisions. Rules: docs/simulator.md.

Two drivers share `advance` and `apply`: `run` in this module for compiled policies, and the loop in
simulator.py, through steps.py, for policies in plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from adlro.compiled import njit, njit_apart, njit_part, wide
from adlro.model import violations
from adlro.model.checks import check_start, check_stop
from adlro.model.feasibility import any_feasible
from adlro.model.placement import link_slice, place
from adlro.model.rules import exceeds_quota, has_rules, refresh_mask
from adlro.model.state import FINISH, MIGRATE, PREEMPT, START, WAKE, WHOLE, Floats, Records, Row
from adlro.model.timeline import end_after, span_factor
from adlro.sim.completion_heap_kernel import place_in_heap, sift
from adlro.sim.event_kernel import apply_event
from adlro.sim.progress_kernel import set_end, slowness
from adlro.sim.queue_kernel import dequeue, enqueue, find, move
from adlro.sim.terminate_kernel import find_run, interrupt, read_chain, terminate, update_slices
from adlro.sim.world import World, rules_of, tables_of, view_of

MAX_WAKES = 100_000  # consecutive timers without a finish, event or arrival between them
MAX_CALLS = 100_000  # calls of decide at one time
_SAME_CYCLE = 1e-9  # part of a cycle within which a time counts as that of the cycle


@njit_part
def advance(world: World) -> bool:
    """Move the clock to the next event and process all events that are due at that time.

    With scheduling cycles (World.tick), go on until the first cycle after an event.

    Returns:
        False when the run is over: every job has finished, or the policy stalled (a fault).
    """
    while _advance(world):
        if len(world.tick) == 0 or _in_cycle(world):
            return True
    return False


@njit_apart
def _in_cycle(world: World) -> bool:
    """True when a scheduling cycle is due now; else the timer is set to the next one."""
    totals, tick = world.totals[0], world.tick[0]
    due = math.ceil(totals.now / tick - _SAME_CYCLE) * tick
    if due - totals.now <= _SAME_CYCLE * tick:
        return True
    totals.wake = min(totals.wake, due)
    return False


@njit
def _advance(world: World) -> bool:
    """As `advance`, for one moment."""
    totals = world.totals[0]
    moment = _next_time(world)
    if moment == np.inf or totals.wakes >= MAX_WAKES:
        return _record_stall(moment, world)
    _add_to_integrals(moment - totals.now, totals)
    totals.now = moment
    before = totals.events
    while totals.running > 0 and world.ends[world.ends[0].slot].end <= moment:
        _finish(wide(world.ends[0].slot), world)
    events = world.events
    while totals.events_done < len(events) and events[totals.events_done].time <= moment:
        apply_event(events[totals.events_done], world)
        totals.events_done += 1
        totals.events += 1
    while totals.arrived < len(world.arrivals) and _next_arrival(world) <= moment:
        _arrive(world.arrivals[totals.arrived], world)
    if totals.events > before:
        totals.wakes = 0
    if totals.wake <= moment:
        totals.wake = np.inf
        totals.wakes += 1
        totals.events += 1
    if has_rules(world.quotas, world.ageing):
        refresh_mask(wide(0), totals.waiting, view_of(world), rules_of(world))
    return totals.finished < len(world.arrivals)


@njit
def _next_arrival(world: World) -> float:
    """Time of the next arrival; the list of arrivals must have one left."""
    arrival: float = world.jobs[world.arrivals[world.totals[0].arrived]].arrival
    return arrival


@njit
def _next_time(world: World) -> float:
    """Time of the next timer, finish, arrival or event; infinite = none."""
    totals = world.totals[0]
    moment: float = totals.wake
    if totals.running > 0:
        moment = min(moment, world.ends[world.ends[0].slot].end)
    if totals.arrived < len(world.arrivals):
        moment = min(moment, _next_arrival(world))
    if totals.events_done < len(world.events):
        moment = min(moment, max(world.events[totals.events_done].time, totals.now))
    return moment


@njit_apart
def _record_stall(moment: float, world: World) -> bool:
    """Record a fault: no event is left, or only timers have occurred; returns False."""
    totals = world.totals[0]
    totals.fault = violations.STALLED if moment == np.inf else violations.ENDLESS_WAKES
    totals.fault_value = totals.waiting if moment == np.inf else totals.wakes
    totals.fault_job = world.jobs[world.queue[totals.head].job].id if totals.waiting > 0 else -1
    return False


@njit
def _add_to_integrals(seconds: float, totals: Row) -> None:
    """Add `seconds` times the present numbers of jobs and idle GPUs to the integrals."""
    totals.job_seconds += seconds * (totals.waiting + totals.running)
    totals.wait_seconds += seconds * totals.waiting
    totals.idle_seconds += seconds * (totals.up_gpus - totals.busy_gpus)
    if totals.busy_slices > 0:
        totals.idle_seconds -= seconds * (totals.busy_slices / WHOLE)
        totals.stranded_seconds += seconds * (totals.stranded / WHOLE)


@njit
def _finish(slot: int, world: World) -> None:
    """End a run because its work is done or its limit reached."""
    totals = world.totals[0]
    world.outcome[world.running[slot].job].finish = totals.now
    terminate(slot, wide(FINISH), world)
    totals.finished += 1
    totals.events += 1


@njit
def _arrive(j: int, world: World) -> None:
    """Add the next arriving job to the queue."""
    totals = world.totals[0]
    enqueue(j, world)
    totals.arrived += 1
    totals.rows = max(totals.rows, j + 1)
    totals.events += 1


@njit
def _set_fault(fault: int, decision: Row, value: float, totals: Row) -> int:
    """Record the violation that stops the run, and the decision that caused it; returns -1."""
    totals.fault, totals.fault_value = fault, value
    totals.fault_job, totals.fault_pool = decision.job, decision.pool
    return -1


@njit
def _start(decision: Row, q: int, world: World) -> None:
    """Start the job at position q of the queue as decided; the decision has been checked."""
    totals, running, ends, gpus = world.totals[0], world.running, world.ends, world.gpus
    j = decision.job
    job, pool, waiting = world.jobs[j], world.pools[decision.pool], world.queue[q]
    first, spanned = place(decision, world.jobs, world.demands, world.pools, world.nodes, gpus)
    slot, gpu = totals.running, wide(first)
    run, end, result = running[slot], ends[slot], world.outcome[j]
    run.job, run.pool, run.gpu, run.nodes = j, decision.pool, first, spanned
    run.restarts, run.left, run.saved = waiting.restarts, waiting.left, waiting.saved
    run.start, run.served = totals.now, waiting.served
    factor = span_factor(run, job, pool)
    estimated = world.est[j, pool.model] * run.left * factor
    run.expected = min(end_after(estimated, totals.now, run, job), totals.now + job.limit)
    end.todo = end.kept = world.seconds[j, pool.model] * world.undone[q]
    end.since, end.slowness = totals.now, factor
    totals.running += 1
    sliced = job.share < WHOLE
    if not sliced:
        totals.busy_gpus += job.gpus
    else:
        totals.busy_slices += job.share
        link_slice(slot, running, gpus)
        if gpus[first].free + job.share < WHOLE:
            totals.stranded -= job.share
        else:
            totals.stranded += gpus[first].free
    if totals.worn or sliced:
        end.slowness = slowness(slot, world)
    set_end(slot, world)
    place_in_heap(slot, slot, ends)
    sift(slot, totals.running, world)
    if sliced:
        update_slices(gpu, slot, world)
    if len(world.readings) > 0:
        read_chain(gpu, world)
    if waiting.restarts == 0:
        result.start = totals.now
    result.pool, result.nodes, result.restarts = decision.pool, spanned, waiting.restarts
    dequeue(q, world)


@njit_apart
def _preempt(slot: int, migrates: bool, world: World) -> None:
    """Preempt a run as the policy decided.

    In World.eligible, a job that migrates keeps the pool that it held.
    """
    j, held = world.running[slot].job, wide(world.running[slot].pool)
    interrupt(slot, wide(0), world)
    world.totals[0].preemptions += 1
    if has_rules(world.quotas, world.ageing):
        q = find(j, world)
        refresh_mask(q - world.totals[0].head, wide(1), view_of(world), rules_of(world))
        world.eligible[q, held] |= migrates


@njit_part
def apply(answered: int, out: Records, world: World) -> int:
    """Apply the first `answered` decisions of `out` in order; each is checked first.

    Returns:
        Number of starts, preemptions and migrations; -1 when the run stops with a fault.
    """
    totals = world.totals[0]
    if answered < 0 or answered > len(out):
        totals.fault, totals.fault_value, totals.fault_job = violations.TOO_MANY, answered, len(out)
        return -1
    done = 0
    for i in range(answered):
        decision = out[i]
        if decision.kind == WAKE:
            if not decision.at > totals.now:
                return _set_fault(violations.WAKE_IN_THE_PAST, decision, decision.at, totals)
            totals.wake = min(totals.wake, decision.at)
            continue
        done += 1
        if decision.kind != START:
            if decision.kind not in (PREEMPT, MIGRATE):
                return _set_fault(violations.UNKNOWN_KIND, decision, float(decision.kind), totals)
            slot = find_run(decision.job, world)
            fault = check_stop(slot, tables_of(world))
            if fault != violations.NONE:
                return _set_fault(fault, decision, float(decision.kind), totals)
            _preempt(slot, decision.kind == MIGRATE, world)
        if decision.kind != PREEMPT:
            q = find(decision.job, world)
            fault = check_start(decision, q, tables_of(world))
            limited = fault == violations.NONE and len(world.quotas) > 0
            if limited and exceeds_quota(decision, view_of(world), rules_of(world)):
                fault = violations.OVER_QUOTA
            if fault != violations.NONE:
                named = decision.gpu if decision.gpu != -1 else decision.node
                return _set_fault(fault, decision, float(named), totals)
            _start(decision, q, world)
        decision.node = decision.gpu = -1  # so that the next answer names none by default
    if done > 0 and has_rules(world.quotas, world.ageing):
        refresh_mask(wide(0), totals.waiting, view_of(world), rules_of(world))
    return done


@njit
def run(
    decide: Callable[..., int],  # a first-class compiled function, see signature.py
    params: Floats,
    memory: Floats,
    out: Records,
    world: World,
) -> None:
    """Simulate a workload to its end under a compiled policy.

    A fault stops the simulation and is recorded in the totals.
    """
    totals = world.totals[0]
    while advance(world):
        done, last = 1, totals.decisions + MAX_CALLS
        while done > 0:
            if totals.decisions == last:
                totals.fault, totals.fault_value = violations.ENDLESS_ANSWERS, MAX_CALLS
                return
            totals.decisions += 1
            view = view_of(world)
            answered = decide(view, params, memory, out)
            real = answered > 0 and out[0].kind == START  # `apply` checks that it was feasible
            if not real and totals.waiting > 0 and totals.busy_gpus < totals.up_gpus:
                real = any_feasible(view)
            totals.real_decisions += real
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
    """Copy the memory of a policy into the array `to`."""
    for i in range(len(memory)):
        to[i] = memory[i]


@njit_part
def clone(world: World, to: World) -> None:
    """Copy the state of a world into another world of the same cluster.

    Only the parts of queue and running records in use are copied, so the cost does not depend on
    the total number of jobs. Workload, outcomes and spans are not copied.
    """
    totals = world.totals[0]
    to.totals[0] = totals
    to.totals[0].head = 0
    for i in range(totals.waiting):
        move(totals.head + i, i, world, to)
    for i in range(totals.running):
        to.running[i] = world.running[i]
        to.ends[i] = world.ends[i]
    _copy_table(world.wear, to.wear)
    _copy_table(world.cells, to.cells)
    _copy(world.pools, to.pools)
    _copy(world.nodes, to.nodes)
    _copy(world.gpus, to.gpus)
