"""Playing on, compiled: a policy takes a state, or a copy of it, to the end of its jobs.

What is tried on copies goes through here: labels for training, and looking ahead. State and
workload are tuples of the arrays that the kernel's functions take.
"""

from __future__ import annotations

from collections.abc import Callable

from adlro.compiled import njit
from adlro.model.state import Floats, Records
from adlro.sim import faults
from adlro.sim.kernel import MOST_CALLS, advance, apply, clone


@njit
def ask(
    decide: Callable[..., int], params: Floats, memory: Floats, out: Records,
    state: tuple[Records, ...], work: tuple[Records, ...],
) -> int:  # fmt: skip
    """Ask a policy about a state; returns how many decisions it wrote."""
    w = state[0][0]
    return decide(
        w.now, work[0][: w.arrived], work[1][: w.arrived], state[1][w.head : w.head + w.waiting],
        state[2][w.head : w.head + w.waiting], state[4][: w.running], state[8], state[9], state[10],
        params, memory, out,
    )  # fmt: skip


@njit
def _roll(
    answered: int, decide: Callable[..., int], params: Floats, memory: Floats, out: Records,
    state: tuple[Records, ...], work: tuple[Records, ...], outcome: Records, spans: Records,
) -> bool:  # fmt: skip
    """Play to the end from so many decisions in `out` on, 0 = the next event. False = a fault.

    There is one `apply` and one `advance` here: each takes seconds to compile.
    """
    w, calls = state[0][0], 0
    while True:
        while answered > 0:
            done = apply(answered, out, *state, *work, outcome, spans)
            if done < 0:
                return False
            calls += 1
            if calls == MOST_CALLS:
                w.fault, w.fault_value = faults.ENDLESS_ANSWERS, MOST_CALLS
                return False
            answered = ask(decide, params, memory, out, state, work) if done > 0 else 0
        if not advance(*state, *work, outcome, spans):
            break
        calls = 0
        answered = ask(decide, params, memory, out, state, work)
    is_sound: bool = w.fault == 0
    return is_sound


@njit
def branch(
    answered: int, decide: Callable[..., int], params: Floats, memory: Floats,
    copied_memory: Floats, out: Records, state: tuple[Records, ...], copy: tuple[Records, ...],
    work: tuple[Records, ...], outcome: Records, spans: Records,
) -> bool:  # fmt: skip
    """Carry out so many decisions of `out` on a copy of a state and play it to its end.

    The policy begins with a copy of its memory, which may be the same array if nobody needs it any
    more. Returns False after a fault, which is noted in the copy.
    """
    clone(*state, memory, *copy, copied_memory)
    return _roll(answered, decide, params, copied_memory, out, copy, work, outcome, spans)


@njit
def copy_job(i: int, work: tuple[Records, ...], j: int, to: tuple[Records, ...]) -> None:
    """Copy all that a workload says of its job i to job j of another, or of the same."""
    to[0][j] = work[0][i]
    for m in range(work[1].shape[1]):
        to[1][j, m], to[3][j, m] = work[1][i, m], work[3][i, m]
    for p in range(work[2].shape[1]):
        to[2][j, p] = work[2][i, p]
    to[8][j, 0], to[8][j, 1] = work[8][i, 0], work[8][i, 1]
