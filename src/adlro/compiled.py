"""Numba, with a cache that cannot serve stale code.

A cached function whose callee changed in another module silently runs the old code. So the cache
lives in a folder named by a hash over our source files: an edit starts an empty folder. Only the
topmost layers are left out: nothing there is compiled, and nothing that is may import them.
Every compiled function of ADLRO is decorated with `njit` from here, never with numba's own.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

NOT_COMPILED = ("cli", "evaluate")  # folders without compiled code
_KEPT = 4  # cache folders of other versions that are left alone, most recently used first


def source_hash(package: Path) -> str:
    """Fingerprint of the .py files below a folder, by name and content."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] in NOT_COMPILED:
            continue
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def cache_folder() -> Path:
    """Folder of this version's compiled code; its parent is the user's to choose and to delete."""
    chosen = os.environ.get("ADLRO_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(chosen) if chosen else Path("~/.cache").expanduser()
    return base / "adlro-numba" / source_hash(Path(__file__).parent)


def cache_state() -> str:
    """One phrase for people: how many compiled functions the cache holds, and where."""
    folder = cache_folder()
    count = sum(1 for _ in folder.rglob("*.nbc")) if folder.is_dir() else 0
    return f"{count} compiled functions in {folder}" if count else f"empty ({folder})"


def _prune(folder: Path) -> None:
    names = re.compile("[0-9a-f]{16}")
    others = [p for p in folder.parent.iterdir() if p != folder and names.fullmatch(p.name)]
    for old in sorted(others, key=lambda p: p.stat().st_mtime, reverse=True)[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


def _prepare() -> Path:
    folder = cache_folder()
    try:
        fresh = not folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        if fresh:
            _prune(folder)
    except (OSError, RuntimeError):  # no home, or one that is read-only: for this process alone
        folder = Path(tempfile.mkdtemp(prefix="adlro-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


os.environ["NUMBA_CACHE_DIR"] = str(_prepare())

import numba  # noqa: E402  the cache folder must be set before numba is first imported

vars(numba.config)["CACHE_DIR"] = os.environ["NUMBA_CACHE_DIR"]  # if it was imported earlier
wide: Any = (
    np.int64
)  # in compiled code: a constant or another width is a type, and a compile, apart
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


def _options(function: Callable[..., Any], **more: bool) -> dict[str, bool]:
    """A user's own function is bounds-checked, and not cached: its module has no lasting name.

    Wrappers that nobody calls are not made, for they cost a third of the compile: only policies are
    called through a pointer, and what is private, or inside the simulator, only from compiled code.
    """
    name, home = function.__name__, function.__module__
    if not home.startswith("adlro."):
        return {"nogil": True, "boundscheck": True, **more}
    kernel = home.endswith("_kernel")
    policy = home.startswith("adlro.policies.") and not kernel
    inner = name.startswith("_") or (home.startswith("adlro.sim.") and kernel)
    wrappers = {"no_cfunc_wrapper": not policy, "no_cpython_wrapper": inner}
    return {"nogil": True, "cache": True, **wrappers, **more}


def njit(function: F) -> F:
    """Compile on first use, cached, without the interpreter lock; for code that makes no arrays.

    Reference counts are left out (`_nrt=False`) and calls are inlined by LLVM (`forceinline`): on a
    dozen array arguments a call, counting and passing them cost more than the simulation itself.
    Code that needs new arrays uses `njit_allocating`.
    """
    compiled: F = _njit(**_options(function, _nrt=False, forceinline=True))(function)
    return compiled


def njit_apart(function: F) -> F:
    """As `njit`, but not inlined: for what is called rarely, so that its callers stay small."""
    compiled: F = _njit(**_options(function, _nrt=False))(function)
    return compiled


def njit_allocating(function: F) -> F:
    """As `njit`, for code that makes arrays of its own; its callers need not be allocating."""
    compiled: F = _njit(**_options(function, _nrt=True))(function)
    return compiled
