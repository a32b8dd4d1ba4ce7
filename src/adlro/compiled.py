"""Numba, with a cache that cannot serve stale code.

Every compiled function of ADLRO is decorated with `njit` from here, never with numba's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

import numpy as np

os.environ.pop("NUMBA_DISABLE_JIT", None)  # a kernel that is not compiled cannot call a policy

import numba

from adlro.codegen import PartCompiler
from adlro.compile_cache import FunctionCache

vars(numba.config)["DISABLE_JIT"] = False  # if it was imported earlier

F = TypeVar("F", bound=Callable[..., Any])
# In compiled code: a constant or another width of integer is a type, and a compile, of its own.
wide: Any = np.int64
_njit: Any = numba.njit  # its published types leave out the options that we need


class Dispatcher(Protocol):
    """What numba makes of a function, as far as we use it beyond calling it."""

    overloads: dict[Any, Any]
    py_func: Callable[..., Any]

    def __call__(self, *args: Any) -> Any:  # noqa: ANN401  as the function that it stands for
        """Run it."""

    def compile(self, signature: tuple[Any, ...]) -> object:
        """Compile, or load, for these argument types."""

    def disable_compile(self) -> None:
        """Refuse any other argument types from now on."""


def dispatcher(function: Callable[..., Any]) -> Dispatcher:
    """A decorated function, seen as what numba made of it."""
    return cast("Dispatcher", function)


def _compiled(function: F, *, part: bool = False, **options: bool) -> F:
    """What numba makes of a function, with options that depend on where the function lives.

    A user's own function is bounds-checked, and not cached: its module has no lasting name.
    Wrappers that nobody calls are not made, for they cost a third of the compile: only policies are
    called through a pointer, and what is private, or inside the simulator, only from compiled code.
    Such parts are not cached either: their callers hold them.
    """
    name, home = function.__name__, function.__module__
    if not home.startswith("adlro."):
        own: F = _njit(nogil=True, boundscheck=True, **options)(function)
        return own
    kernel = home.endswith("_kernel")
    policy = home.startswith("adlro.policies.") and not kernel
    inner = part or name.startswith("_") or (home.startswith("adlro.sim.") and kernel)
    options |= {"no_cfunc_wrapper": not policy, "no_cpython_wrapper": inner}
    if inner:
        inlined: F = _njit(nogil=True, pipeline_class=PartCompiler, **options)(function)
        return inlined
    made: Any = _njit(nogil=True, **options)(function)
    made._cache = FunctionCache(function)  # numba's own goes by path, and trusts every entry
    kept: F = made
    return kept


def njit(function: F) -> F:
    """Compile on first use, cached, without the interpreter lock; for code that makes no arrays.

    Reference counts are left out (`_nrt=False`) and calls are inlined by LLVM (`forceinline`): on a
    dozen array arguments a call, counting and passing them cost more than the simulation itself.
    Code that needs new arrays uses `njit_allocating`.
    """
    return _compiled(function, _nrt=False, forceinline=True)


def njit_part(function: F) -> F:
    """As `njit`, for what only compiled code calls, though neither name nor home says so."""
    return _compiled(function, part=True, _nrt=False, forceinline=True)


def njit_apart(function: F) -> F:
    """As `njit`, but not inlined: for what is called rarely, so that its callers stay small.

    It has to say so: a compiled function takes the options of its first caller otherwise.
    """
    return _compiled(function, _nrt=False, forceinline=False)


def njit_allocating(function: F) -> F:
    """As `njit`, for code that makes arrays of its own; its callers need not be allocating."""
    return _compiled(function, _nrt=True, forceinline=False)
