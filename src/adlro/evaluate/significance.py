"""Wilcoxon's signed-rank test, Holm's correction, effect sizes, and two rank correlations.

Implemented here because scipy.stats takes longer to import than most comparisons take to run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from adlro.model.state import Floats

FEWEST_PAIRS = 6  # nonzero differences: with 5, the smallest possible p is 2 / 2^5 > 5 %
_MOST_EXACT = 50  # pairs up to which the exact distribution is used
_TOLERANCE = 1e-9  # relative: figures this close are equal up to rounding


class PairedTest(NamedTuple):
    """p value and effect sizes of differences ours - theirs by seed; None = undefined."""

    p_wilcoxon: float | None  # two-sided; None also with fewer than FEWEST_PAIRS differences
    dz: float | None  # mean / standard deviation of the differences
    rank_biserial: float | None  # -1 = ours is smaller on every seed, 1 = larger on every seed


def _ranks(sizes: Floats) -> tuple[Floats, Floats]:
    """Return the rank of each value, from 1, and how often each distinct value occurs.

    Equal values get the mean of their ranks (mid-ranks).
    """
    _, place, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    return middle[place], counts.astype(np.float64)


def _exact_p(ranks: Floats, positive: float) -> float:
    """Return the two-sided p value of the sum `positive` of ranks of positive differences.

    From the exact null distribution, which takes ties into account.
    """
    doubled = np.rint(2 * ranks).astype(np.int64)  # mid-ranks may end in .5
    null = np.zeros(int(doubled.sum()) + 1)
    null[0] = 1.0
    for rank in doubled.tolist():
        null[rank:] += null[: len(null) - rank].copy()
        null /= 2
    at = round(2 * positive)
    return min(1.0, 2 * min(float(null[: at + 1].sum()), float(null[at:].sum())))


def _normal_p(ranks: Floats, ties: Floats, positive: float) -> float:
    """Return the two-sided p value by the normal approximation, corrected for ties and continuity.

    Args:
        ranks: ranks of the absolute differences.
        ties: how often each distinct rank occurs.
        positive: sum of the ranks of positive differences.
    """
    count = len(ranks)
    variance = count * (count + 1) * (2 * count + 1) / 24 - float((ties**3 - ties).sum()) / 48
    distance = abs(positive - count * (count + 1) / 4)
    return min(1.0, 2 * float(ndtr(-max(distance - 0.5, 0.0) / math.sqrt(variance))))


def paired_test(ours: Floats, theirs: Floats) -> PairedTest:
    """Return the p value and effect sizes of ours [S] - theirs [S], paired by seed.

    Zero differences are dropped before ranking (Wilcoxon 1945).
    """
    difference = ours - theirs
    difference[np.abs(difference) <= _TOLERANCE * (np.abs(ours) + np.abs(theirs)) / 2] = 0.0
    rounding = _TOLERANCE * float(np.abs(ours).mean() + np.abs(theirs).mean()) / 2
    sd = float(np.std(difference, ddof=1)) if len(difference) > 1 else 0.0
    dz = float(difference.mean()) / sd if sd > rounding else None
    nonzero = difference[difference != 0]
    if len(nonzero) == 0:
        return PairedTest(None, dz, None)
    ranks, ties = _ranks(np.rint(np.abs(nonzero) / rounding))
    positive, total = float(ranks[nonzero > 0].sum()), float(ranks.sum())
    biserial = (2 * positive - total) / total
    if len(nonzero) < FEWEST_PAIRS:
        return PairedTest(None, dz, biserial)
    is_exact = len(nonzero) <= _MOST_EXACT
    p = _exact_p(ranks, positive) if is_exact else _normal_p(ranks, ties, positive)
    return PairedTest(p, dz, biserial)


def rank_correlation(a: Floats, b: Floats) -> float | None:
    """Return Spearman's rank correlation of a and b; None if one of them does not vary."""
    first, second = _ranks(a)[0], _ranks(b)[0]
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def kendall_tau(a: Floats, b: Floats) -> float | None:
    """Return Kendall's tau-b of a and b: 1 = the same order; None if one of them does not vary."""
    first, second = (np.sign(x[:, None] - x[None, :]) for x in (a, b))
    scale = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum()) / scale if scale > 0 else None


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Return p values corrected by Holm's step-down method; None stays None and is not counted."""
    known = sorted((value, i) for i, value in enumerate(p) if value is not None)
    corrected: list[float | None] = [None] * len(p)
    largest = 0.0
    for rank, (value, i) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * value))
        corrected[i] = largest
    return corrected
