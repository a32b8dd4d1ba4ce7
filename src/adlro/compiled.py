"""Numba, with a cache that cannot serve stale code.

A cached function whose callee, or constant, changed in another module silently runs the old code.
So the cache lives in a folder named by a hash over the modules that hold compiled functions and all
that these import of ours: an edit there starts an empty folder, an edit elsewhere changes nothing.
Every compiled function of ADLRO is decorated with `njit` from here, never with numba's own.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

_KEPT = 4  # cache folders of other versions that are left alone, most recently used first


_ROOT = b"adlro"
_HOME = _ROOT + b".compiled"
_DECORATOR = re.compile(rb"njit\w*")
# By patterns, for to parse all takes half a second. What only looks like an import, in a docstring,
# does no harm: one module more counts. Imports within functions count like those at the top.
_FROM = re.compile(rb"from\s+(%b[\w.]*|\.[\w.]*)\s+import\s+(\([^)]*\)|[^\n;]*)" % _ROOT)
_IMPORT = re.compile(rb"import\s+(%b[\w.]*)" % _ROOT)
_WORD = re.compile(rb"\w+")


class _Module(NamedTuple):
    text: bytes
    package: bytes  # the one that `from .` stands for


def _modules(package: Path) -> dict[bytes, _Module]:
    """Every module below a folder, by the name under which it is imported from `adlro`."""
    found = {}
    for folder, _, files in os.walk(package):
        home = b".".join([_ROOT, *map(str.encode, Path(folder).relative_to(package).parts)])
        for file in files:
            if not file.endswith(".py"):
                continue
            with open(f"{folder}/{file}", "rb") as source:  # noqa: PTH123  a Path takes thrice as long
                text = source.read()
            stem = file.removesuffix(".py").encode()
            found[home if stem == b"__init__" else home + b"." + stem] = _Module(text, home)
    return found


def _absolute(name: bytes, package: bytes) -> bytes:
    """What `from <name> import` within a package names: one dot is the package, two its parent."""
    rest = name.lstrip(b".")
    if rest == name:
        return name
    parents = package.split(b".")
    base = parents[: len(parents) - (len(name) - len(rest) - 1)]
    return b".".join([*base, rest] if rest else base)


def _imports(module: _Module) -> Iterator[tuple[bytes, list[bytes]]]:
    """Every module of ours that is named in an import, with the names that are taken from it."""
    for source, names in _FROM.findall(module.text):
        yield _absolute(source, module.package), _WORD.findall(names)
    for source in _IMPORT.findall(module.text):
        yield source, []


def _has_compiled(module: _Module) -> bool:
    if b"compiled" not in module.text:
        return False
    for source, names in _imports(module):
        if source == _HOME and (not names or any(map(_DECORATOR.fullmatch, names))):
            return True
        if source == _ROOT and b"compiled" in names:
            return True
    return False


def closure(package: Path) -> dict[str, bytes]:
    """The text of each module that compiled code may depend on, by its name.

    These are the modules that take a decorator from here, and whatever of ours they import,
    directly or not.
    """
    known = _modules(package)
    wanted = [name for name, module in known.items() if _has_compiled(module)]
    found = set(wanted)
    while wanted:
        for source, names in _imports(known[wanted.pop()]):
            near = {source, *(source + b"." + name for name in names)} & known.keys()
            wanted += near - found
            found |= near
    return {name.decode(): known[name].text for name in sorted(found)}


def source_hash(package: Path) -> str:
    """Fingerprint of all that compiled code depends on, by name and content."""
    digest = hashlib.blake2b(digest_size=8)
    for name, text in closure(package).items():
        digest.update(name.encode() + b"\0" + text + b"\0")
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

from adlro.codegen import PartCompiler  # noqa: E402  it imports numba too

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


def _options(function: Callable[..., Any], *, part: bool = False, **more: bool) -> dict[str, Any]:
    """A user's own function is bounds-checked, and not cached: its module has no lasting name.

    Wrappers that nobody calls are not made, for they cost a third of the compile: only policies are
    called through a pointer, and what is private, or inside the simulator, only from compiled code.
    Such parts are not cached either: their callers hold them.
    """
    name, home = function.__name__, function.__module__
    if not home.startswith("adlro."):
        return {"nogil": True, "boundscheck": True, **more}
    kernel = home.endswith("_kernel")
    policy = home.startswith("adlro.policies.") and not kernel
    inner = part or name.startswith("_") or (home.startswith("adlro.sim.") and kernel)
    wrappers = {"no_cfunc_wrapper": not policy, "no_cpython_wrapper": inner}
    if inner:
        return {"nogil": True, "pipeline_class": PartCompiler, **wrappers, **more}
    return {"nogil": True, "cache": True, **wrappers, **more}


def njit(function: F) -> F:
    """Compile on first use, cached, without the interpreter lock; for code that makes no arrays.

    Reference counts are left out (`_nrt=False`) and calls are inlined by LLVM (`forceinline`): on a
    dozen array arguments a call, counting and passing them cost more than the simulation itself.
    Code that needs new arrays uses `njit_allocating`.
    """
    compiled: F = _njit(**_options(function, _nrt=False, forceinline=True))(function)
    return compiled


def njit_part(function: F) -> F:
    """As `njit`, for what only compiled code calls, though neither name nor home says so."""
    compiled: F = _njit(**_options(function, part=True, _nrt=False, forceinline=True))(function)
    return compiled


def njit_apart(function: F) -> F:
    """As `njit`, but not inlined: for what is called rarely, so that its callers stay small.

    It has to say so: a compiled function takes the options of its first caller otherwise.
    """
    compiled: F = _njit(**_options(function, _nrt=False, forceinline=False))(function)
    return compiled


def njit_allocating(function: F) -> F:
    """As `njit`, for code that makes arrays of its own; its callers need not be allocating."""
    compiled: F = _njit(**_options(function, _nrt=True, forceinline=False))(function)
    return compiled
