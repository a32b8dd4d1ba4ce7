"""numba types of a policy's `decide`, and the kernel compiled once for all policies.

A compiled policy is passed to the kernel as a first-class function with an explicit type. A plain
dispatcher as argument would be a new type, and so a new compile, for each policy and each process.
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
        FLOATS,  # tick
        _records(state.OUTCOME),
        _records(state.SPAN),
    ],
    World,
)
DECIDE = types.intp(VIEW, FLOATS, FLOATS, ANSWER)  # view, params, memory, out


_COMPILE_LOCK = threading.Lock()  # two threads may both find that nothing is compiled yet


def compiled_run() -> Dispatcher:
    """Return the kernel's `run`, compiled or loaded from the cache; it serves every policy."""
    run = dispatcher(kernel.run)
    if not run.overloads:
        with _COMPILE_LOCK:
            if not run.overloads:  # checked again: another thread may have compiled it meanwhile
                run.compile((types.FunctionType(DECIDE), FLOATS, FLOATS, ANSWER, WORLD))
                run.disable_compile()
    return run


class Steps(NamedTuple):
    """Compiled functions of steps.py, called by the Python loop for policies in plain Python.

    They bypass numba's dispatchers, which inspect the types of all arrays at each call.
    """

    advance: Callable[[World], bool]
    apply: Callable[[int, state.Records, World], int]
    is_real: Callable[[World], bool]
    clone: Callable[[World, World], None]


def entry_point(function: Callable[..., Any], *signature: types.Type) -> Callable[..., Any]:
    """Compile a function for one signature; returns its entry point, only for these types."""
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
    """Return the functions of steps.py, compiled or loaded from the cache."""
    with _COMPILE_LOCK:
        return _compiled_steps()


@functools.lru_cache(maxsize=256)  # numba's own lookup hashes every field of the record types
def compile_decide(decide: Callable[..., int]) -> Dispatcher:
    """Compile a policy's `decide` for the signature DECIDE; returns its dispatcher."""
    compiled = dispatcher(decide)
    with _COMPILE_LOCK:
        compiled.compile(DECIDE.args)
    return compiled
