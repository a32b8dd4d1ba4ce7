"""Ranking, grouping and number formatting shared by the table, the charts and the summary.

Table and summary take the text of each figure from here, so that they cannot differ.
"""

from __future__ import annotations

from typing import NamedTuple

from adlro.evaluate.comparison import Comparison, PolicyRow
from adlro.evaluate.rows import Row
from adlro.evaluate.stats import Estimate

BASELINES = ("min-min", "fcfs")  # policies that all others are compared with, if present
_HOURS_FROM_S = 10_000.0  # from this best mean JCT on, times are shown in hours
_MINUTES_BELOW_S = 2 * 3600.0  # a history's times are shown in minutes below, in hours from here
_DAYS_FROM_S = 4 * 86_400.0  # and in days from here on
_SIGNIFICANCE = 0.05
_MOST_SEEDS = 100_000  # larger numbers of seeds are not spelled out


class TimeUnit(NamedTuple):
    """Unit in which a page shows times."""

    unit: str  # its symbol
    seconds: float  # its length
    digits: int  # decimals shown


class PolicyGroup(NamedTuple):
    """Policies that are compared in one table: either all may preempt, or none."""

    is_preemptive: bool
    rows: list[PolicyRow]  # best first

    @property
    def best(self) -> PolicyRow:
        """The policy with the shortest mean JCT."""
        return self.rows[0]


class PercentDifference(NamedTuple):
    """Percent by which one policy's mean JCT exceeds another's, with interval and p value."""

    mean: float
    ci95: tuple[float, float] | None
    p: float | None  # Wilcoxon, Holm-corrected against a table's best; None = too few seeds
    seeds: int | None  # number of seeds that would settle it; None = unknown, or settled

    @property
    def is_settled(self) -> bool:
        """True if the interval excludes 0 and p, if known, is below 5 %."""
        if self.ci95 is None or self.ci95[0] <= 0 <= self.ci95[1]:
            return False
        return self.p is None or self.p < _SIGNIFICANCE

    def __str__(self) -> str:
        """Return the difference with its interval, such as "+3.1 % (+1.2 to +5.0)"."""
        digits = 1 if abs(self.mean) < 100 else 0
        text = f"{self.mean:+,.{digits}f} %"
        if self.ci95 is None:
            return text
        low, high = (f"{bound:+,.{digits}f}" for bound in self.ci95)
        return f"{text} ({low} to {high})"


def ranked(result: Comparison) -> list[PolicyRow]:
    """Return all policies by ascending mean JCT."""
    return sorted(result.policies, key=lambda row: row.jct)


def groups(result: Comparison) -> list[PolicyGroup]:
    """Return policies that never preempt and those that may as two groups, without empty ones."""
    return [PolicyGroup(rows[0].is_preemptive, rows) for rows in result.tables()]


def time_unit(result: Comparison) -> TimeUnit:
    """Return the unit of a page's times, by the best mean JCT.

    It is minutes, hours or days for a history; otherwise seconds, or hours from _HOURS_FROM_S on.
    """
    best = min(row.jct for row in result.policies)
    if result.windows is not None:
        return human_unit(best)
    return TimeUnit("h", 3600.0, 2) if best >= _HOURS_FROM_S else TimeUnit("s", 1.0, 0)


def human_unit(seconds: float) -> TimeUnit:
    """Return the unit in which a person reads times of this size: minutes, hours or days."""
    if seconds < _MINUTES_BELOW_S:
        return TimeUnit("min", 60.0, 1)
    if seconds < _DAYS_FROM_S:
        return TimeUnit("h", 3600.0, 2)
    return TimeUnit("days", 86_400.0, 2)


def in_unit(seconds: float, unit: TimeUnit) -> str:
    """Return a time in a unit, without its symbol."""
    return f"{seconds / unit.seconds:,.{unit.digits}f}"


def percent_difference(row: Row, rival: Row) -> PercentDifference:
    """Return the percent by which the mean JCT of `row` exceeds that of `rival`."""
    found = row.jct_versus(rival.name)
    p = found.p_wilcoxon if found.p_holm is None else found.p_holm
    return PercentDifference(found.mean, found.ci95, p, found.seeds_to_settle)


def format_estimate(figure: Estimate, digits: int, factor: float = 1.0) -> str:
    """Return the text "mean ± half the width of the interval", both multiplied by `factor`."""
    text = f"{figure.mean * factor:,.{digits}f}"
    if figure.ci95 is None:
        return text
    return f"{text} ± {figure.half_width * factor:,.{digits}f}"


def format_time(figure: Estimate, unit: TimeUnit) -> str:
    """Return the text "mean ± half the width of the interval" of a time, without its unit."""
    return format_estimate(figure, unit.digits, 1 / unit.seconds)


def format_p(p: float) -> str:
    """Return a p value as text with three decimals, or "< 0.001"."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def format_seeds(count: int) -> str:
    """Return the number of seeds that would settle a difference as text, such as "≈ 120"."""
    return f"≈ {count:,}" if count <= _MOST_SEEDS else f"more than {_MOST_SEEDS:,}"


def not_settled(seeds: int) -> str:
    """Return the phrase that this number of seeds does not settle a difference."""
    return "1 seed does not settle" if seeds == 1 else f"{seeds:,} seeds do not settle"


def plural(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
