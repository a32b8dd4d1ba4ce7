"""Reader and writer of ADLRO's own format: an .npz file with columns as arrays and a JSON header.

The file holds only numbers and text. Nothing in it is executed, and everything is checked before
use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from adlro import files
from adlro.errors import TraceError
from adlro.model.history import NUMBERS, WHOLE_NUMBERS, WORDS, Header, History
from adlro.model.state import WHOLE
from adlro.workloads.formats.format import Format, Head
from adlro.workloads.formats.gather import MOST_GPUS, ReadOptions, limits
from adlro.workloads.formats.text_file import TextFile

_MOST = 4 << 30  # bytes of a file
_MARK = "adlro-history-3"
_BETWEEN = b"\0"  # words of a table; no word holds it


def _kinds() -> dict[str, str]:
    """Return the dtype of each array that holds one number for each job, by name."""
    kinds = dict.fromkeys(NUMBERS, "<f8")
    return kinds | dict.fromkeys(WHOLE_NUMBERS, "<i8") | dict.fromkeys(WORDS, "<i4")


def _texts() -> tuple[str, ...]:
    """Return the names of the arrays that hold text as bytes."""
    return ("header", "mark", "ids", *(f"{name}_words" for name in WORDS))


def pack(history: History) -> bytes:
    """Return a history as the content of a file; the same history gives the same bytes."""
    texts = {
        "mark": _MARK.encode(),
        "header": history.header.model_dump_json().encode(),
        "ids": _BETWEEN.join(one.encode() for one in history.id),
    }
    for name in WORDS:
        texts[f"{name}_words"] = _BETWEEN.join(word.encode() for word in history.tables[name])
    columns: dict[str, NDArray[Any]] = {
        name: getattr(history, name).astype(kind) for name, kind in _kinds().items()
    }
    columns |= {name: np.frombuffer(texts[name], np.uint8) for name in _texts()}
    return files.pack_arrays(columns)


def _arrays(data: bytes, wanted: dict[str, str]) -> dict[str, NDArray[Any]]:
    """Return the arrays `wanted` (name -> dtype) of a file.

    Raises:
        One of files.BROKEN: the file is damaged, or an array is missing or of another dtype or
        shape.
    """
    found = files.unpack_arrays(data, "a history", wanted)
    for name, kind in wanted.items():
        if found[name].dtype != np.dtype(kind) or found[name].ndim != 1:
            raise ValueError(f"{name!r} is not a column of type {kind}")
    return found


def _words(array: NDArray[Any]) -> tuple[str, ...]:
    data = array.tobytes()
    return tuple(part.decode() for part in data.split(_BETWEEN)) if data else ()


def _refuse_absurd(columns: dict[str, NDArray[Any]]) -> None:
    """Raise ValueError if a column holds a number that cannot be.

    The limits are twice those of other readers, since times are stored relative to the origin.
    """
    for name in NUMBERS:
        least, most = limits(name)
        if ((columns[name] < 2 * least) | (columns[name] > 2 * most)).any():
            raise ValueError(f"{name!r} holds a number that cannot be")
    for name in WHOLE_NUMBERS:
        if columns[name].min() < -1 or columns[name].max() > MOST_GPUS * WHOLE:
            raise ValueError(f"{name!r} holds a number that cannot be")


def _history(found: dict[str, NDArray[Any]]) -> History:
    if found["mark"].tobytes() != _MARK.encode():
        raise ValueError("it was written by another version of adlro")
    header = Header.model_validate_json(found["header"].tobytes())
    columns = {name: found[name] for name in _kinds()}
    tables = {name: _words(found[f"{name}_words"]) for name in WORDS}
    ids, count = _words(found["ids"]), len(columns["submit_s"])
    if len({len(column) for column in columns.values()}) > 1 or len(ids) not in (0, count):
        raise ValueError("its columns are not of one length")
    if count == 0 or (columns["lost"] == 1).all():
        raise ValueError("there are no jobs in it")
    _refuse_absurd(columns)
    for name in WORDS:
        if columns[name].min() < -1 or columns[name].max() >= len(tables[name]):
            raise ValueError(f"{name!r} holds a code without a word")
    return History(header=header, id=ids, tables=tables, **columns)


def _read(source: TextFile, options: ReadOptions) -> History:
    """Read a history from a file; the options have no effect."""
    del options
    data = source.everything(_MOST)
    try:
        return _history(_arrays(data, _kinds() | dict.fromkeys(_texts(), "|u1")))
    except ValidationError as exc:
        raise TraceError(f"{source.path}: its header is not that of a history") from exc
    except files.BROKEN as exc:
        why = str(exc) if isinstance(exc, ValueError) else "it is cut short or changed"
        raise TraceError(
            f"{source.path}: is not a history of adlro: {why}; convert the source anew"
        ) from exc


def _recognises(head: Head) -> bool:
    return head.raw.startswith(b"PK\x03\x04")


FORMAT = Format("adlro", "adlro's own .npz file (trace convert)", _recognises, _read)
