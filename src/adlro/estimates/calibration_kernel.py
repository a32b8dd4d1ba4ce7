"""How far estimates are off, learned from ended jobs: quantiles and calibrated confidences.

An estimate comes with a scale below and one above it, in log seconds: how far its sources differ,
shrunk towards the mean error of estimates of the same kind. When the job ends, its error divided by
the scale is counted in a histogram of that kind. Quantiles of an estimate are those of the
histogram times its scales, and its raw confidence is the share of the histogram within a factor of
2. A table of how often that was right corrects the confidence.

The estimate is kept from the submission of a job until its end, so the histogram holds errors of
estimates as they were made. Dimensions: B kinds of estimates, Z bins, R bins of confidence, P jobs
that are remembered until they end, K GPU models (1 without models), Q probabilities.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, wide
from adlro.features.hypervectors.encode_kernel import mixed
from adlro.model.state import Counts, Floats, Records, Row

PROBABILITIES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
BY_REQUEST, BY_MEDIAN = 0, 1  # kinds of estimates without a similar job
_OUTCOMES, _SPREADS = (0.01, 0.5, 2.0, 6.0), (0.1, 0.7)  # limits of the other kinds
KINDS = 2 + (len(_OUTCOMES) + 1) * (len(_SPREADS) + 1)
Z_BINS, _REACH, _SHARP = 241, 9.0, 4.0  # bins of sign(z) * log(1 + 4 |z|), up to +-9
RELIABILITY_BINS = 10
WAITING = 8192  # jobs whose estimates are remembered until they end
FACTOR_2 = math.log(2.0)
_COLD_S, _COLD_JOBS = 2.0, 2.0  # assumed mean |log error|, and the jobs that it counts for
LEAST_SCALE = 0.02  # smallest scale: run times are whole seconds
_PER_MEAN = 1.6  # distance of the 10 % quantile / mean |error| of a normal distribution
_SHRINK = 3.0  # outcomes after which their own spread counts half
_KIND_JOBS, _ALL_JOBS, _PRIOR_JOBS = 5.0, 10.0, 5.0  # jobs that kind, all and prior count for
_MEMORY, _ALL_MEMORY = 1000.0, 4000.0  # jobs after which a count has fallen to 1/e
_RAW_JOBS, _MOST_CONFIDENT = 20.0, 500.0  # jobs that a raw confidence counts for; most in a bin
_DOUBT, _DOUBT_JOBS = 0.25, 2.0  # confidence when nothing is known, and the jobs it counts for
_TAIL = math.log(9.0)  # a logistic distribution has its 10 % and 90 % quantiles at -1 and 1

FORECAST = np.dtype(
    [
        ("centre", "f8"),  # estimated log seconds; nan = no estimate
        ("low", "f8"),  # scale below it
        ("high", "f8"),  # scale above it
        ("raw", "f8"),  # confidence before its correction
        ("kind", "i8"),  # row of the histograms
    ],
    align=True,
)


class Calibration(NamedTuple):
    """Errors of estimates of ended jobs, and the estimates of jobs that have not ended."""

    counts: Floats  # [B + 1, Z] errors / scale; the last row: of all kinds
    sizes: Floats  # [B + 1, 2] mean |log error|, and the jobs learned
    hits: Floats  # [R, 2] jobs with this raw confidence, and those within a factor of 2
    prior: Floats  # [Z] shares of the bins if nothing is known
    keys: Counts  # [P] 1 + source of the job; 0 = none
    waiting: Records  # [P, K] FORECAST
    latest: Records  # [K] FORECAST of the job estimated last
    share: Floats  # [Z] scratch
    spare: Floats  # [Q] scratch


def _edge(b: int) -> float:
    """Return the lower edge of a bin."""
    t = _REACH * (2.0 * b / Z_BINS - 1.0)
    return math.copysign(math.expm1(abs(t)) / _SHARP, t)


EDGES = np.array([_edge(b) for b in range(Z_BINS + 1)])
_PROBABILITIES = np.array(PROBABILITIES)


def calibration(models: int) -> Calibration:
    """Return a calibration that has learned nothing, for K = `models` GPU models."""
    below = 1.0 / (1.0 + np.exp(-np.clip(_TAIL * EDGES, -700.0, 700.0)))
    below[0], below[-1] = 0.0, 1.0
    return Calibration(
        np.zeros((KINDS + 1, Z_BINS)),
        np.zeros((KINDS + 1, 2)),
        np.zeros((RELIABILITY_BINS, 2)),
        np.diff(below),
        np.zeros(WAITING, np.int64),
        np.zeros((WAITING, models), FORECAST),
        np.zeros(models, FORECAST),
        np.zeros(Z_BINS),
        np.zeros(len(PROBABILITIES)),
    )


@njit
def _bin(z: float) -> int:
    t = math.copysign(math.log1p(_SHARP * abs(z)), z)
    return min(max(int((t / _REACH + 1.0) * 0.5 * Z_BINS), 0), Z_BINS - 1)


@njit
def kind_of(outcomes: float, spread: float) -> int:
    """Return the kind of an estimate from so many outcomes that differ by `spread` log seconds."""
    found = 2
    for limit in _OUTCOMES:
        if outcomes >= limit:
            found += len(_SPREADS) + 1
    for limit in _SPREADS:
        if spread >= limit:
            found += 1
    return found


@njit
def _size(cal: Calibration, kind: int) -> float:
    """Return the mean |log error| of a kind, shrunk towards that of all and that when cold."""
    every, own = cal.sizes[KINDS], cal.sizes[kind]
    typical = (every[0] * every[1] + _COLD_S * _COLD_JOBS) / (every[1] + _COLD_JOBS)
    return float((own[0] * own[1] + typical * _KIND_JOBS) / (own[1] + _KIND_JOBS))


@njit
def forecast(
    cal: Calibration, centre: float, low: float, high: float, outcomes: float, kind: int, out: Row
) -> None:
    """Write an estimate with its scales to `out`, a FORECAST.

    Args:
        cal: what is known of errors.
        centre: estimated log seconds; nan = no estimate.
        low: distance in log seconds to the 10 % quantile of the sources; 0 = not known.
        high: distance to the 90 % quantile.
        outcomes: number of outcomes that these two come from; 0 = they are not known.
        kind: row of the histograms.
        out: receives it.
    """
    usual = _SHRINK * _PER_MEAN * _size(cal, kind)
    out.centre, out.kind, out.raw = centre, kind, 0.0
    out.low = max((outcomes * low + usual) / (outcomes + _SHRINK), LEAST_SCALE)
    out.high = max((outcomes * high + usual) / (outcomes + _SHRINK), LEAST_SCALE)


@njit
def _within(share: Floats, total: float, z: float) -> float:
    """Return the share of a histogram below z."""
    last, below = _bin(z), 0.0
    for b in range(last):
        below += share[b]
    part = (z - EDGES[last]) / (EDGES[last + 1] - EDGES[last])
    return float((below + share[last] * min(max(part, 0.0), 1.0)) / total)


@njit
def describe(cal: Calibration, found: Row, out: Floats) -> float:
    """Write the quantiles of an estimate to `out` [Q] in log seconds, and return its confidence.

    Args:
        cal: what is known of errors.
        found: the estimate, a FORECAST; its raw confidence is set.
        out: [Q] receives the quantiles for PROBABILITIES; nan without an estimate.

    Returns:
        The probability that the estimate is within a factor of 2 of the run time, 0 to 1.
    """
    if math.isnan(found.centre):
        out[:] = np.nan
        return 0.0
    counts, every, share = cal.counts[found.kind], cal.counts[KINDS], cal.share
    known = 0.0
    for b in range(Z_BINS):
        known += every[b]
    each, total = _ALL_JOBS / (known + _PRIOR_JOBS), 0.0
    for b in range(Z_BINS):
        share[b] = counts[b] + each * (every[b] + _PRIOR_JOBS * cal.prior[b])
        total += share[b]
    b, below = 0, 0.0
    for q in range(len(out)):
        need = _PROBABILITIES[q] * total
        while b < Z_BINS - 1 and below + share[b] < need:
            below += share[b]
            b += 1
        part = (need - below) / share[b] if share[b] > 0.0 else 0.0
        z = EDGES[b] + min(max(part, 0.0), 1.0) * (EDGES[b + 1] - EDGES[b])
        out[q] = found.centre + z * (found.low if z < 0.0 else found.high)
    upper, lower = FACTOR_2 / found.high, -FACTOR_2 / found.low
    found.raw = _within(share, total, upper) - _within(share, total, lower)
    row = cal.hits[min(int(found.raw * RELIABILITY_BINS), RELIABILITY_BINS - 1)]
    right = row[1] + _RAW_JOBS * found.raw + _DOUBT_JOBS * _DOUBT
    return float(right / (row[0] + _RAW_JOBS + _DOUBT_JOBS))


@njit
def observe(cal: Calibration, found: Row, log_s: float) -> None:
    """Learn how far an estimate was off: the job ended after `log_s` log seconds.

    Of n jobs the later half counts most, so that the errors of a cold start are soon forgotten.
    """
    if math.isnan(found.centre):
        return
    off = log_s - found.centre
    place = _bin(off / (found.low if off < 0.0 else found.high))
    for row, memory in ((found.kind, _MEMORY), (wide(KINDS), _ALL_MEMORY)):
        counts, size = cal.counts[row], cal.sizes[row]
        size[1] += 1.0
        rate = max(2.0 / (size[1] + 1.0), 1.0 / memory)
        for b in range(Z_BINS):
            counts[b] *= 1.0 - rate
        counts[place] += 1.0
        size[0] += rate * (abs(off) - size[0])
    row = cal.hits[min(int(found.raw * RELIABILITY_BINS), RELIABILITY_BINS - 1)]
    keep = 1.0 if row[0] < _MOST_CONFIDENT else 1.0 - 1.0 / _MOST_CONFIDENT
    row[0] = keep * row[0] + 1.0
    row[1] = keep * row[1] + (1.0 if abs(off) <= FACTOR_2 else 0.0)


@njit
def _place(cal: Calibration, source: int) -> int:
    return int(wide(mixed(np.uint64(1), wide(source))) & (len(cal.keys) - 1))


@njit
def remember(cal: Calibration, source: int) -> None:
    """Keep the latest estimate until the job with this id ends; a later one may take its place."""
    place = _place(cal, source)
    cal.keys[place] = source + 1
    for k in range(len(cal.latest)):
        cal.waiting[place, k] = cal.latest[k]


@njit
def recollect(cal: Calibration, source: int) -> bool:
    """Make the estimate that was kept for a job the latest one; False if there is none."""
    place = _place(cal, source)
    if cal.keys[place] != source + 1:
        return False
    cal.keys[place] = 0
    for k in range(len(cal.latest)):
        cal.latest[k] = cal.waiting[place, k]
    return True
