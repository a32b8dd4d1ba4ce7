"""The running median of all ended jobs' run times, from a histogram of log seconds; compiled."""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit
from adlro.model.state import Floats

BINS, BINS_PER_LOG = 600, 25.0  # up to e^24 seconds


@njit
def count_in(histogram: Floats, log_s: float) -> None:
    """Add one run time, in log seconds, to the histogram [BINS]."""
    place = int(log_s * BINS_PER_LOG)
    histogram[min(max(place, 0), BINS - 1)] += 1.0


@njit
def median_of(histogram: Floats) -> float:
    """Return the median of a histogram, in log seconds to 1 / BINS_PER_LOG; nan = it is empty."""
    total = 0.0
    for b in range(BINS):
        total += histogram[b]
    below = 0.0
    for b in range(BINS):
        if histogram[b] > 0 and below + histogram[b] >= total / 2:
            return float((b + (total / 2 - below) / histogram[b]) / BINS_PER_LOG)
        below += histogram[b]
    return np.nan
