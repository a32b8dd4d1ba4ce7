"""The file of a memory: plain arrays in an .npz file, with a JSON header.

The file has numbers and text only. Nothing in it is evaluated, and all of it is checked before use.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from adlro.errors import ConfigError, TraceError
from adlro.features.hypervectors.learn_kernel import restore
from adlro.features.hypervectors.memory import HEAD, Memory, Size, empty
from adlro.features.hypervectors.schema import Kind, Role, Schema, Space, space_of
from adlro.files import BROKEN, pack_arrays, unpack_arrays
from adlro.model.record import Record

_SLOT_ARRAYS = ("patterns", "turns", "models", "slots", "outcomes", "heap")
_WHOLE_ARRAYS = ("head", "pair_weights", "pair_ratios", "speeds", "noises")


class SavedMemory(NamedTuple):
    """A memory with its schema and the names of its GPU models."""

    schema: Schema
    models: tuple[str, ...]
    memory: Memory
    note: str = ""  # the caller's own, such as settings as JSON


class _Role(Record):
    name: str
    kind: Kind
    weight: float
    low: float
    high: float
    log: bool
    levels: int
    cells: int
    most: int


class _Header(Record):
    mark: Literal["adlro-memory-2"] = "adlro-memory-2"
    roles: tuple[_Role, ...]
    bits: int
    models: tuple[str, ...]
    slots: Annotated[int, Field(ge=1)]
    latest: Annotated[int, Field(ge=1)]
    classes: Annotated[int, Field(ge=0)]
    note: str


def _header(saved: SavedMemory) -> _Header:
    memory = saved.memory
    return _Header(
        roles=tuple(_Role(**role._asdict()) for role in saved.schema.roles),
        bits=saved.schema.bits,
        models=saved.models,
        slots=len(memory.slots),
        latest=memory.outcomes.shape[1],
        classes=len(memory.speeds) - 1,
        note=saved.note,
    )


def _in_use(name: str, memory: Memory) -> NDArray[Any]:
    array: NDArray[Any] = getattr(memory, name)
    size = int(memory.head[0]["size"])
    return array[:, :size] if name == "patterns" else array[:size]


def pack(saved: SavedMemory) -> bytes:
    """Return the bytes of a memory's file; the same memory gives the same bytes."""
    arrays: dict[str, NDArray[Any]] = {
        "header": np.frombuffer(_header(saved).model_dump_json().encode(), np.uint8)
    }
    arrays |= {name: getattr(saved.memory, name) for name in _WHOLE_ARRAYS}
    arrays |= {name: _in_use(name, saved.memory) for name in _SLOT_ARRAYS}
    return pack_arrays(arrays)


def _is_heap(memory: Memory, size: int) -> bool:
    heap = memory.heap[:size]
    if not np.array_equal(np.sort(heap), np.arange(size)):
        return False
    strengths = memory.slots["strength"][heap]
    return bool((strengths[(np.arange(1, size) - 1) // 2] <= strengths[1:]).all())


def _is_sound(memory: Memory, size: int) -> bool:
    """Return True if the arrays of a memory are consistent; also rebuilds its hash table."""
    head, slots = memory.head[0], memory.slots[:size]
    stored = np.arange(memory.outcomes.shape[1]) < slots["jobs"][:, None]
    numbers = [memory.outcomes[:size][name][stored] for name in ("log_seconds", "when")]
    numbers += [slots[name] for name in ("strength", "old_mean", "old_turn")]
    numbers += [memory.pair_weights, memory.pair_ratios, memory.speeds, memory.noises]
    turns, models = memory.turns[:size], memory.models[:size]
    own_turns = memory.outcomes[:size]["turn"][stored]
    return bool(
        head["half_s"] > 0
        and head["half_jobs"] > 0
        and (np.isfinite(head["now"]) or size == 0)
        and all(np.isfinite(array).all() for array in numbers)
        and not np.isinf(memory.outcomes[:size]["extra"][stored]).any()
        and not np.isinf(slots["old_extra"]).any()
        and not np.isnan(slots["old_strength"]).any()
        and (slots["old_strength"] < np.inf).all()
        and slots["jobs"].min(initial=1) >= 1
        and slots["jobs"].sum() <= head["learned"]
        and ((turns >= 0) & (turns < head["learned"])).all()
        and ((own_turns >= 0) & (own_turns < head["learned"])).all()
        and ((models >= -1) & (models < len(memory.model_bits))).all()
        and memory.pair_weights.min(initial=0) >= 0
        and memory.noises.min(initial=0) >= 0
        and _is_heap(memory, size)
        and restore(memory)
    )


def _filled(memory: Memory, arrays: dict[str, NDArray[Any]]) -> Memory:
    head = arrays["head"]
    if head.dtype != HEAD or head.shape != (1,):
        raise ValueError("'head' is not as it must be")
    size = int(head[0]["size"])
    if not 0 <= size <= len(memory.slots):
        raise ValueError("it holds more than it has room for")
    memory.head[:] = head
    for name in (*_WHOLE_ARRAYS, *_SLOT_ARRAYS):
        into = getattr(memory, name) if name in _WHOLE_ARRAYS else _in_use(name, memory)
        if arrays[name].dtype != into.dtype or arrays[name].shape != into.shape:
            raise ValueError(f"{name!r} is not as it must be")
        into[...] = arrays[name]
    memory.places[memory.heap[:size].clip(0, len(memory.slots) - 1)] = np.arange(size)
    if not _is_sound(memory, size):
        raise ValueError("its numbers contradict each other")
    return memory


def _space(header: _Header) -> tuple[Schema, Space]:
    schema = Schema(tuple(Role(**role.model_dump()) for role in header.roles), header.bits)
    return schema, space_of(schema)


def unpack(data: bytes, where: str) -> SavedMemory:
    """Return the memory in the bytes of a file; errors name the file `where`.

    Raises:
        TraceError: it is not the file of a memory, or it has been changed.
    """
    try:
        arrays = unpack_arrays(data, "a memory", ("header", *_WHOLE_ARRAYS, *_SLOT_ARRAYS))
        header = _Header.model_validate_json(arrays["header"].astype(np.uint8).tobytes())
        schema, space = _space(header)
        size = Size(header.slots, header.latest, header.classes)
        memory = _filled(empty(space, size, header.models), arrays)
    except ValidationError as exc:
        raise TraceError(
            f"{where}: its header is not that of a memory of this version; create it again"
        ) from exc
    except ConfigError as exc:
        raise TraceError(f"{where}: is not a memory of adlro: {exc}; create it again") from exc
    except MemoryError as exc:
        raise TraceError(f"{where}: is too large for this machine; create it again") from exc
    except BROKEN as exc:
        why = str(exc) if type(exc) is ValueError else "it is cut short or changed"
        raise TraceError(f"{where}: is not a memory of adlro: {why}; create it again") from exc
    return SavedMemory(schema, header.models, memory, header.note)
