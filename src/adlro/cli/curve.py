"""A learning curve as text: points from left to right, and levels to compare them with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

POINT, LEVEL, BLANK = "●", "┄", " "


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low * 0.99, high * 1.01)


def plot(
    points: Sequence[tuple[float, float]], levels: Mapping[str, float], width: int, height: int
) -> list[str]:
    """Rows of text, from the top; heights are logarithmic, each level has its name beside it.

    Args:
        points: at least one: place from left to right, 0 to 1, and value > 0.
        levels: names and values.
        width: characters of the curve alone.
        height: rows.
    """
    low, high = _span([value for _, value in points] + list(levels.values()))

    def row(value: float) -> int:
        share = math.log(value / low) / math.log(high / low)
        return round((1 - share) * (height - 1))

    grid = [[BLANK] * width for _ in range(height)]
    names: dict[int, list[str]] = {}
    for name, value in levels.items():
        grid[row(value)] = [LEVEL] * width
        names.setdefault(row(value), []).append(f"{name} {value:,.0f} s")
    for along, value in points:
        grid[row(value)][round(along * (width - 1))] = POINT
    left = {0: f"{high:,.0f} s", height - 1: f"{low:,.0f} s"}
    margin = max(len(text) for text in left.values())
    return [
        f"{left.get(r, ''):>{margin}} {''.join(cells)} {', '.join(names.get(r, []))}".rstrip()
        for r, cells in enumerate(grid)
    ]
