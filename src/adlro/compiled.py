"""numba decorators with a compile cache that cannot serve stale code.

Every compiled function of ADLRO is decorated with `njit` (or a variant) from this module, never
with numba's own.
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
# Converts an integer to 64 bits, so that numba does not compile a callee again for a constant or
# for another width of integer.
wide: Any = np.int64
_njit: Any = numba.njit  # its type stubs lack the options that are used here


class Dispatcher(Protocol):
    """The attributes and methods of numba's dispatchers that ADLRO uses."""

    overloads: dict[Any, Any]
    py_func: Callable[..., Any]

    def __call__(self, *args: Any) -> Any:  # noqa: ANN401  as the compiled function
        """Call the compiled function."""

    def compile(self, signature: tuple[Any, ...]) -> object:
        """Compile the function for these argument types, or load the code from the cache."""

    def disable_compile(self) -> None:
        """From now on, accept only the argument types compiled so far."""


def dispatcher(function: Callable[..., Any]) -> Dispatcher:
    """Return the decorated function itself, with the static type of a numba dispatcher."""
    return cast("Dispatcher", function)


def _compiled(function: F, *, part: bool = False, **options: bool) -> F:
    """Return the numba dispatcher of a function, with options that depend on its module.

    A function from a user's file is bounds-checked, and not cached because its module has no stable
    name.

    Wrappers take a third of the compile time, so only those in use are generated: the C wrapper of
    policies, which the kernel calls through a pointer, and the Python wrapper of functions that
    Python code may call. Private functions, functions of the simulator's `*_kernel.py` modules and
    those with `part` are called only from compiled code. They have no Python wrapper and are not
    cached, because the compiled code of their callers contains them.
    """
    name, home = function.__name__, function.__module__
    if not home.startswith("adlro."):
        checked: F = _njit(nogil=True, boundscheck=True, **options)(function)
        return checked
    kernel = home.endswith("_kernel")
    policy = home.startswith("adlro.policies.") and not kernel
    inner = part or name.startswith("_") or (home.startswith("adlro.sim.") and kernel)
    options |= {"no_cfunc_wrapper": not policy, "no_cpython_wrapper": inner}
    if inner:
        inlined: F = _njit(nogil=True, pipeline_class=PartCompiler, **options)(function)
        return inlined
    made: Any = _njit(nogil=True, **options)(function)
    made._cache = FunctionCache(function)  # numba's cache is keyed by path and checks no content
    cached: F = made
    return cached


def njit(function: F) -> F:
    """Decorate a function that allocates no arrays: compiled on first use, cached, without the GIL.

    Reference counting is disabled (`_nrt=False`) and LLVM inlines the calls (`forceinline`): with a
    dozen array arguments per call, counting and calling would cost more than the simulation itself.
    Code that allocates arrays uses `njit_allocating`.
    """
    return _compiled(function, _nrt=False, forceinline=True)


def njit_part(function: F) -> F:
    """As `njit`, for a function that only compiled code calls although its name is public."""
    return _compiled(function, part=True, _nrt=False, forceinline=True)


def njit_apart(function: F) -> F:
    """As `njit`, but not inlined: for rarely called functions, so that their callers stay small.

    `forceinline=False` must be given: otherwise a function inherits the option of its first caller.
    """
    return _compiled(function, _nrt=False, forceinline=False)


def njit_allocating(function: F) -> F:
    """As `njit`, for code that allocates arrays; its callers may be plain `njit` functions."""
    return _compiled(function, _nrt=True, forceinline=False)
