"""Encoding of fillers as a pattern: the more similar two jobs are, the more bits agree.

A filling [F] holds one number per filler, 0 = missing: the key of a word, or 1 + a level. Patterns,
masks and queries are rows of W words. All bits are computed from keys by a mixing function; there
are no tables, so the number of users is not limited.
"""

from __future__ import annotations

import math

import numpy as np

from adlro.compiled import njit, wide
from adlro.features.hypervectors.schema import BAG, CIRCLE, WORD, Space, Words
from adlro.model.state import Row

_STEP = np.uint64(0x9E3779B97F4A7C15)  # `mixed` is splitmix64
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_PAIRS, _FOURS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_BYTES, _ONES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)
_S1, _S2, _S4, _S56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)
_NONE, _ALL = np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)
_WORD_BITS = 64


@njit
def ones(word: np.uint64) -> np.uint64:
    """Return the number of set bits of a word; LLVM compiles it to one instruction."""
    word = word - ((word >> _S1) & _PAIRS)
    word = (word & _FOURS) + ((word >> _S2) & _FOURS)
    return np.uint64((((word + (word >> _S4)) & _BYTES) * _ONES) >> _S56)


@njit
def mixed(key: np.uint64, at: int) -> np.uint64:
    """Return a pseudorandom 64-bit word that depends only on a key and a position."""
    z = key + np.uint64(at + 1) * _STEP
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return np.uint64(z ^ (z >> _S31))


@njit
def number_key(role: Row, number: int) -> np.uint64:
    """Return the key of a word given as a number, such as a user id; a number < 0 is missing."""
    if number < 0:
        return _NONE
    return max(mixed(role.seed, number), _S1)


@njit
def level_of(role: Row, value: float) -> np.uint64:
    """Return the filler of a level role for a value; NaN is missing.

    A value beyond the range is clipped to it; on a circle it wraps around.
    """
    if math.isnan(value):
        return _NONE
    if role.kind == CIRCLE:
        share = (value - role.low) / (role.high - role.low)
        return np.uint64(1 + int((share - math.floor(share)) * role.levels) % role.levels)
    value = min(max(value, role.low), role.high)
    if role.is_log:
        share = math.log(value / role.low) / math.log(role.high / role.low)
    else:
        share = (value - role.low) / (role.high - role.low)
    return np.uint64(1 + int(share * (role.levels - 1) + 0.5))


@njit
def _below(count: int) -> np.uint64:
    """A word whose `count` lowest bits are set."""
    if count <= 0:
        return _NONE
    return _ALL if count >= _WORD_BITS else (_S1 << np.uint64(count)) - _S1


@njit
def _write_level(role: Row, level: int, mask: Words, bits: Words) -> None:
    """Write the bits of a level: each position divides the range into cells, shifted by position.

    The closer two levels are, the more positions have them in the same cell. Of the role's
    positions the first still have the cell of `level`, the rest already the next one.
    """
    span = role.levels if role.kind == CIRCLE else role.levels - 1
    cell, rest = level * role.cells // span, level * role.cells % span
    after = cell + 1
    if role.kind == CIRCLE:
        after %= role.cells
    turned = role.first + role.bits - rest * role.bits // span
    here, there = mixed(role.seed, 2 + cell), mixed(role.seed, 2 + after)
    for w in range(role.first // _WORD_BITS, (role.first + role.bits - 1) // _WORD_BITS + 1):
        low = _below(turned - w * _WORD_BITS)
        bits[w] |= ((mixed(here, w) & low) | (mixed(there, w) & ~low)) & mask[w]


@njit
def _write_word(role: Row, key: np.uint64, mask: Words, bits: Words) -> None:
    for w in range(role.first // _WORD_BITS, (role.first + role.bits - 1) // _WORD_BITS + 1):
        bits[w] |= mixed(key, w) & mask[w]


@njit
def _write_bag(role: Row, filling: Words, bits: Words) -> None:
    """Write the bits of a bag: each position takes a bit of the word with the least hash (MinHash).

    The order of the words does not matter, and two bags agree at the positions where they share
    the word with the least hash.
    """
    for at in range(role.first, role.first + role.bits):
        least = _ALL
        for f in range(role.filler, role.filler + role.most):
            if filling[f] != _NONE:
                least = min(least, mixed(filling[f], at))
        bits[at // _WORD_BITS] |= (least & _S1) << np.uint64(at % _WORD_BITS)


@njit
def _is_missing(role: Row, filling: Words) -> bool:
    found = _NONE
    for f in range(role.filler, role.filler + role.most):
        found |= filling[f]
    return found == _NONE


@njit
def encode(filling: Words, space: Space, bits: Words, known: Words) -> None:
    """Write the pattern of a filling to `bits`, and the mask of its non-missing roles to `known`.

    The bits of a missing role are fixed and unrelated to those of any filler.
    """
    for w in range(len(bits)):
        bits[w], known[w] = _NONE, _NONE
    for r in range(len(space.roles)):
        role, mask = space.roles[r], space.masks[r]
        if _is_missing(role, filling):
            _write_word(role, mixed(role.seed, 0), mask, bits)
            continue
        if role.kind == WORD:
            _write_word(role, filling[role.filler], mask, bits)
        elif role.kind == BAG:
            _write_bag(role, filling, bits)
        else:
            _write_level(role, wide(filling[role.filler]) - 1, mask, bits)
        for w in range(len(bits)):
            known[w] |= mask[w]
    for w in range(len(bits)):
        bits[w] ^= space.binding[w]


@njit
def distance(one: Words, other: Words, mask: Words) -> int:
    """Return the number of bits within a mask in which two patterns differ (Hamming distance)."""
    total = _NONE
    for w in range(len(one)):
        total += ones((one[w] ^ other[w]) & mask[w])
    return int(wide(total))


@njit
def similarity(one: Words, other: Words, mask: Words) -> float:
    """Return the similarity of two patterns within a mask: 1 = equal, about 0 = unrelated.

    0 if the mask is empty.
    """
    total = _NONE
    for w in range(len(one)):
        total += ones(mask[w])
    if total == _NONE:
        return 0.0
    return 1.0 - 2.0 * distance(one, other, mask) / float(total)
