"""Errors of run-time estimates, measured on jobs that have ended."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.model.history import History
from adlro.model.state import Floats, Mask

_ROUNDING = 1e-9  # log seconds
_FACTOR_2 = np.log(2) + _ROUNDING
_TENTHS = 10


class Errors(NamedTuple):
    """Errors of estimates over a set of jobs: mean log error, shares near and below the truth."""

    jobs: int
    mae_log: float  # mean of |log(estimate / truth)|
    within_2: float  # share of the jobs with an estimate between half and twice the truth
    under: float  # share of the jobs with an estimate below the truth


def errors(estimate: Floats, log_s: Floats, counted: Mask) -> Errors:
    """Return the errors of run-time estimates against the true run times.

    Args:
        estimate: [J] log of the estimated seconds; nan = no estimate.
        log_s: [J] log of the true seconds; nan = unknown.
        counted: [J] jobs to compare; those without an estimate or a true run time are left out.
    """
    off = (estimate - log_s)[counted]
    off = off[~np.isnan(off)]
    if len(off) == 0:
        return Errors(0, np.nan, np.nan, np.nan)
    near, under = np.abs(off) <= _FACTOR_2, off < -_ROUNDING
    return Errors(len(off), float(np.abs(off).mean()), float(near.mean()), float(under.mean()))


def coverage(low: Floats, high: Floats, log_s: Floats, counted: Mask) -> float:
    """Return the share of the jobs whose run time is in its interval; nan = there are no jobs.

    Args:
        low: [J] lower end of the interval in log seconds; nan = unknown.
        high: [J] upper end.
        log_s: [J] log of the true seconds; nan = unknown.
        counted: [J] jobs to compare; those without an interval or a true run time are left out.
    """
    known = counted & ~np.isnan(low + high + log_s)
    if not known.any():
        return np.nan
    inside = (low - _ROUNDING <= log_s) & (log_s <= high + _ROUNDING)
    return float(inside[known].mean())


class Reliability(NamedTuple):
    """One row of a reliability table: what a confidence said, and what happened."""

    low: float  # confidences from this
    high: float  # to below this; in the last row up to and with it
    jobs: int
    confidence: float  # mean
    within_2: float  # share of the jobs with an estimate between half and twice the truth


def reliability(
    confidence: Floats, estimate: Floats, log_s: Floats, counted: Mask
) -> tuple[Reliability, ...]:
    """Return how often estimates were within a factor of 2, by their confidence in tenths.

    Rows without jobs are left out.

    Args:
        confidence: [J] 0 to 1.
        estimate: [J] log of the estimated seconds; nan = no estimate.
        log_s: [J] log of the true seconds; nan = unknown.
        counted: [J] jobs to compare; those without an estimate or a true run time are left out.
    """
    known = counted & ~np.isnan(estimate + log_s)
    tenth = np.minimum((confidence * _TENTHS).astype(np.int64), _TENTHS - 1)
    near = np.abs(estimate - log_s) <= _FACTOR_2
    rows = []
    for at in np.unique(tenth[known]).tolist():
        here = known & (tenth == at)
        means = (float(confidence[here].mean()), float(near[here].mean()))
        rows.append(Reliability(at / _TENTHS, (at + 1) / _TENTHS, int(here.sum()), *means))
    return tuple(rows)


def later_part(history: History, share: float) -> Mask:
    """Return a mask [J] of the jobs submitted after the first `share` (0 to 1) of all jobs.

    Jobs are ranked by submission time; jobs without a submission time are not in the mask.
    """
    place = np.empty(history.rows, np.int64)
    place[np.argsort(history.submit_s, kind="stable")] = np.arange(history.rows)
    known = int((~np.isnan(history.submit_s)).sum())
    later: Mask = (place >= int(share * known)) & ~np.isnan(history.submit_s)
    return later
