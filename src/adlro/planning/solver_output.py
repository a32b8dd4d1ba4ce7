"""Discarding the output of solvers whose C code prints lines that no option turns off.

Only C's own stream `stdout` is replaced. The file behind standard output stays open, so nothing
that Python or another thread writes meanwhile is lost.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import os
import sys
import threading
from collections.abc import Iterator
from typing import NamedTuple

_LOCK = threading.Lock()
_inside: list[int | None] = []  # C's standard output, once for each thread within `hushed`


class _Streams(NamedTuple):
    current: ctypes.c_void_p  # C's variable `stdout`
    nowhere: int  # a stream that throws away what it is given


@functools.cache
def _streams() -> _Streams | None:
    """C's variable `stdout` and a stream that discards; None where it cannot be replaced (musl)."""
    library = ctypes.CDLL(None)
    is_mac = sys.platform == "darwin"
    if not is_mac and not hasattr(library, "gnu_get_libc_version"):
        return None
    with open(os.devnull, "wb") as file:  # noqa: PTH123  a device, not a path of the user's
        handle = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 3)  # never that of a closed output
    library.fdopen.restype = ctypes.c_void_p
    nowhere = library.fdopen(handle, b"w")
    current = ctypes.c_void_p.in_dll(library, "__stdoutp" if is_mac else "stdout")
    return _Streams(current, nowhere) if nowhere else None


def _enter(streams: _Streams) -> None:
    with _LOCK:
        _inside.append(_inside[0] if _inside else streams.current.value)
        streams.current.value = streams.nowhere


def _leave(streams: _Streams) -> None:
    with _LOCK:
        true = _inside.pop()
        if not _inside:
            streams.current.value = true


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Within this context, discard what C code prints; several threads may use it at once.

    HiGHS prints a line in some integer programs, whatever its options say: when it has to repair a
    solution that it mapped back from the presolved program.
    """
    streams = _streams()
    if streams is None:
        yield
        return
    _enter(streams)
    try:
        yield
    finally:
        _leave(streams)
