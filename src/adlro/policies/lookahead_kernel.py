"""Rollout look-ahead, compiled: a policy's answer and its alternatives are tried on copies.

The world is rebuilt from the view (sim/rebuild.py): run times are the estimates, and no
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
    """The base policy's parameters and its memory, in the run and in a copy."""

    params: Floats
    memory: Floats
    copied_memory: Floats  # in a copy


class Scratch(NamedTuple):
    """Buffers for comparing C choices in one call."""

    choices: Floats  # for features/start_kernel.py
    others: Floats  # [C] indices of the choices other than the base policy's own
    gains: Floats  # [C] seconds saved by each of them
    trial: Records  # decisions applied to a copy


@njit
def _cost(world: World, copy: World) -> float:
    """Return the cost of a copy after its rollout: the sum of the times in the system of its jobs.

    Times count from the present time of `world`. A job that never started, because the nodes it
    needs are down, counts as _NEVER seconds, however long the rollout was: more such jobs cost
    more, and the same number of them costs the same.
    """
    w, c = world.totals[0], copy.totals[0]
    total: float = c.job_seconds - w.job_seconds
    for q in range(c.head, c.head + c.waiting):
        total += _NEVER - (c.now - max(world.jobs[copy.queue[q].job].arrival, w.now))
    return total


@njit
def _waits_for_ever(w: Row) -> bool:
    """Return True if a copy stopped only because jobs wait for nodes that are down."""
    if w.fault == violations.ENDLESS_WAKES:
        idle: bool = w.running == 0
        return idle
    stalled: bool = w.fault == violations.STALLED
    return stalled


@njit
def _is_own(i: int, answered: int, out: Records, choices: Choices, queue: Records) -> bool:
    """Return True if choice i is what the policy answered: its first start, or to wait (i = 0)."""
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
    """Write the indices of all choices but the policy's own answer to others [C].

    Returns their number. may_wait: True if waiting counts as a choice.
    """
    count = 0
    for i in range(0 if may_wait else 1, choices.count):
        if not _is_own(i, answered, out, choices, queue):
            others[count] = i
            count += 1
    return count


@njit
def _write_choice(i: int, choices: Choices, queue: Records, out: Records) -> int:
    """Write choice i to `out` as decisions, and return their number: 0 for waiting, else 1."""
    if i == 0:
        return 0
    return start(out, queue[int(choices.places[i])].job, int(choices.pools[i]))


@njit
def best_gain(count: int, margin: float, gains: Floats) -> int:
    """Return the index of the largest of the first `count` gains; -1 if none exceeds the margin."""
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
    """Write the base policy's answer to `out`, or another choice that costs less in a rollout.

    Returns:
        The number of decisions in `out`; or FAULT if a rollout failed, with the reason in the
        totals of `copy`.
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
