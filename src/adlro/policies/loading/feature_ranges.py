"""The ranges that a network's features had in training, as its card stores them.

A value below the .1 % quantile or above the 99.9 % quantile of a feature over all options of the
training states lies outside the training range: there the network extrapolates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from adlro.model.record import Record

QUANTILES = (0.001, 0.999)

_LARGEST = float(np.finfo(np.float32).max)
_Value = Annotated[
    float, Field(strict=True, allow_inf_nan=False, ge=-_LARGEST, le=_LARGEST)
]  # of a float32
_Count = Annotated[int, Field(strict=True, gt=0, le=10**15)]


class Range(NamedTuple):
    """The range of one feature: least <= low <= high <= most."""

    least: _Value  # the smallest value in training
    low: _Value  # quantile QUANTILES[0]
    high: _Value  # quantile QUANTILES[1]
    most: _Value  # the largest value in training


def _refuse_swapped(found: Range) -> Range:
    if list(found) != sorted(found):
        raise ValueError("a range is in ascending order: least, low, high, most")
    return found


_Ordered = Annotated[Range, AfterValidator(_refuse_swapped)]


class FeatureRanges(Record):
    """The training ranges of all features of a network, and the states they were measured on."""

    states: _Count
    options: _Count  # of all these states: the values that the quantiles are of
    features: Annotated[dict[str, _Ordered], Field(min_length=1, max_length=1000)]

    @property
    def words(self) -> str:
        """A phrase that says what the ranges were measured on."""
        return f"of each feature, over {self.options:,} options of {self.states:,} training states"

    def bounds(self, names: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the lower and the upper bound [F] of the training range of F features."""
        pairs = [self.features[name][1:3] for name in names]
        low, high = np.array(pairs, np.float32).reshape(-1, 2).T
        return low, high


def measure_ranges(
    names: Sequence[str], values: Sequence[NDArray[np.float32]], states: int
) -> FeatureRanges:
    """Return the ranges of F features over all options of some states.

    Args:
        names: [F] of the features.
        values: parts [N, F] with the features of N options each, float32 as in training.
        states: number of states that the options belong to.
    """
    found = {}
    for f, name in enumerate(names):
        column = np.concatenate([part[:, f] for part in values])
        low, high = np.quantile(column, QUANTILES, method="inverted_cdf")
        found[name] = Range(*map(_shortest, (column.min(), low, high, column.max())))
    return FeatureRanges(states=states, options=sum(map(len, values)), features=found)


def _shortest(value: np.float32) -> float:
    """Return the decimal number with the fewest digits that rounds to a float32."""
    return float(str(np.float32(value)))
