"""Looking ahead, compiled: a policy's answer beside all other choices, each played on in a copy.

The state is one that was rebuilt from what a policy sees, and the workload holds the jobs that have
arrived, with their estimates as run times, and room for those that may come. Futures are drawn
from the last arrivals. State and workload are tuples, as in sim/roll_kernel.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from adlro.compiled import njit
from adlro.encode.candidates_kernel import Choices, look
from adlro.model.room import expected_end, start
from adlro.model.state import START, WAKE, WHOLE, Floats, Records, Row
from adlro.sim import faults
from adlro.sim.close_kernel import stranded
from adlro.sim.ends_kernel import put, sift
from adlro.sim.roll_kernel import ask, branch, copy_job
from adlro.sim.run_kernel import span_factor, timeline

RECENT = 128  # arrivals that futures are drawn from
FEW = 8  # arrivals that tell too little of what comes: copies know of none
_LEAST_GAIN = 1e-6  # seconds that a choice must save
_LEAST_SHARE = 1e-9  # and of the cost: what is less may be rounding
_NEVER = 1e7  # seconds
FAULT = -(1 << 40)  # instead of a number of decisions


@njit
def fill_in(state: tuple[Records, ...], work: tuple[Records, ...]) -> None:
    """Fill in what a policy does not see, as far as it can know: all ends as by the estimate.

    A job that is overdue is expected anew, and so ends then in every copy.
    """
    w, running, ends, jobs = state[0][0], state[4], state[5], work[0]
    w.busy_gpus = w.busy_slices = w.stranded = w.up_gpus = 0
    for p in range(len(state[8])):
        w.up_gpus += state[8][p].gpus
    for g in range(len(state[10])):
        if state[10][g].slice >= 0:
            w.stranded += stranded(state[10][g])
    for r in range(w.running):
        run, end = running[r], ends[r]
        job = jobs[run.job]
        if job.share == WHOLE:
            w.busy_gpus += job.gpus
        else:
            w.busy_slices += job.share
        run.expected = min(expected_end(run, w.now), run.start + job.limit)
        end.end, end.since = run.expected, w.now
        end.slowness = span_factor(run, job, state[8][run.pool])
        until, _, _, _ = timeline(run.expected - run.start, run, job)
        before, _, _, _ = timeline(w.now - run.start, run, job)
        end.todo = end.kept = (until - before) / end.slowness
        put(r, r, ends)
        sift(r, r + 1, running, ends)
    for q in range(w.waiting):
        state[3][q] = state[1][q].left


@njit
def _write_future(draws: Floats, arrived: int, now: float, work: tuple[Records, ...]) -> None:
    """Let jobs come from `arrived` on: draws [H, 2] say which job again, and after which gap."""
    first = max(arrived - RECENT, 0)
    count, moment = arrived - first, now
    for h in range(len(draws)):
        j, i = arrived + h, first + int(draws[h, 0] * count)
        before = first + int(draws[h, 1] * (count - 1))
        moment += work[0][before + 1].arrival - work[0][before].arrival
        copy_job(i, work, j, work)
        work[0][j].arrival = moment


@njit
def _cost(state: tuple[Records, ...], copy: tuple[Records, ...], jobs: Records) -> float:
    """Time in the system of all jobs of a copy, from the state's moment on.

    Jobs that found no place, for what they need is down, count as _NEVER each: however long the
    copy was played on, more of them is worse and as many of them is the same.
    """
    w, c = state[0][0], copy[0][0]
    total: float = c.job_seconds - w.job_seconds
    for q in range(c.head, c.head + c.waiting):
        total += _NEVER - (c.now - max(jobs[copy[1][q].job].arrival, w.now))
    return total


@njit
def _waits_for_ever(w: Row) -> bool:
    """True when a copy stopped only because jobs wait for what is down, with timers or without."""
    if w.fault == faults.ENDLESS_WAKES:
        idle: bool = w.running == 0
        return idle
    stalled: bool = w.fault == faults.STALLED
    return stalled


@njit
def _is_own(i: int, answered: int, out: Records, choices: Choices, queue: Records) -> bool:
    """True when choice i is what the policy would do anyway."""
    for k in range(answered):
        if out[k].kind == START:
            if i == 0:
                return False
            same: bool = queue[int(choices.places[i])].job == out[k].job
            return same and int(choices.pools[i]) == out[k].pool
    return i == 0


@njit
def _count_others(
    answered: int, may_wait: bool, out: Records, choices: Choices, queue: Records, others: Floats
) -> int:
    """How many choices are left besides the policy's own; others [C] are their numbers."""
    count = 0
    for i in range(0 if may_wait else 1, choices.count):
        if not _is_own(i, answered, out, choices, queue):
            others[count] = i
            count += 1
    return count


@njit
def _write_choice(i: int, choices: Choices, queue: Records, out: Records) -> int:
    """Write a choice as an answer; returns the number of decisions."""
    if i == 0:
        return 0
    return start(out, queue[int(choices.places[i])].job, int(choices.pools[i]))


@njit
def best_gain(count: int, gate: float, margin: float, gains: Floats) -> int:
    """The choice with the largest mean gain of those that may replace the policy's own, or -1.

    Shapes: gains [C, M] seconds over M futures. A mean must be above the margin and, with several
    futures, `gate` of its standard errors above 0.
    """
    best, most, futures = -1, margin, gains.shape[1]
    for i in range(count):
        mean, squares = 0.0, 0.0
        for k in range(futures):
            mean += gains[i, k] / futures
        if not mean > most:
            continue
        for k in range(futures):
            squares += (gains[i, k] - mean) ** 2
        if futures > 1 and mean <= gate * math.sqrt(squares / (futures - 1) / futures):
            continue
        best, most = i, mean
    return best


@njit
def look_ahead(
    gate: float, draws: Floats, base: Callable[..., int], params: Floats, memory: Floats,
    copied_memory: Floats, scratch: Floats, others: Floats, gains: Floats, out: Records,
    trial: Records, state: tuple[Records, ...], copy: tuple[Records, ...],
    work: tuple[Records, ...], outcome: Records, spans: Records,
) -> int:  # fmt: skip
    """Ask the base policy, and replace its answer where another choice is better in the copies.

    Shapes: others [C] and gains [C, M] are scratch, M futures; draws [M * H, 2] for H arrivals in
    each.

    Returns:
        How many decisions stand in `out`, or FAULT, which is then noted in the copy.
    """
    w, queue = state[0][0], state[1]
    answered = ask(base, params, memory, out, state, work)
    if w.waiting == 0 or answered < 0 or answered > len(out):
        return answered
    for d in range(answered):
        if out[d].kind not in (START, WAKE):
            return answered
    choices = look(
        w.now, work[0][: w.arrived], work[1][: w.arrived], queue[: w.waiting],
        state[2][: w.waiting], state[4][: w.running], state[8], state[9], state[10], scratch,
    )  # fmt: skip
    may_wait = w.running > 0 or w.wake < np.inf  # else it could be for ever
    count = _count_others(answered, may_wait, out, choices, queue, others)
    if count == 0:
        return answered
    fill_in(state, work)
    futures, own = gains.shape[1], 0.0
    arrivals = len(draws) // futures
    last = w.arrived + arrivals
    part = (
        work[0][:last], work[1][:last], work[2][:last], work[3][:last], work[4], work[5], work[6],
        work[7], work[8][:last], work[9], work[10], work[11],
    )  # fmt: skip
    for k in range(futures):
        _write_future(draws[k * arrivals : (k + 1) * arrivals], w.arrived, w.now, part)
        usual = 0.0
        for n in range(-1, count):  # -1 = the base policy's own answer
            tried = answered
            if n >= 0:
                tried = _write_choice(int(others[n]), choices, queue, trial)
            else:
                for d in range(answered):
                    trial[d] = out[d]
            sound = branch(
                tried, base, params, memory, copied_memory, trial, state, copy, part, outcome, spans
            )
            if not sound and not _waits_for_ever(copy[0][0]):
                return FAULT
            cost = _cost(state, copy, work[0])
            if n < 0:
                usual = cost
                own += cost / futures
            else:
                gains[n, k] = usual - cost
    n = best_gain(count, gate, _LEAST_GAIN + _LEAST_SHARE * own, gains)
    if n < 0:
        return answered
    for d in range(answered):  # the next answer that names none means none
        out[d].node = out[d].gpu = -1
    return _write_choice(int(others[n]), choices, queue, out)
