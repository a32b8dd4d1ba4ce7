"""Plain arrays as the bytes of an .npz file: no objects, no dates; nothing in it is evaluated."""

from __future__ import annotations

import io
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST = 4 << 30  # bytes of all arrays
BROKEN = (  # what reading a file can raise that is cut short, changed or made to do harm
    zipfile.BadZipFile, struct.error, EOFError, OSError, RuntimeError, ValueError, TypeError,
    KeyError, zlib.error, NotImplementedError, MemoryError, SyntaxError, tokenize.TokenError,
)  # fmt: skip


def packed(arrays: Mapping[str, NDArray[Any]], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The file: entries in their order; the same arrays make the same bytes everywhere."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # without a date
            entry.create_system, entry.compress_type = 3, compression  # 3: as on Unix
            data = io.BytesIO()
            np.lib.format.write_array(
                data, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False
            )
            archive.writestr(entry, data.getvalue())
    return result.getvalue()


def unpacked(data: bytes, names: Collection[str], what: str) -> dict[str, NDArray[Any]]:
    """The arrays of a file that must hold these and no others; `what` it is, for errors.

    Raises one of BROKEN if it does not.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        if sorted(entry.filename for entry in entries) != sorted(f"{name}.npy" for name in names):
            raise ValueError(f"its arrays are not those of {what}")
        if sum(entry.file_size for entry in entries) > _MOST:
            raise ValueError("its arrays are too large")
        found = {}
        for name in names:
            with archive.open(f"{name}.npy") as file:
                found[name] = np.lib.format.read_array(file, allow_pickle=False)
    return found
