"""Reading and writing files: atomic writes, reads of limited size, .npz files of plain numbers.

New content is written to a temporary file in the same folder, flushed to the disk and renamed. So a
reader finds either the old content or the complete new one, whenever the process or the machine
stops.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adlro.errors import OutputError

_MOST_ARRAYS = 4 << 30  # bytes of all arrays of a file
BROKEN = (  # what `unpack_arrays` can raise for a file that is truncated, changed or malicious
    zipfile.BadZipFile, struct.error, EOFError, OSError, RuntimeError, ValueError, TypeError,
    KeyError, zlib.error, NotImplementedError, MemoryError, SyntaxError, tokenize.TokenError,
)  # fmt: skip


def check_writable(path: Path | None) -> None:
    """Check before long work that its result can be written to a path; None = nothing to write.

    Raises:
        OutputError: the folder does not exist or is not writable, or the path is a folder.
    """
    if path is None:
        return
    try:
        folder = path.resolve().parent
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.stat()  # a loop of links is an error, a file that is not there yet is not
        if _is_special(path):
            return
        if path.is_dir():
            raise OutputError(f"{path}: is a folder; name a file")
        if not folder.is_dir():
            raise OutputError(f"{path}: there is no folder {str(path.parent)!r}; make it first")
        if not os.access(folder, os.W_OK):
            raise OutputError(f"{path}: the folder is not writable; choose another place")
        longest = os.pathconf(folder, "PC_NAME_MAX")
    except FileNotFoundError as exc:
        raise OutputError(f"{path}: the working folder is gone; change to another") from exc
    except (OSError, RuntimeError, ValueError) as exc:  # RuntimeError: a loop of links
        raise OutputError(f"{path}: cannot be written: {_reason(exc)}") from exc
    if len(os.fsencode(path.name)) > longest:
        raise OutputError(f"{path}: cannot be written: {os.strerror(errno.ENAMETOOLONG)}")


def _reason(exc: Exception) -> str:
    return (isinstance(exc, OSError) and exc.strerror) or str(exc)


def write_text(path: Path, text: str) -> None:
    """Replace the content of a file by a text, atomically.

    Raises:
        OutputError: the file cannot be written.
    """
    write_parts(path, [text])


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the content of a file by bytes, atomically.

    Raises:
        OutputError: the file cannot be written.
    """
    write_parts(path, [data])


def write_parts(path: Path, parts: Iterable[str | bytes]) -> None:
    """Replace the content of a file atomically by parts that are generated during the write.

    Text is written as UTF-8.

    Raises:
        OutputError: the file cannot be written.
    """
    check_writable(path)
    encoded = (part.encode() if isinstance(part, str) else part for part in parts)
    try:
        if _is_special(path):
            with path.open("wb") as file:
                file.writelines(encoded)
        else:
            _replace(path.resolve(), encoded)
    except OSError as exc:
        raise OutputError(f"{path}: cannot be written: {_reason(exc)}") from exc


def _is_special(path: Path) -> bool:
    """True for a device or a pipe, which is written to directly instead of replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _replace(path: Path, parts: Iterable[bytes]) -> None:
    beside = path.parent / f".adlro-{secrets.token_hex(8)}"  # a long name has no room for more
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # less the user's umask
    try:
        with open(handle, "wb") as file:  # noqa: PTH123  a handle has no path
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    _keep_name(path.parent)


def _keep_name(folder: Path) -> None:
    """Flush a folder to the disk, so that a file just renamed in it survives a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as exc:
        if exc.errno not in (errno.EINVAL, errno.EBADF):  # not every file system can
            raise
    finally:
        os.close(handle)


def open_bytes(path: Path) -> io.BufferedReader:
    """Open a file to read bytes; a pipe without a writer reads as empty instead of blocking.

    Raises:
        OSError: the file cannot be read, or is a folder.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    file = open(handle, "rb")  # noqa: PTH123, SIM115  a handle has no path; the caller closes it
    if stat.S_ISDIR(os.fstat(handle).st_mode):
        file.close()
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    os.set_blocking(handle, True)
    return file


def read_bytes(path: Path, most: int) -> bytes:
    """Return the content of a file of at most `most` bytes; a pipe is read to its end.

    Raises:
        OSError: the file cannot be read, or has more than `most` bytes.
    """
    with open_bytes(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB")
    return data


def pack_arrays(
    arrays: Mapping[str, NDArray[Any]], compression: int = zipfile.ZIP_DEFLATED
) -> bytes:
    """Return the bytes of an .npz file with these arrays in order; equal input, equal bytes."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # without a date
            entry.create_system, entry.compress_type = 3, compression  # 3: as on Unix
            data = io.BytesIO()
            np.lib.format.write_array(
                data, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False
            )
            archive.writestr(entry, data.getvalue())
    return result.getvalue()


def unpack_arrays(
    data: bytes, what: str, names: Collection[str] | None = None
) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file: name -> array.

    Args:
        data: content of the file.
        what: kind of file, for error messages.
        names: names of the arrays that the file must hold, no more and no fewer; None = any.

    Raises one of BROKEN if the data is not an .npz file with these arrays.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        found = [entry.filename.removesuffix(".npy") for entry in entries]
        if names is not None and sorted(found) != sorted(names):
            raise ValueError(f"its arrays are not those of {what}")
        if sum(entry.file_size for entry in entries) > _MOST_ARRAYS:
            raise ValueError("its arrays are too large")
        arrays = {}
        for name in found if names is None else names:
            with archive.open(f"{name}.npy") as file:
                arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
    return arrays
