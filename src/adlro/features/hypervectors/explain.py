"""Describe in words which roles of two patterns match."""

from __future__ import annotations

import math

from adlro.features.hypervectors.schema import Role, Schema
from adlro.model.state import Floats

_SAME_WORD = 0.75  # an unrelated word reaches this in one of 10,000 patterns at 24 bits
_SAME_LEVEL = 0.999
_NEAR = 0.25


def _in_words(role: Role, match: float) -> str:
    if match >= (_SAME_WORD if role.kind == "word" else _SAME_LEVEL):
        return "same"
    return "other" if role.kind == "word" or match < _NEAR else "near"


def matched(schema: Schema, parts: Floats) -> dict[str, tuple[str, ...]]:
    """Return the names of the roles that are the same, near or other in two patterns.

    parts [R]: similarities from unbind_kernel.match_parts; missing roles are left out.
    """
    found: dict[str, list[str]] = {"same": [], "near": [], "other": []}
    for role, match in zip(schema.roles, parts.tolist(), strict=True):
        if not math.isnan(match):
            found[_in_words(role, match)].append(role.name)
    return {how: tuple(names) for how, names in found.items()}


def sentence(schema: Schema, parts: Floats) -> str:
    """Return a phrase such as "same user, name; near requested time; other gpu model"."""
    groups = matched(schema, parts)
    return "; ".join(f"{how} {', '.join(names)}" for how, names in groups.items() if names)
