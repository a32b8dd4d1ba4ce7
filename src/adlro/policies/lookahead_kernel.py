"""Looking ahead, compiled: a policy's answer beside all other choices, each played on in a copy.

The world is one that was rebuilt from what a policy sees (sim/rebuild.py): run times are the
estimates. Futures are drawn from the last arrivals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adlro.compiled import njit
from adlro.features.start_kernel import Choices, describe_choices
from adlro.model import violations
from adlro.model.feasibility import start
from adlro.model.state import START, WAKE, Floats, Records, Row
from adlro.sim.rebuild_kernel import fill_from_estimates
from adlro.sim.rollout_kernel import PolicyCall, ask, branch, copy_job
from adlro.sim.world import World, view_of

FEW = 8  # arrivals that tell too little of what comes: copies know of none
_LEAST_GAIN = 1e-6  # seconds that a choice must save
_LEAST_SHARE = 1e-9  # and of the cost: what is less may be rounding
_NEVER = 1e7  # seconds
FAULT = -(1 << 40)  # instead of a number of decisions


class Handed(NamedTuple):
    """What the base policy is handed with every call."""

    params: Floats
    memory: Floats
    copied_memory: Floats  # in a copy


class Scratch(NamedTuple):
    """Room to work in: C choices, M futures of H arrivals."""

    draws: Floats  # [M * H, 2] luck of every arrival
    look: Floats  # for features/start_kernel.py
    others: Floats  # [C] choices besides the base policy's own
    gains: Floats  # [C, M] seconds
    trial: Records  # decisions that are tried


@njit
def _write_future(draws: Floats, world: World) -> None:
    """Let jobs come: draws [H, 2] say which of the last ones again, and after which gap."""
    w, jobs, arrivals = world.totals[0], world.jobs, world.arrivals
    count, moment = w.arrived, w.now
    for h in range(len(draws)):
        i, j = arrivals[int(draws[h, 0] * count)], arrivals[count + h]
        before = int(draws[h, 1] * (count - 1))
        moment += jobs[arrivals[before + 1]].arrival - jobs[arrivals[before]].arrival
        copy_job(i, world, j, world)
        jobs[j].arrival, jobs[j].id = moment, jobs[arrivals[count - 1]].id + 1 + h


@njit
def _cost(world: World, copy: World) -> float:
    """Time in the system of all jobs of a copy, from the world's moment on.

    Jobs that found no place, for what they need is down, count as _NEVER each: however long the
    copy was played on, more of them is worse and as many of them is the same.
    """
    w, c = world.totals[0], copy.totals[0]
    total: float = c.job_seconds - w.job_seconds
    for q in range(c.head, c.head + c.waiting):
        total += _NEVER - (c.now - max(world.jobs[copy.queue[q].job].arrival, w.now))
    return total


@njit
def _waits_for_ever(w: Row) -> bool:
    """True when a copy stopped only because jobs wait for what is down, with timers or without."""
    if w.fault == violations.ENDLESS_WAKES:
        idle: bool = w.running == 0
        return idle
    stalled: bool = w.fault == violations.STALLED
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
    gate: float,
    decide: Callable[..., int],  # the base policy's, a first-class compiled function
    handed: Handed,
    scratch: Scratch,
    out: Records,
    world: World,
    copy: World,
) -> int:
    """Ask the base policy, and replace its answer where another choice is better in the copies.

    Returns:
        How many decisions stand in `out`, or FAULT, which is then noted in the copy.
    """
    w, queue, others, gains = world.totals[0], world.queue, scratch.others, scratch.gains
    base, trial = PolicyCall(decide, handed.params, handed.memory), scratch.trial
    answered = ask(base, out, world)
    if w.waiting == 0 or answered < 0 or answered > len(out):
        return answered
    for d in range(answered):
        if out[d].kind not in (START, WAKE):
            return answered
    choices = describe_choices(view_of(world), scratch.look)
    may_wait = w.running > 0 or w.wake < np.inf  # else it could be for ever
    count = _count_others(answered, may_wait, out, choices, queue, others)
    if count == 0:
        return answered
    fill_from_estimates(world)
    futures, own = gains.shape[1], 0.0
    arrivals = len(scratch.draws) // futures
    for k in range(futures):
        _write_future(scratch.draws[k * arrivals : (k + 1) * arrivals], world)
        usual = 0.0
        for n in range(-1, count):  # -1 = the base policy's own answer
            tried = answered
            if n >= 0:
                tried = _write_choice(int(others[n]), choices, queue, trial)
            else:
                for d in range(answered):
                    trial[d] = out[d]
            sound = branch(tried, base, handed.copied_memory, trial, world, copy)
            if not sound and not _waits_for_ever(copy.totals[0]):
                return FAULT
            cost = _cost(world, copy)
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
