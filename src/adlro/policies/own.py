"""A user's own policy: loaded from a file, and its mistakes named by file and line."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from numba.core.errors import NumbaError

from adlro.errors import AdlroError, PolicyError
from adlro.sim.signature import compile_decide
from adlro.sim.simulator import is_compiled

ARGUMENTS = (
    "now", "jobs", "est", "queue", "eligible", "running", "pools", "nodes", "gpus", "params",
    "memory", "out",
)  # fmt: skip


def _place(exc: BaseException, path: str) -> str:
    """file:line of the innermost frame in the user's file."""
    lines = [f.lineno for f in traceback.extract_tb(exc.__traceback__) if f.filename == path]
    return f"{path}:{lines[-1]}" if lines else path


@contextlib.contextmanager
def mistakes(module: ModuleType) -> Iterator[None]:
    """Turn what a user's module raises into one line with file and line; ours keep theirs."""
    path = str(module.__file__)
    try:
        yield
    except AdlroError:
        raise
    except Exception as exc:
        if path.startswith(str(Path(__file__).parent)):
            raise
        raise PolicyError(f"{_place(exc, path)}: {type(exc).__name__}: {exc}") from exc


def _execute(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"adlro_own_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise PolicyError(f"{path}: is not a Python file; a policy's name ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        with mistakes(module):
            spec.loader.exec_module(module)
    except PolicyError as exc:
        cause = exc.__cause__
        if isinstance(cause, SyntaxError):
            raise PolicyError(f"{path}:{cause.lineno}: {cause.msg}") from cause
        raise
    return module


def _compiled(decide: Any, path: Path) -> Any:  # noqa: ANN401  numba's types are untyped
    """The user's dispatcher with array bounds checked, compiled for the one signature."""
    checked = numba.njit(boundscheck=True, nogil=True)(decide.py_func)
    try:
        return compile_decide(checked)
    except NumbaError as exc:
        text = str(exc)
        lines = re.findall(rf'File "[^"]*{re.escape(path.name)}", line (\d+)', text)
        line = lines[-1] if lines else str(decide.py_func.__code__.co_firstlineno)
        said = [row.strip() for row in text.splitlines() if row.strip()]
        reason = next((row for row in said if not row.startswith("Failed in")), said[0])
        raise PolicyError(f"{path}:{line}: decide cannot be compiled: {reason}") from exc


def load(path: Path) -> ModuleType:
    """Import a file with a `decide` and check its signature.

    Raises:
        PolicyError: there is no such file, it fails, or its `decide` cannot be called as it must.
    """
    if not path.is_file():
        raise PolicyError(f"{path}: there is no such file")
    module = _execute(path.resolve())
    decide = getattr(module, "decide", None)
    call = f"decide({', '.join(ARGUMENTS)})"
    if not callable(decide):
        raise PolicyError(f"{path}: has no function 'decide'; define {call}")
    plain = decide.py_func if is_compiled(decide) else decide
    try:
        inspect.signature(plain).bind(*ARGUMENTS)
    except TypeError as exc:
        line = getattr(getattr(plain, "__code__", None), "co_firstlineno", 1)
        raise PolicyError(
            f"{path}:{line}: decide must take {len(ARGUMENTS)} arguments: {call}"
        ) from exc
    if is_compiled(decide):
        module.decide = _compiled(decide, path)  # type: ignore[attr-defined]
    return module
