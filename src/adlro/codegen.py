"""Code generation for inlined functions: optimised only within their callers.

numba optimises every compiled function separately, generates machine code for it, and does both
again wherever it is inlined. For kernels made of a hundred small functions that takes a third of
the compile time. A *part*, a function called only from compiled code, is therefore stored as
unoptimised LLVM code, to be linked into its callers. The hook is numba's option `pipeline_class`.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _NoEngine:
    """Replacement for the execution engine of code that never runs by itself."""

    def set_env(self, name: str, env: object) -> None:
        """Do nothing: there is no machine code that reads the environment."""


class _PartLibrary(JITCodeLibrary):
    """LLVM code to be linked into the code of its callers."""

    def _optimize_final_module(self) -> None:
        """Do nothing: the callers optimise the code."""

    def _finalize_final_module(self) -> None:
        """Finish the library without generating machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """0, as there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> _NoEngine:
        """The object on which numba sets the environment of the machine code."""
        return _NoEngine()


class PartCompiler(Compiler):
    """numba's compiler for functions that no Python code calls."""

    # Any: the arguments of numba's compiler have no type hints.
    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:  # noqa: ANN401
        part = _PartLibrary(target.codegen(), "part") if library is None else library
        super().__init__(typing, target, part, *rest)
