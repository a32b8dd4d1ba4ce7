"""numba code generation for inlined functions, which are optimised only within their callers.

numba optimises every compiled function separately, generates machine code for it, and does both
again wherever it is inlined. For kernels made of a hundred small functions that takes a third of
the compile time. A *part*, a function called only from compiled code, is therefore stored as
unoptimised LLVM code, to be linked into its callers. numba's option `pipeline_class` selects the
compiler that does so.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _NoEngine:
    """Stand-in for numba's code generator object, for a library without machine code."""

    def set_env(self, name: str, env: object) -> None:
        """Do nothing: there is no machine code that reads the environment."""


class _PartLibrary(JITCodeLibrary):
    """A numba code library of unoptimised LLVM code, to be linked into the code of its callers."""

    def _optimize_final_module(self) -> None:
        """Do nothing: the callers optimise the code."""

    def _finalize_final_module(self) -> None:
        """Finish the library without generating machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0 instead of an address, as there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> _NoEngine:
        """The object on which numba sets the environment of machine code; here it ignores that."""
        return _NoEngine()


class PartCompiler(Compiler):
    """numba's compiler for functions that only compiled code calls; fills a `_PartLibrary`."""

    # Any: the arguments of numba's compiler have no type hints.
    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:  # noqa: ANN401  numba
        part = _PartLibrary(target.codegen(), "part") if library is None else library
        super().__init__(typing, target, part, *rest)
