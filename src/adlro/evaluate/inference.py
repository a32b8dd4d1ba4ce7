"""Tests and effect sizes of paired differences: Wilcoxon's signed ranks, Holm, Cohen's dz.

Written out here because scipy.stats takes longer to import than most comparisons take to run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from adlro.model.state import Floats

FEWEST_PAIRS = 6  # that differ: with 5, the smallest p there is, 2 / 2^5, is above 5 %
_EXACT = 50  # pairs up to which p is exact
_SAME = 1e-9  # share of their mean by which two equal figures may differ from rounding


class Paired(NamedTuple):
    """How two policies differ over the same seeds; None = not defined, or too few seeds."""

    p_wilcoxon: float | None  # two-sided
    dz: float | None  # mean / standard deviation of the differences
    rank_biserial: float | None  # -1 = smaller on every seed, 1 = larger on every seed


def _ranks(sizes: Floats) -> tuple[Floats, Floats]:
    """Rank of each size from 1, ties sharing the mean of theirs, and how many each tie has."""
    _, place, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    return middle[place], counts.astype(np.float64)


def _exact_p(ranks: Floats, positive: float) -> float:
    """Two-sided p of a sum of positive ranks when each sign is a fair coin, ties included."""
    doubled = np.rint(2 * ranks).astype(np.int64)  # ranks of ties end in .5
    odds = np.zeros(int(doubled.sum()) + 1)
    odds[0] = 1.0
    for rank in doubled.tolist():
        odds[rank:] += odds[: len(odds) - rank].copy()
        odds /= 2
    at = round(2 * positive)
    return min(1.0, 2 * min(float(odds[: at + 1].sum()), float(odds[at:].sum())))


def _normal_p(ranks: Floats, ties: Floats, positive: float) -> float:
    """The same by the normal law, with corrections for ties and for continuity."""
    count = len(ranks)
    variance = count * (count + 1) * (2 * count + 1) / 24 - float((ties**3 - ties).sum()) / 48
    distance = abs(positive - count * (count + 1) / 4)
    return min(1.0, 2 * float(ndtr(-max(distance - 0.5, 0.0) / math.sqrt(variance))))


def paired(ours: Floats, theirs: Floats) -> Paired:
    """Test and effect sizes of ours - theirs, [S] each.

    Seeds without a difference are left out of the ranks, as Wilcoxon did.
    """
    apart = ours - theirs
    apart[np.abs(apart) <= _SAME * (np.abs(ours) + np.abs(theirs)) / 2] = 0.0
    rounding = _SAME * float(np.abs(ours).mean() + np.abs(theirs).mean()) / 2
    sd = float(np.std(apart, ddof=1)) if len(apart) > 1 else 0.0
    dz = float(apart.mean()) / sd if sd > rounding else None
    moved = apart[apart != 0]
    if len(moved) == 0:
        return Paired(None, dz, None)
    ranks, ties = _ranks(np.rint(np.abs(moved) / rounding))
    positive, total = float(ranks[moved > 0].sum()), float(ranks.sum())
    biserial = (2 * positive - total) / total
    if len(moved) < FEWEST_PAIRS:
        return Paired(None, dz, biserial)
    is_exact = len(moved) <= _EXACT
    p = _exact_p(ranks, positive) if is_exact else _normal_p(ranks, ties, positive)
    return Paired(p, dz, biserial)


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Holm's correction of a family of tests; those without a p do not count into it."""
    known = sorted((value, i) for i, value in enumerate(p) if value is not None)
    corrected: list[float | None] = [None] * len(p)
    largest = 0.0
    for rank, (value, i) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * value))
        corrected[i] = largest
    return corrected
