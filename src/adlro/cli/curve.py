"""A learning curve in a terminal: points from left to right, and levels to hold them against."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

POINT, LEVEL, BLANK = "●", "┄", " "


class Place(NamedTuple):
    """A point of a curve: how far along, 0 to 1, and how high, > 0."""

    along: float
    value: float


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low * 0.99, high * 1.01)


def plot(
    points: Sequence[Place], levels: Mapping[str, float], width: int, height: int
) -> list[str]:
    """Rows of text, from the top; heights are logarithmic, each level has its name beside it.

    Args:
        points: at least one.
        levels: names and heights.
        width: characters of the curve alone.
        height: rows.
    """
    low, high = _span([point.value for point in points] + list(levels.values()))

    def row(value: float) -> int:
        share = math.log(value / low) / math.log(high / low)
        return round((1 - share) * (height - 1))

    grid = [[BLANK] * width for _ in range(height)]
    names: dict[int, list[str]] = {}
    for name, value in levels.items():
        grid[row(value)] = [LEVEL] * width
        names.setdefault(row(value), []).append(f"{name} {value:,.0f} s")
    for point in points:
        grid[row(point.value)][round(point.along * (width - 1))] = POINT
    left = {0: f"{high:,.0f} s", height - 1: f"{low:,.0f} s"}
    margin = max(len(text) for text in left.values())
    return [
        f"{left.get(r, ''):>{margin}} {''.join(cells)} {', '.join(names.get(r, []))}".rstrip()
        for r, cells in enumerate(grid)
    ]
