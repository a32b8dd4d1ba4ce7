"""The one signature of decide, and the kernel compiled once for all policies that have it.

A compiled policy is handed to the kernel as a first-class function with an explicit type. A plain
dispatcher as argument would be a new type, so a new compile, for each policy and each process.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import numba
from numba import types

from adlro.model import state
from adlro.model.room import any_feasible
from adlro.sim import kernel

_FLOATS = types.float64[::1]
_TABLE = types.float64[:, ::1]
_MASK = types.boolean[:, ::1]


def _records(dtype: Any) -> Any:  # noqa: ANN401  numba's types are untyped
    return types.Array(numba.from_dtype(dtype), 1, "C")


_STATE = (
    _records(state.WORLD),
    _records(state.WAITING),
    _MASK,
    _records(state.RUNNING),
    _records(state.ENDS),
    _records(state.POOL),
    _records(state.NODE),
    _records(state.GPU),
)

DECIDE = types.intp(
    types.float64,  # now
    _records(state.JOB),
    _TABLE,  # est
    _records(state.WAITING),
    _MASK,  # eligible
    _records(state.RUNNING),
    _records(state.POOL),
    _records(state.NODE),
    _records(state.GPU),
    _FLOATS,  # params
    _FLOATS,  # memory
    _records(state.DECISION),
)

_JOBS = _records(state.JOB)
_RUN = (
    types.FunctionType(DECIDE), _FLOATS, _FLOATS, _records(state.DECISION), *_STATE, _JOBS, _TABLE,
    _MASK, _TABLE, _records(state.OUTCOME), _records(state.SPAN),
)  # fmt: skip


_ONE_AT_A_TIME = threading.Lock()  # two threads may both find that nothing is compiled yet


def compiled_run() -> Any:  # noqa: ANN401
    """The kernel's `run`, compiled (or loaded) for every policy of the signature."""
    run: Any = kernel.run
    if not run.overloads:
        with _ONE_AT_A_TIME:
            if not run.overloads:  # asked again inside: another thread may have been here
                run.compile(_RUN)
                run.disable_compile()
    return run


@functools.cache
def compile_steps() -> None:
    """Compile (or load) what the driver for policies in plain Python calls."""
    books = (_records(state.OUTCOME), _records(state.SPAN))
    kernel.advance.compile((*_STATE, _JOBS, _MASK, *books))  # type: ignore[attr-defined]
    kernel.apply.compile(  # type: ignore[attr-defined]
        (types.intp, _records(state.DECISION), *_STATE, _JOBS, _TABLE, _TABLE, books[0])
    )
    any_feasible.compile((_JOBS, *_STATE[1:3], *_STATE[5:7]))  # type: ignore[attr-defined]


def compile_decide(decide: Any) -> Any:  # noqa: ANN401
    """Compile a policy's dispatcher for the one signature, and hand it back."""
    if DECIDE.args not in decide.overloads:
        with _ONE_AT_A_TIME:
            decide.compile(DECIDE.args)
    return decide
