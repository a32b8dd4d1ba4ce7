"""How our functions become machine code: a part is optimised where it is used, and only there.

numba optimises every compiled function by itself, turns it into machine code, and does both again
wherever it is inlined. For kernels made of a hundred small functions that is a third of the time
that compiling takes. A *part*, which only compiled code calls, is kept as numba wrote it for its
callers to take in. The way in is numba's own door for other compilers, `pipeline_class`.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _Nowhere:
    """Stands for the engine of code that is never run by itself."""

    def set_env(self, name: str, env: object) -> None:
        """Do nothing: there is no machine code that would look for it."""


class _PartLibrary(JITCodeLibrary):
    """Code to be linked into that of its callers."""

    def _optimize_final_module(self) -> None:
        """Leave it to the callers."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> _Nowhere:
        """Where numba would set the environment of the machine code."""
        return _Nowhere()


class PartCompiler(Compiler):
    """numba's compiler for functions that no Python code calls."""

    # Any: numba gives the arguments of its compiler no types.
    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:  # noqa: ANN401
        own = _PartLibrary(target.codegen(), "part") if library is None else library
        super().__init__(typing, target, own, *rest)
