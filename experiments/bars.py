"""Required values of published figures, and whether they are met."""

from __future__ import annotations

from typing import Literal, NamedTuple

from adlro.evaluate.stats import Estimate

_SIGNS = {"<=": "≤", "<": "<", ">=": "≥"}


class Bar(NamedTuple):
    """A limit that a figure must meet, and optionally a stricter aim."""

    sign: Literal["<=", "<", ">="]  # "<": the whole interval must be below
    limit: float
    aim: float | None = None
    unit: str = "%"

    def __str__(self) -> str:
        """The limit with its sign, unit and aim."""
        aim = "" if self.aim is None else f" (aim {self.aim:g} {self.unit})"
        return f"{_SIGNS[self.sign]} {self.limit:g} {self.unit}{aim}"

    def _reaches(self, found: Estimate, limit: float) -> bool:
        if self.sign == "<":
            return found.ci95 is not None and found.ci95[1] < limit
        return found.mean <= limit if self.sign == "<=" else found.mean >= limit

    def is_met(self, found: Estimate) -> bool:
        """Whether the mean (of "<" the whole interval) is on the right side of the limit."""
        return self._reaches(found, self.limit)

    def verdict(self, found: Estimate) -> str:
        """Met or missed, and whether the aim is met."""
        if not self.is_met(found):
            return "**missed**"
        if self.aim is None:
            return "met"
        return "met, aim too" if self._reaches(found, self.aim) else "met, aim missed"
