"""Rollout look-ahead, compiled: the cost of a policy's answer and of the alternatives on copies.

The copied world is rebuilt from the view (sim/rebuild.py): run times are the estimates, and no
further job arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adlro.compiled import njit
from adlro.features.start_kernel import Choices, describe_choices
from adlro.model import violations
from adlro.model.feasibility import start
from adlro.model.state import START, WAKE, Floats, Records, Row
from adlro.sim.rebuild_kernel import fill_from_estimates
from adlro.sim.rollout_kernel import PolicyCall, ask, branch
from adlro.sim.world import World, view_of

_LEAST_GAIN = 1e-6  # seconds that a choice must save
_LEAST_SHARE = 1e-9  # share of the cost that it must save, too: less may be rounding
_NEVER = 1e7  # seconds in the system of a job that never starts
FAULT = -(1 << 40)  # returned instead of a number of decisions


class Handed(NamedTuple):
    """The arguments of the base policy's decide that stay the same from call to call."""

    params: Floats
    memory: Floats
    copied_memory: Floats  # in a copy


class Scratch(NamedTuple):
    """Buffers for C choices."""

    choices: Floats  # for features/start_kernel.py
    others: Floats  # [C] indices of the choices other than the base policy's own
    gains: Floats  # [C] seconds saved by each of them
    trial: Records  # decisions applied to a copy


@njit
def _cost(world: World, copy: World) -> float:
    """Sum of the times in the system of all jobs of a copy, from the world's now on.

    A job that never started, because the nodes it needs are down, counts as _NEVER, whatever the
    length of the rollout: more such jobs cost more, and equally many cost the same.
    """
    w, c = world.totals[0], copy.totals[0]
    total: float = c.job_seconds - w.job_seconds
    for q in range(c.head, c.head + c.waiting):
        total += _NEVER - (c.now - max(world.jobs[copy.queue[q].job].arrival, w.now))
    return total


@njit
def _waits_for_ever(w: Row) -> bool:
    """True if a copy stopped only because jobs wait for nodes that are down."""
    if w.fault == violations.ENDLESS_WAKES:
        idle: bool = w.running == 0
        return idle
    stalled: bool = w.fault == violations.STALLED
    return stalled


@njit
def _is_own(i: int, answered: int, out: Records, choices: Choices, queue: Records) -> bool:
    """True if choice i is the policy's own answer."""
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
    """The number of choices other than the policy's own; writes their indices to others [C]."""
    count = 0
    for i in range(0 if may_wait else 1, choices.count):
        if not _is_own(i, answered, out, choices, queue):
            others[count] = i
            count += 1
    return count


@njit
def _write_choice(i: int, choices: Choices, queue: Records, out: Records) -> int:
    """Write choice i to `out` as an answer; returns the number of decisions."""
    if i == 0:
        return 0
    return start(out, queue[int(choices.places[i])].job, int(choices.pools[i]))


@njit
def best_gain(count: int, margin: float, gains: Floats) -> int:
    """The index of the largest of the first `count` gains, or -1 if none is above the margin."""
    best, most = -1, margin
    for i in range(count):
        if gains[i] > most:
            best, most = i, gains[i]
    return best


@njit
def look_ahead(
    decide: Callable[..., int],  # the base policy's, a first-class compiled function
    handed: Handed,
    scratch: Scratch,
    out: Records,
    world: World,
    copy: World,
) -> int:
    """Ask the base policy, and replace its answer where another choice costs less on the copies.

    Returns:
        The number of decisions in `out`, or FAULT, which is then noted in the copy.
    """
    w, queue, others, gains = world.totals[0], world.queue, scratch.others, scratch.gains
    base, trial = PolicyCall(decide, handed.params, handed.memory), scratch.trial
    answered = ask(base, out, world)
    if w.waiting == 0 or answered < 0 or answered > len(out):
        return answered
    for d in range(answered):
        if out[d].kind not in (START, WAKE):
            return answered
    choices = describe_choices(view_of(world), scratch.choices)
    may_wait = w.running > 0 or w.wake < np.inf  # else no event might follow
    count = _count_others(answered, may_wait, out, choices, queue, others)
    if count == 0:
        return answered
    fill_from_estimates(world)
    own = 0.0
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
            own = cost
        else:
            gains[n] = own - cost
    n = best_gain(count, _LEAST_GAIN + _LEAST_SHARE * own, gains)
    if n < 0:
        return answered
    for d in range(answered):  # a later answer that names no node must find none here
        out[d].node = out[d].gpu = -1
    return _write_choice(int(others[n]), choices, queue, out)
