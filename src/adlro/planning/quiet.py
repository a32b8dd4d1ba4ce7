"""Solvers that cannot be told to be quiet: what they write to standard output is thrown away."""

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator

_LOCK = threading.Lock()
_CLOSED = -1
_inside: list[int] = []  # the true standard output, once for each thread within `hushed`


def _true_output() -> int:
    """A second name of standard output, or _CLOSED."""
    try:
        return os.dup(1)
    except OSError:
        return _CLOSED


def _enter() -> None:
    with _LOCK:
        if _inside:
            _inside.append(_inside[0])
            return
        true = _true_output()
        if true != _CLOSED:
            _flush()
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.close(nowhere)
        _inside.append(true)


def _leave() -> None:
    with _LOCK:
        true = _inside.pop()
        if not _inside and true != _CLOSED:
            _flush()
            os.dup2(true, 1)
            os.close(true)


def _flush() -> None:
    """Let C's own buffer go where it belongs before the file behind it changes."""
    ctypes.CDLL(None).fflush(None)


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Throw away what C code writes to standard output; for several threads at once too.

    HiGHS prints a line of its own from deep inside some integer programs, whatever its options say.
    """
    _enter()
    try:
        yield
    finally:
        _leave()
