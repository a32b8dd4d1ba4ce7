"""A comparison as its page reads it: who stands where, and every figure in one wording.

The table and the summary in words both take their figures from here, so that they cannot differ.
"""

from __future__ import annotations

from typing import NamedTuple

from adlro.evaluate.comparison import Comparison, Row
from adlro.evaluate.stats import Estimate

BARS = ("min-min", "fcfs")  # what every policy is held against where it is there
_IN_HOURS = 10_000.0  # seconds: a best mean JCT from here on is told in hours
_LEVEL = 0.05
_MOST_SEEDS = 100_000


class Scale(NamedTuple):
    """What times are counted in on a page."""

    unit: str
    seconds: float
    digits: int


class Group(NamedTuple):
    """Policies that are fair to compare: all may preempt, or none."""

    is_preemptive: bool
    rows: list[Row]  # best first

    @property
    def best(self) -> Row:
        """The shortest mean JCT."""
        return self.rows[0]


class Gap(NamedTuple):
    """How much longer the mean JCT of one policy is than that of another, in percent."""

    mean: float
    ci95: tuple[float, float] | None
    p: float | None  # Wilcoxon, Holm-corrected against the best of a table; None = too few seeds
    seeds: int | None  # that would settle it

    @property
    def is_settled(self) -> bool:
        """The interval leaves 0 out, and so does the test where there is one."""
        if self.ci95 is None or self.ci95[0] <= 0 <= self.ci95[1]:
            return False
        return self.p is None or self.p < _LEVEL

    def __str__(self) -> str:
        """With its interval."""
        digits = 1 if abs(self.mean) < 100 else 0
        text = f"{self.mean:+,.{digits}f} %"
        if self.ci95 is None:
            return text
        low, high = (f"{bound:+,.{digits}f}" for bound in self.ci95)
        return f"{text} ({low} to {high})"


def best_first(result: Comparison) -> list[Row]:
    """All policies by mean JCT."""
    return sorted(result.policies, key=lambda row: row.jct)


def groups(result: Comparison) -> list[Group]:
    """Those that never preempt, then those that may; none that is empty."""
    return [Group(rows[0].is_preemptive, rows) for rows in result.tables()]


def scale(result: Comparison) -> Scale:
    """Seconds, or hours where seconds would be long numbers."""
    in_hours = min(row.jct for row in result.policies) >= _IN_HOURS
    return Scale("h", 3600.0, 2) if in_hours else Scale("s", 1.0, 0)


def gap(row: Row, rival: Row) -> Gap:
    """What `row` takes longer than `rival`."""
    found = row.jct_versus(rival.name)
    p = found.p_wilcoxon if found.p_holm is None else found.p_holm
    return Gap(found.mean, found.ci95, p, found.seeds_to_settle)


def with_half(figure: Estimate, digits: int, factor: float = 1.0) -> str:
    """Mean ± half of the interval."""
    text = f"{figure.mean * factor:,.{digits}f}"
    if figure.ci95 is None:
        return text
    return f"{text} ± {figure.half_width * factor:,.{digits}f}"


def in_time(figure: Estimate, unit: Scale) -> str:
    """Mean ± half of the interval of a time, without its unit."""
    return with_half(figure, unit.digits, 1 / unit.seconds)


def probability(p: float) -> str:
    """A p value as people write it."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def seeds(count: int) -> str:
    """Seeds that would settle a difference; how many a million is, nobody needs to know."""
    return f"≈ {count:,}" if count <= _MOST_SEEDS else f"more than {_MOST_SEEDS:,}"


def settle(seeds: int) -> str:
    """That so many seeds are too few."""
    return "1 seed does not settle" if seeds == 1 else f"{seeds:,} seeds do not settle"


def plural(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
