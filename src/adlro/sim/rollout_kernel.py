"""Playing on, compiled: a policy takes a world, or a copy of it, to the end of its jobs.

What is tried on copies goes through here: labels for training, and looking ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from adlro.compiled import njit
from adlro.model import violations
from adlro.model.state import Floats, Records
from adlro.sim.kernel import MOST_CALLS, advance, apply, clone, copy_memory
from adlro.sim.world import World, view_of


class PolicyCall(NamedTuple):
    """A compiled policy and what it is handed with every call."""

    decide: Callable[..., int]  # a first-class compiled function, see signature.py
    params: Floats
    memory: Floats


@njit
def ask(asked: PolicyCall, out: Records, world: World) -> int:
    """Ask a policy about a world; returns how many decisions it wrote."""
    return asked.decide(view_of(world), asked.params, asked.memory, out)


@njit
def _rollout(answered: int, asked: PolicyCall, out: Records, world: World) -> bool:
    """Play to the end from so many decisions in `out` on, 0 = the next event. False = a fault.

    There is one `apply` and one `advance` here: each takes seconds to compile.
    """
    w, calls = world.totals[0], 0
    while True:
        while answered > 0:
            done = apply(answered, out, world)
            if done < 0:
                return False
            calls += 1
            if calls == MOST_CALLS:
                w.fault, w.fault_value = violations.ENDLESS_ANSWERS, MOST_CALLS
                return False
            answered = ask(asked, out, world) if done > 0 else 0
        if not advance(world):
            break
        calls = 0
        answered = ask(asked, out, world)
    is_sound: bool = w.fault == 0
    return is_sound


@njit
def branch(
    answered: int, asked: PolicyCall, copied_memory: Floats, out: Records, world: World, copy: World
) -> bool:
    """Carry out so many decisions of `out` on a copy of a world and play it to its end.

    The copy's own workload and books count. The policy begins with a copy of its memory, which may
    be the same array if nobody needs it any more. Returns False after a fault, which is noted in
    the copy.
    """
    clone(world, copy)
    copy_memory(asked.memory, copied_memory)
    return _rollout(answered, PolicyCall(asked.decide, asked.params, copied_memory), out, copy)


@njit
def copy_job(i: int, world: World, j: int, to: World) -> None:
    """Copy all that a workload says of the job in row i to row j of another, or of the same."""
    to.jobs[j] = world.jobs[i]
    for m in range(world.est.shape[1]):
        to.est[j, m], to.seconds[j, m] = world.est[i, m], world.seconds[i, m]
    for p in range(world.allowed.shape[1]):
        to.allowed[j, p] = world.allowed[i, p]
    to.holders[j, 0], to.holders[j, 1] = world.holders[i, 0], world.holders[i, 1]
