"""Load a user's policy from a Python file, and report its errors with file and line."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numba

from adlro.errors import PolicyError
from adlro.model.view import View
from adlro.sim.signature import compile_decide
from adlro.sim.simulator import is_compiled

ARGUMENTS = ("view", "params", "memory", "out")
_FORMER = 12  # number of arguments of decide in versions without a view


@contextlib.contextmanager
def mistakes(path: Path | None, line: int = 0) -> Iterator[None]:
    """Turn exceptions raised by a user's file into a PolicyError with file and line.

    Args:
        path: the file's path as the user gave it; None = a policy of the package, whose exceptions
            are left as they are.
        line: line of its `decide`, reported for exceptions raised outside of the file.
    """
    try:
        yield
    except PolicyError as exc:
        if path is None or not line:
            raise
        raise PolicyError(f"{path}:{line}: {exc}") from exc
    except (Exception, SystemExit) as exc:
        if path is None:
            raise
        frames = traceback.extract_tb(exc.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path.resolve())]
        at = (lines or [line])[-1]
        where = f"{path}:{at}" if at else str(path)
        message = " ".join(str(exc).split())
        raise PolicyError(f"{where}: {type(exc).__name__}: {message}") from exc


def plain(decide: Callable[..., Any]) -> Callable[..., Any]:
    """Return the plain Python function of a decide, which may be compiled or not."""
    function: Callable[..., Any] = getattr(decide, "py_func", decide)
    return function


def first_line(decide: Callable[..., Any]) -> int:
    """Return the line on which a decide begins in its file."""
    code = getattr(plain(decide), "__code__", None)
    return code.co_firstlineno if code else 1


def _execute(path: Path) -> ModuleType:
    full = path.resolve()
    spec = importlib.util.spec_from_file_location(f"adlro_own_{path.stem}", full)
    if spec is None or spec.loader is None:
        raise PolicyError(f"{path}: is not a Python file; the name of a policy's file ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and numba look it up there
    with mistakes(path):
        try:
            spec.loader.exec_module(module)
        except SyntaxError as exc:
            raise PolicyError(f"{path}:{exc.lineno or 1}: {exc.msg}") from exc
        except SystemExit as exc:
            raise PolicyError(f"{path}: ends the program when it is imported") from exc
    return module


def _why(exc: Exception, function: Callable[..., Any]) -> tuple[str, int]:
    """Return the reason of numba's compile error in one sentence, and the line of its cause."""
    first = function.__code__.co_firstlineno
    if isinstance(exc, KeyError):  # numba raises it for a field that a record does not have
        source = inspect.getsource(function).splitlines()
        near = [i for i, row in enumerate(source) if re.search(rf"\b{exc.args[0]}\b", row)]
        return f"there is no field {exc.args[0]!r}", first + (near or [0])[0]
    text = re.sub(r"Record\(\[.*?\], \d+, True\)", "record", str(exc))  # their fields fill a page
    name = re.escape(Path(function.__code__.co_filename).name)
    lines = re.findall(rf'File "[^"]*{name}", line (\d+)', text)
    rows = [row.strip() for row in text.splitlines() if row.strip()]
    reason = next((row for row in rows if not row.startswith("Failed in")), rows[0])
    return reason, int(lines[-1]) if lines else first


def _check_bounds(module: ModuleType) -> None:
    """Recompile the user's functions with bounds checks: a bad index must not crash the process."""
    for name, value in list(vars(module).items()):
        if is_compiled(value) and value.py_func.__module__ == module.__name__:
            setattr(module, name, numba.njit(boundscheck=True, nogil=True)(value.py_func))


def _compile(decide: Callable[..., Any], path: Path) -> None:
    try:
        compile_decide(decide)
    except Exception as exc:
        reason, line = _why(exc, plain(decide))
        raise PolicyError(f"{path}:{line}: decide cannot be compiled: {reason}") from exc


def _advice(decide: Callable[..., Any], call: str) -> str:
    """Return a phrase that says how to correct a decide with the wrong arguments."""
    advice = f"decide takes {len(ARGUMENTS)} arguments: {call}"
    names = list(inspect.signature(plain(decide)).parameters)
    if len(names) == _FORMER:
        given = ", ".join(f"view.{name}" for name in View._fields[: _FORMER - 3])
        advice += f", not {_FORMER}; begin it with: {', '.join(names[: _FORMER - 3])} = {given}"
    return advice


def load(path: Path) -> ModuleType:
    """Import a user's file, check the arguments of its `decide`, and compile it if it is @njit.

    Raises:
        PolicyError: there is no such file, it raises an exception, or its `decide` is missing, has
            the wrong arguments or cannot be compiled.
    """
    try:
        if not path.is_file():
            raise PolicyError(f"{path}: there is no such file")
    except OSError as exc:
        raise PolicyError(f"{path}: cannot be read: {exc.strerror}") from exc
    module = _execute(path)
    decide = getattr(module, "decide", None)
    call = f"decide({', '.join(ARGUMENTS)})"
    if not callable(decide):
        raise PolicyError(f"{path}: has no function 'decide'; define {call}")
    try:
        inspect.signature(plain(decide)).bind(*ARGUMENTS)
    except TypeError as exc:
        raise PolicyError(f"{path}:{first_line(decide)}: {_advice(decide, call)}") from exc
    if is_compiled(decide):
        _check_bounds(module)
        _compile(module.decide, path)
    return module
