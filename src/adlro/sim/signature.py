"""The one signature of decide, and the kernel compiled once for all policies that have it.

A compiled policy is handed to the kernel as a first-class function with an explicit type. A plain
dispatcher as argument would be a new type, so a new compile, for each policy and each process.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

import numba
import numpy as np
from numba import types

from adlro.compiled import Dispatcher, dispatcher
from adlro.model import state
from adlro.model.room import any_feasible
from adlro.sim import kernel

FLOATS = types.float64[::1]
TABLE = types.float64[:, ::1]
_MASK = types.boolean[:, ::1]
COUNTS = types.int64[:, ::1]


def _records(dtype: np.dtype[np.void]) -> types.Array:
    return types.Array(numba.from_dtype(dtype), 1, "C")


STATE = (
    _records(state.WORLD),
    _records(state.WAITING),
    _MASK,
    FLOATS,  # undone
    _records(state.RUNNING),
    _records(state.ENDS),
    TABLE,  # wear
    TABLE,  # cells
    _records(state.POOL),
    _records(state.NODE),
    _records(state.GPU),
)

DECIDE = types.intp(
    types.float64,  # now
    _records(state.JOB),
    TABLE,  # est
    _records(state.WAITING),
    _MASK,  # eligible
    _records(state.RUNNING),
    _records(state.POOL),
    _records(state.NODE),
    _records(state.GPU),
    FLOATS,  # params
    FLOATS,  # memory
    _records(state.DECISION),
)

WORKLOAD = (
    _records(state.JOB),
    TABLE,  # est
    _MASK,  # allowed
    TABLE,  # seconds
    _records(state.EVENT),
    TABLE,  # colocation
    _records(state.DEMAND),
    types.Array(numba.from_dtype(state.READING), 2, "C"),
    COUNTS,  # holders
    _records(state.QUOTA),
    COUNTS,  # caps
    FLOATS,  # ageing
)
BOOKS = (_records(state.OUTCOME), _records(state.SPAN))
ANSWER = _records(state.DECISION)
_RUN = (
    types.FunctionType(DECIDE), FLOATS, FLOATS, ANSWER, *STATE, *WORKLOAD, *BOOKS
)  # fmt: skip


_ONE_AT_A_TIME = threading.Lock()  # two threads may both find that nothing is compiled yet


def compiled_run() -> Dispatcher:
    """The kernel's `run`, compiled (or loaded) for every policy of the signature."""
    run = dispatcher(kernel.run)
    if not run.overloads:
        with _ONE_AT_A_TIME:
            if not run.overloads:  # asked again inside: another thread may have been here
                run.compile(_RUN)
                run.disable_compile()
    return run


@functools.cache
def compile_steps() -> None:
    """Compile (or load) what the driver for policies in plain Python calls."""
    all_of_it = (*STATE, *WORKLOAD, *BOOKS)
    dispatcher(kernel.advance).compile(all_of_it)
    dispatcher(kernel.apply).compile((types.intp, ANSWER, *all_of_it))
    dispatcher(any_feasible).compile((WORKLOAD[0], *STATE[1:3], *STATE[8:11]))


@functools.lru_cache(maxsize=256)  # to look a signature up, numba hashes every field of its records
def compile_decide(decide: Callable[..., int]) -> Dispatcher:
    """Compile a policy's dispatcher for the one signature, and hand it back."""
    compiled = dispatcher(decide)
    with _ONE_AT_A_TIME:
        compiled.compile(DECIDE.args)
    return compiled
