"""Results on disk: written beside and renamed, so that no file is ever half there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from adlro.errors import OutputError


def check_writable(path: Path | None) -> None:
    """Refuse before the work starts what could not be written after it.

    Raises:
        OutputError: the folder does not exist or is not writable, or the path is a folder.
    """
    if path is None or _is_special(path):
        return
    folder = path.resolve().parent
    if path.is_dir():
        raise OutputError(f"{path}: is a folder; name a file")
    if not folder.is_dir():
        raise OutputError(f"{path}: there is no folder {str(path.parent)!r}; make it first")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{path}: the folder is not writable; choose another place")


def write_text(path: Path, text: str) -> None:
    """Write a whole file or nothing.

    Raises:
        OutputError: the file cannot be written.
    """
    write_parts(path, [text])


def write_parts(path: Path, parts: Iterable[str]) -> None:
    """Write a whole file, part by part as they are made, or nothing.

    Raises:
        OutputError: the file cannot be written.
    """
    check_writable(path)
    try:
        if _is_special(path):
            with path.open("w", encoding="utf-8") as file:
                file.writelines(parts)
        else:
            _replace(path.resolve(), parts)
    except OSError as exc:
        raise OutputError(f"{path}: cannot be written: {exc.strerror}") from exc


def write_bytes(path: Path, data: bytes) -> None:
    """Write a whole file or nothing.

    Raises:
        OutputError: the file cannot be written.
    """
    check_writable(path)
    try:
        if _is_special(path):
            path.write_bytes(data)
        else:
            _replace(path.resolve(), [data])
    except OSError as exc:
        raise OutputError(f"{path}: cannot be written: {exc.strerror}") from exc


def _is_special(path: Path) -> bool:
    """True for a device or a pipe: there is nothing to rename, it is written to as it is."""
    try:
        return path.exists() and not path.is_file() and not path.is_dir()
    except OSError as exc:
        raise OutputError(f"{path}: cannot be written: {exc.strerror}") from exc


def _replace(path: Path, parts: Iterable[str | bytes]) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".adlro-")
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(part.encode() if isinstance(part, str) else part for part in parts)
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
