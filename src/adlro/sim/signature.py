"""The one signature of decide, and the kernel compiled once for all policies that have it.

A compiled policy is handed to the kernel as a first-class function with an explicit type. A plain
dispatcher as argument would be a new type, so a new compile, for each policy and each process.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from adlro.compiled import Dispatcher, dispatcher
from adlro.model import state
from adlro.model.view import View
from adlro.sim import kernel, steps
from adlro.sim.world import World

FLOATS = types.float64[::1]
TABLE = types.float64[:, ::1]
MASK = types.boolean[:, ::1]
COUNTS = types.int64[:, ::1]
_ROWS = types.int64[::1]


def _records(dtype: np.dtype[np.void]) -> types.Array:
    return types.Array(numba.from_dtype(dtype), 1, "C")


ANSWER = _records(state.DECISION)
VIEW = types.NamedTuple(
    [
        types.float64,  # now
        _records(state.JOB),
        TABLE,  # est
        _records(state.WAITING),
        MASK,  # eligible
        _records(state.RUNNING),
        _records(state.POOL),
        _records(state.NODE),
        _records(state.GPU),
        types.int64,  # arrived
        _ROWS,  # recent
    ],
    View,
)
WORLD = types.NamedTuple(
    [
        _records(state.TOTALS),
        _records(state.WAITING),
        MASK,  # eligible
        FLOATS,  # undone
        _records(state.RUNNING),
        _records(state.ENDS),
        TABLE,  # wear
        TABLE,  # cells
        _records(state.POOL),
        _records(state.NODE),
        _records(state.GPU),
        _ROWS,  # arrivals
        _records(state.JOB),
        TABLE,  # est
        MASK,  # allowed
        TABLE,  # seconds
        _records(state.EVENT),
        TABLE,  # colocation
        _records(state.DEMAND),
        types.Array(numba.from_dtype(state.READING), 2, "C"),
        COUNTS,  # holders
        _records(state.QUOTA),
        COUNTS,  # caps
        FLOATS,  # ageing
        _records(state.OUTCOME),
        _records(state.SPAN),
    ],
    World,
)
DECIDE = types.intp(VIEW, FLOATS, FLOATS, ANSWER)  # view, params, memory, out


_ONE_AT_A_TIME = threading.Lock()  # two threads may both find that nothing is compiled yet


def compiled_run() -> Dispatcher:
    """The kernel's `run`, compiled (or loaded) for every policy of the signature."""
    run = dispatcher(kernel.run)
    if not run.overloads:
        with _ONE_AT_A_TIME:
            if not run.overloads:  # asked again inside: another thread may have been here
                run.compile((types.FunctionType(DECIDE), FLOATS, FLOATS, ANSWER, WORLD))
                run.disable_compile()
    return run


class Steps(NamedTuple):
    """What the driver for policies in plain Python calls.

    Without the dispatchers, which would look at the types of all arrays in each call.
    """

    advance: Callable[[World], bool]
    apply: Callable[[int, state.Records, World], int]
    is_real: Callable[[World], bool]
    clone: Callable[[World, World], None]


def entry_point(function: Callable[..., Any], *signature: types.Type) -> Callable[..., Any]:
    """A compiled function for one signature, to be called with exactly these types."""
    compiled = dispatcher(function)
    if signature not in compiled.overloads:
        compiled.compile(signature)
    entry: Callable[..., Any] = compiled.overloads[signature].entry_point
    return entry


@functools.cache
def _compiled_steps() -> Steps:
    return Steps(
        entry_point(steps.advance, WORLD),
        entry_point(steps.apply, types.intp, ANSWER, WORLD),
        entry_point(steps.is_real, WORLD),
        entry_point(steps.clone, WORLD, WORLD),
    )


def compiled_steps() -> Steps:
    """Compile (or load) what the driver for policies in plain Python calls."""
    with _ONE_AT_A_TIME:
        return _compiled_steps()


@functools.lru_cache(maxsize=256)  # to look a signature up, numba hashes every field of its records
def compile_decide(decide: Callable[..., int]) -> Dispatcher:
    """Compile a policy's dispatcher for the one signature, and hand it back."""
    compiled = dispatcher(decide)
    with _ONE_AT_A_TIME:
        compiled.compile(DECIDE.args)
    return compiled
