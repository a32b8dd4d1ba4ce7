"""The roles of a pattern, the bits of each role, and the keys of fillers.

A pattern is a multiplex: every bit position belongs to one role, in proportion to the roles'
weights. The positions of a role are contiguous, because a permutation changes no distance.
Dimensions: R roles, F fillers (one a role, more for a bag), W words of 64 bits.
"""

from __future__ import annotations

import hashlib
import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.errors import ConfigError
from adlro.model.state import Records

Words = NDArray[np.uint64]

Kind = Literal["word", "bag", "level", "circle"]
KINDS: tuple[Kind, ...] = ("word", "bag", "level", "circle")
WORD, BAG, LEVEL, CIRCLE = range(4)
BITS = 1024  # of a pattern, unless the schema says otherwise
MODEL = "gpu model"  # the role that a recall answers for all GPU models at once
_WORD_BITS = 64
_MOST_BITS, _MOST_LEVELS, _MOST_FILLERS = 1 << 16, 1 << 16, 64

ROLE = np.dtype(
    [
        ("kind", "i4"),
        ("first", "i4"),  # its bits are first … first + bits - 1
        ("bits", "i4"),
        ("filler", "i4"),  # its fillers are filler … filler + most - 1
        ("most", "i4"),
        ("levels", "i4"),
        ("cells", "i4"),
        ("is_log", "i4"),
        ("low", "f8"),
        ("high", "f8"),
        ("nats", "f8"),  # its weight
        ("seed", "u8"),
    ],
    align=True,
)


class Role(NamedTuple):
    """A role, one variable of a pattern: its kind, weight and range.

    Two words are equal or unrelated. A bag holds up to `most` words, and the similarity of two bags
    is the share of common words (Jaccard). A level lies in a range: similarity falls linearly with
    distance, to 0 at 1 / cells of the range. A circle is a level whose ends meet.
    """

    name: str
    kind: Kind
    weight: float = 1.0  # nats that a match adds to the log of a pattern's weight in recall
    low: float = 0.0  # level and circle
    high: float = 1.0
    log: bool = False  # a logarithmic scale
    levels: int = 16  # distinct values
    cells: int = 1  # a circle: at least 2
    most: int = 1  # words of a bag


class Schema(NamedTuple):
    """The roles of a pattern and its number of bits."""

    roles: tuple[Role, ...]
    bits: int = BITS


class Space(NamedTuple):
    """A schema as arrays for compiled code."""

    roles: Records  # [R]
    masks: Words  # [R, W] the bits of each role
    binding: Words  # [W] the roles' own vectors, each at its role's bits
    model: int  # index of the role MODEL; -1 = none
    nats_per_bit: float  # loss of the log of a weight per bit of distance
    fillers: int  # F


def key(role: str, text: str) -> int:
    """Return the 64-bit key of a word in a role; never 0, which means missing."""
    data = role.encode() + b"\0" + text.encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little") or 1


def _range_problem(role: Role) -> str:
    if role.kind not in ("level", "circle"):
        return ""
    if not (math.isfinite(role.low) and math.isfinite(role.high) and role.low < role.high):
        return "its range is empty"
    if role.log and role.low <= 0:
        return "a log scale must begin above 0"
    if not 2 <= role.levels <= _MOST_LEVELS:
        return f"it must have 2 to {_MOST_LEVELS} levels"
    least = 2 if role.kind == "circle" else 1
    if not least <= role.cells < role.levels:
        return f"it must have at least {least} cells, and fewer than levels"
    return ""


def _problem(role: Role) -> str:
    """Return what is wrong with a role as a phrase; "" = nothing."""
    if role.kind not in KINDS:
        return f"its kind is none of {', '.join(KINDS)}"
    if not (math.isfinite(role.weight) and role.weight > 0):
        return "its weight is not above 0"
    if not 1 <= role.most <= _MOST_FILLERS or (role.kind != "bag" and role.most > 1):
        return f"only a bag holds several words, {_MOST_FILLERS} at most"
    return _range_problem(role)


def _check(schema: Schema) -> None:
    if schema.bits % _WORD_BITS or not _WORD_BITS <= schema.bits <= _MOST_BITS:
        raise ConfigError(
            f"a pattern has {_WORD_BITS} to {_MOST_BITS} bits, in steps of {_WORD_BITS}, "
            f"not {schema.bits}"
        )
    if not 1 <= len(schema.roles) <= schema.bits:
        raise ConfigError("a pattern has at least one role, and no more roles than bits")
    if len({role.name for role in schema.roles}) < len(schema.roles):
        raise ConfigError("two roles of a pattern have the same name")
    for role in schema.roles:
        if problem := _problem(role):
            raise ConfigError(f"role {role.name!r} of a pattern: {problem}")


def _share(weights: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
    """Return the number of bits of each role: in proportion to its weight, at least one."""
    exact = weights / weights.sum() * (bits - len(weights))
    result = np.floor(exact).astype(np.int64)
    rest = int(bits - len(weights) - result.sum())
    result[np.argsort(result - exact, kind="stable")[:rest]] += 1
    return np.asarray(result + 1)


def _vector(seed: int, words: int) -> Words:
    data = hashlib.shake_128(seed.to_bytes(8, "little")).digest(8 * words)
    return np.frombuffer(data, "<u8").astype(np.uint64)


def _mask(first: int, bits: int, words: int) -> Words:
    number = ((1 << bits) - 1) << first
    return np.frombuffer(number.to_bytes(8 * words, "little"), "<u8").astype(np.uint64)


def space_of(schema: Schema) -> Space:
    """Return the arrays of a schema for compiled code; the same on every machine.

    Raises:
        ConfigError: the schema contradicts itself.
    """
    _check(schema)
    words = schema.bits // _WORD_BITS
    weights = np.array([role.weight for role in schema.roles])
    bits = _share(weights, schema.bits)
    most = np.array([role.most for role in schema.roles])
    roles = np.zeros(len(schema.roles), ROLE)
    roles["bits"], roles["first"] = bits, np.cumsum(bits) - bits
    roles["most"], roles["filler"] = most, np.cumsum(most) - most
    roles["nats"] = weights
    for row, role in zip(roles, schema.roles, strict=True):
        row["kind"], row["is_log"] = KINDS.index(role.kind), role.log
        row["low"], row["high"] = role.low, role.high
        row["levels"], row["cells"], row["seed"] = role.levels, role.cells, key(role.name, "")
    masks = np.array([_mask(int(row["first"]), int(row["bits"]), words) for row in roles])
    vectors = np.array([_vector(int(row["seed"]), words) for row in roles])
    names = [role.name for role in schema.roles]
    return Space(
        roles,
        masks,
        np.bitwise_or.reduce(vectors & masks, axis=0),
        names.index(MODEL) if MODEL in names else -1,
        2.0 * float(weights.sum()) / schema.bits,
        int(most.sum()),
    )


def place(schema: Schema, name: str) -> int:
    """Return the index of the first filler of a role, given its name.

    Raises:
        ConfigError: there is no such role.
    """
    before = 0
    for role in schema.roles:
        if role.name == name:
            return before
        before += role.most
    raise ConfigError(f"a pattern has no role {name!r}")
