"""Measured figures: value, both sides of a ratio, and whether the required bar is met."""

from __future__ import annotations

from typing import Literal, NamedTuple

from adlro.model.record import Record


class Figure(Record):
    """One line of the benchmark."""

    name: str
    value: float
    unit: str
    ours: float | None = None  # of a ratio; value = ours / theirs
    theirs: float | None = None
    bar: str | None = None
    holds: bool | None = None


class Bar(NamedTuple):
    """The limit that a figure must meet."""

    sign: Literal[">=", "<"]
    limit: float

    def __str__(self) -> str:
        """The limit with its sign and thousands separators."""
        return f"{self.sign} {self.limit:,.15g}"

    def holds(self, value: float) -> bool:
        """Whether a value meets the limit."""
        return value >= self.limit if self.sign == ">=" else value < self.limit


def figure(name: str, value: float, unit: str, bar: Bar | None = None) -> Figure:
    """Build a figure that is not a ratio."""
    if bar is None:
        return Figure(name=name, value=value, unit=unit)
    return Figure(name=name, value=value, unit=unit, bar=str(bar), holds=bar.holds(value))


def ratio(name: str, ours: float, theirs: float, unit: str, bar: Bar | None = None) -> Figure:
    """Build the figure of a ratio ours / theirs, both in the same unit."""
    alone = figure(name, ours / theirs, unit, bar)
    return alone.model_copy(update={"ours": ours, "theirs": theirs})
