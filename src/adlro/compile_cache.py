"""A cache of compiled code that cannot be stale: one file a function and argument types.

A cached function whose callee, or constant, changed in another module silently runs the old code.
So the cache lies in a folder named by a hash over the modules that hold compiled functions and all
that these import of ours: an edit there starts an empty folder, an edit elsewhere changes nothing.
Installations with the same source share it, wherever they lie. An entry is written beside and
renamed, and carries a checksum: one that is damaged is dropped and compiled again.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import pickle
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

_KEPT = 4  # cache folders of other versions that are left alone, most recently used first
_SUM = 16  # bytes of the checksum before an entry
_ROOT = b"adlro"
_HOME = _ROOT + b".compiled"
_DECORATOR = re.compile(rb"njit\w*")
# By patterns: to parse every module takes half a second. Text that only looks like an import,
# in a docstring, does no harm: one module more counts. Imports within functions count like others.
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
    """The module that `from <name> import` names: one dot is the package, two are its parent."""
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

    These are the modules that take a decorator from `adlro.compiled`, and whatever of ours they
    import, directly or not.
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
    """Delete all but the latest few folders of other versions."""
    names = re.compile("[0-9a-f]{16}")
    others = [p for p in folder.parent.iterdir() if p != folder and names.fullmatch(p.name)]
    for old in sorted(others, key=lambda p: p.stat().st_mtime, reverse=True)[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


@functools.cache
def _folder() -> Path:
    """This version's folder, made ready; a temporary one where it cannot be written."""
    try:
        folder = cache_folder()
        fresh = not folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        if fresh:
            _prune(folder)
    except (OSError, RuntimeError) as exc:  # no home, or one that is read-only
        return _temporary_folder(str(exc))
    return folder


@functools.cache
def _temporary_folder(reason: str) -> Path:
    """A folder for this process alone, with a line that says so."""
    folder = Path(tempfile.mkdtemp(prefix="adlro-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    line = (
        f"adlro: the compile cache cannot be written ({reason}); this run keeps its own in {folder}"
    )
    sys.stderr.write(line + "\n")
    return folder


def _load(path: Path) -> Any:  # noqa: ANN401  whatever numba wrote
    """The content of an entry; None where there is none, or where it is damaged and deleted."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if hashlib.blake2b(data[_SUM:], digest_size=_SUM).digest() == data[:_SUM]:
        with contextlib.suppress(pickle.UnpicklingError, AttributeError, ImportError):
            return pickle.loads(data[_SUM:])
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def _save(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123  a handle has no path
            file.write(hashlib.blake2b(content, digest_size=_SUM).digest() + content)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


_watching: list[Callable[[], object]] = []  # called before each compilation


@contextlib.contextmanager
def on_compiling(tell: Callable[[], object]) -> Iterator[None]:
    """Call `tell` whenever a function is not in the cache and is about to be compiled."""
    _watching.append(tell)
    try:
        yield
    finally:
        _watching.remove(tell)


class FunctionCache:
    """The cache of one function, as numba's dispatchers call it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._home = function.__module__
        self._name = f"{function.__qualname__}-{function.__code__.co_firstlineno}"

    def _path(self, signature: object, codegen: Any) -> Path:  # noqa: ANN401  numba has no types
        """One file for each signature, numba, Python, and kind of processor."""
        import numba

        key = repr((signature, codegen.magic_tuple(), numba.__version__, sys.version_info[:2]))
        name = f"{self._name}.{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}.nbc"
        return _folder() / self._home / name

    def load_overload(self, signature: object, context: Any) -> Any:  # noqa: ANN401
        """What was compiled for these argument types, or None."""
        from numba.core.compiler import CompileResult

        context.refresh()
        content = _load(self._path(signature, context.codegen()))
        if content is None:  # numba compiles it now
            for tell in _watching:
                tell()
            return None
        return CompileResult._rebuild(context, *content)

    def save_overload(self, signature: object, result: Any) -> None:  # noqa: ANN401
        """Keep what was compiled; on a full disk in a folder of this process."""
        from numba.core.serialize import dumps

        if result.library.has_dynamic_globals:  # it holds addresses of this process
            return
        path = self._path(signature, result.codegen)
        content = dumps(result._reduce())
        try:
            _save(path, content)
        except OSError as exc:
            with contextlib.suppress(OSError):
                _save(_temporary_folder(exc.strerror or str(exc)) / self._home / path.name, content)
