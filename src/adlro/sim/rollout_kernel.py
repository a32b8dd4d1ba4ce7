"""Rollouts: simulation of a copy of a world under a policy, to the end of its jobs (compiled).

Used for training labels and by the look-ahead policies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from adlro.compiled import njit
from adlro.model import violations
from adlro.model.state import Floats, Records
from adlro.sim.kernel import MAX_CALLS, advance, apply, clone, copy_memory
from adlro.sim.world import World, view_of


class PolicyCall(NamedTuple):
    """A compiled `decide` with the parameters and the memory to call it with."""

    decide: Callable[..., int]  # a first-class compiled function, see signature.py
    params: Floats
    memory: Floats


@njit
def ask(policy: PolicyCall, out: Records, world: World) -> int:
    """Call a policy on a world; returns the number of decisions that it wrote to `out`."""
    return policy.decide(view_of(world), policy.params, policy.memory, out)


@njit
def _rollout(answered: int, policy: PolicyCall, out: Records, world: World) -> bool:
    """Apply the first `answered` decisions of `out`, then simulate to the end; False after a fault.

    With answered = 0 the rollout begins with the next event. `apply` and `advance` are called at
    one place each, because each inlined copy takes seconds to compile.
    """
    totals, calls = world.totals[0], 0
    while True:
        while answered > 0:
            done = apply(answered, out, world)
            if done < 0:
                return False
            calls += 1
            if calls == MAX_CALLS:
                totals.fault, totals.fault_value = violations.ENDLESS_ANSWERS, MAX_CALLS
                return False
            answered = ask(policy, out, world) if done > 0 else 0
        if not advance(world):
            break
        calls = 0
        answered = ask(policy, out, world)
    succeeded: bool = totals.fault == 0
    return succeeded


@njit
def branch(
    answered: int,
    policy: PolicyCall,
    copied_memory: Floats,
    out: Records,
    world: World,
    copy: World,
) -> bool:
    """Apply the first `answered` decisions of `out` to a copy of a world; simulate it to its end.

    The rollout uses the workload of the copy and writes outcomes there. The memory of the policy is
    copied to `copied_memory` first; this may be the same array if the caller no longer needs it.

    Returns:
        False after a fault, which is recorded in the copy.
    """
    clone(world, copy)
    copy_memory(policy.memory, copied_memory)
    return _rollout(answered, PolicyCall(policy.decide, policy.params, copied_memory), out, copy)


@njit
def copy_job(i: int, world: World, j: int, to: World) -> None:
    """Copy the job in row i of a world to row j of another world, which may be the same."""
    to.jobs[j] = world.jobs[i]
    for m in range(world.est.shape[1]):
        to.est[j, m], to.seconds[j, m] = world.est[i, m], world.seconds[i, m]
    for p in range(world.allowed.shape[1]):
        to.allowed[j, p] = world.allowed[i, p]
    to.holders[j, 0], to.holders[j, 1] = world.holders[i, 0], world.holders[i, 1]
