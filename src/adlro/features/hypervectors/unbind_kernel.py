"""Unbinding: which roles of two patterns match, and the filler of a role."""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit
from adlro.features.hypervectors.encode_kernel import distance, encode
from adlro.features.hypervectors.memory import Memory
from adlro.features.hypervectors.schema import Space, Words
from adlro.model.state import Floats


@njit
def pattern_of(memory: Memory, slot: int, bits: Words) -> None:
    """Copy the pattern of a slot to `bits`."""
    for w in range(len(bits)):
        bits[w] = memory.patterns[w, slot]


@njit
def match_parts(space: Space, query: Words, known: Words, pattern: Words, out: Floats) -> None:
    """Write the similarity of each role of a query and a pattern to out [R].

    1 = the same filler, about 0 = another one, in between: near; NaN = missing in the query.
    """
    for r in range(len(space.roles)):
        mask = space.masks[r]
        if distance(known, mask, mask) > 0:
            out[r] = np.nan
        else:
            gap = distance(query, pattern, mask)
            out[r] = max(1.0 - 2.0 * gap / space.roles[r].bits, 0.0)


@njit
def likeliest(
    space: Space, pattern: Words, role: int, candidates: Words, bits: Words, known: Words,
    filling: Words,
) -> tuple[int, float]:  # fmt: skip
    """Return which candidate is most similar to a pattern's filler of a role, and how similar.

    Args:
        space: of the pattern.
        pattern: [W].
        role: index of the role, which must have one filler.
        candidates: fillers; for a level from 1 to the number of levels.
        bits: [W] scratch.
        known: [W] scratch.
        filling: [F] scratch.
    """
    best, fit = -1, -np.inf
    for f in range(len(filling)):
        filling[f] = np.uint64(0)
    for i in range(len(candidates)):
        filling[space.roles[role].filler] = candidates[i]
        encode(filling, space, bits, known)
        gap = distance(bits, pattern, space.masks[role])
        alike = 1.0 - 2.0 * gap / space.roles[role].bits
        if alike > fit:
            best, fit = i, alike
    return best, fit
