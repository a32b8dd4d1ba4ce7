"""Draws a learning curve as text: points from left to right, and levels to compare them with."""

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
    """Draw points and levels as rows of text, the top row first.

    The vertical scale is logarithmic; each level has its name beside it.

    Args:
        points: at least one; each is a place from left (0) to right (1), and a value above 0.
        levels: name and value of each horizontal line.
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
