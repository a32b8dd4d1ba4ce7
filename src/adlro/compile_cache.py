"""A disk cache of compiled code that is never stale: one file per function and argument types.

numba does not notice when a callee or a constant in another module changes, and would run the old
code. Therefore the cache folder is named by a hash over all modules with compiled functions and
every module of ADLRO that these import: an edit of one of them starts an empty folder, an edit of
any other file changes nothing. Installations with the same source share a folder. Each cache file
is written under a temporary name and renamed, and begins with a checksum: a damaged file is deleted
and its function compiled again.
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

_KEPT = 4  # number of cache folders of other versions to keep, the most recently used ones
_SUM = 16  # bytes of the checksum in front of an entry
_ROOT = b"adlro"
_HOME = _ROOT + b".compiled"
_DECORATOR = re.compile(rb"njit\w*")
# Regular expressions, because parsing every module takes half a second. Text in a docstring that
# looks like an import is harmless: one more module counts. Imports within functions count too.
_FROM = re.compile(rb"from\s+(%b[\w.]*|\.[\w.]*)\s+import\s+(\([^)]*\)|[^\n;]*)" % _ROOT)
_IMPORT = re.compile(rb"import\s+(%b[\w.]*)" % _ROOT)
_WORD = re.compile(rb"\w+")
_FOR_TYPES = re.compile(rb"^if TYPE_CHECKING:\n(?:[ \t][^\n]*\n|\n)+", re.MULTILINE)  # never run


class _Module(NamedTuple):
    text: bytes
    package: bytes  # the package that `from .` refers to


def _modules(package: Path) -> dict[bytes, _Module]:
    """Read all modules below a folder: full module name (`adlro.…`) -> source and package."""
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
    """Return the absolute name of the module in `from <name> import`.

    One leading dot stands for `package`, the package of the importing module; two for its parent.
    """
    rest = name.lstrip(b".")
    if rest == name:
        return name
    parents = package.split(b".")
    base = parents[: len(parents) - (len(name) - len(rest) - 1)]
    return b".".join([*base, rest] if rest else base)


def _imports(module: _Module) -> Iterator[tuple[bytes, list[bytes]]]:
    """The modules of ADLRO that a module imports, each with the names imported from it."""
    text = _FOR_TYPES.sub(b"", module.text)
    for source, names in _FROM.findall(text):
        yield _absolute(source, module.package), _WORD.findall(names)
    for source in _IMPORT.findall(text):
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
    """Map the name of every module that compiled code may depend on to its source.

    These are the modules that import a decorator from `adlro.compiled`, and all modules of ADLRO
    that they import, directly or indirectly.
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
    """Hash over the names and sources of all modules that compiled code depends on."""
    digest = hashlib.blake2b(digest_size=8)
    for name, text in closure(package).items():
        digest.update(name.encode() + b"\0" + text + b"\0")
    return digest.hexdigest()


def cache_folder() -> Path:
    """Return the folder for the compiled code of this version of the source.

    It lies below $ADLRO_CACHE_DIR, else $XDG_CACHE_HOME, else ~/.cache. It can be deleted at any
    time.
    """
    chosen = os.environ.get("ADLRO_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(chosen) if chosen else Path("~/.cache").expanduser()
    return base / "adlro-numba" / source_hash(Path(__file__).parent)


def cache_state() -> str:
    """Return a line for the user: the number of compiled functions in the cache, and its folder."""
    folder = cache_folder()
    count = sum(1 for _ in folder.rglob("*.nbc")) if folder.is_dir() else 0
    return f"{count} compiled functions in {folder}" if count else f"empty ({folder})"


def _prune(folder: Path) -> None:
    """Delete the folders of other source versions, except the _KEPT most recently used ones."""
    names = re.compile("[0-9a-f]{16}")
    others = [p for p in folder.parent.iterdir() if p != folder and names.fullmatch(p.name)]
    for old in sorted(others, key=lambda p: p.stat().st_mtime, reverse=True)[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


@functools.cache
def _folder() -> Path:
    """Return the cache folder, created if missing; a temporary folder if that is not possible."""
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
    """Create a folder that is deleted when this process exits; says so on standard error."""
    folder = Path(tempfile.mkdtemp(prefix="adlro-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    line = (
        f"adlro: the compile cache cannot be written ({reason}); this run keeps its own in {folder}"
    )
    sys.stderr.write(line + "\n")
    return folder


def _load(path: Path) -> Any:  # noqa: ANN401  whatever numba wrote
    """Content of a cache file, or None if it is missing or damaged; a damaged file is deleted."""
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
    """Within this context, call `tell` before each compilation of a function that is not cached."""
    _watching.append(tell)
    try:
        yield
    finally:
        _watching.remove(tell)


class FunctionCache:
    """Cache files of one function, with the interface that numba's dispatchers call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._home = function.__module__
        self._name = f"{function.__qualname__}-{function.__code__.co_firstlineno}"

    def _path(self, signature: object, codegen: Any) -> Path:  # noqa: ANN401  numba has no types
        """Cache file for a signature, numba version, Python version and processor type."""
        import numba

        key = repr((signature, codegen.magic_tuple(), numba.__version__, sys.version_info[:2]))
        name = f"{self._name}.{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}.nbc"
        return _folder() / self._home / name

    def load_overload(self, signature: object, context: Any) -> Any:  # noqa: ANN401  numba has no types
        """Load the code compiled for these argument types; None = numba has to compile it."""
        from numba.core.compiler import CompileResult

        context.refresh()
        content = _load(self._path(signature, context.codegen()))
        if content is None:  # numba compiles it now
            for tell in _watching:
                tell()
            return None
        return CompileResult._rebuild(context, *content)

    def save_overload(self, signature: object, result: Any) -> None:  # noqa: ANN401  numba has no types
        """Write compiled code to its cache file; if that fails, to a folder of this process."""
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
