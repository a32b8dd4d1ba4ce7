"""Derives from the spans of a schedule each run's number, wait and position in a Gantt chart.

Dimensions: S spans, one for each GPU of each run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.model.state import PREEMPTION, WHOLE, Floats, Mask, Records

_TOLERANCE_S = 1e-9  # as in model/timeline.py


class RunDetails(NamedTuple):
    """Number, wait and restore time of the run that each of S spans belongs to."""

    number: NDArray[np.int64]  # [S] 0 = the job's first run
    waited: Floats  # [S] seconds from the job's arrival, or the end of its previous run, to the run
    restoring: Floats  # [S] seconds that the run first spends restoring a checkpoint


def run_details(spans: Records, jobs: Records) -> RunDetails:
    """Return for each span the number, wait and restore time of its run.

    Spans must be ordered by the end of the run, so that those of one job are in chronological
    order, with one span for each GPU of its gang.
    """
    order = np.argsort(spans["job"], kind="stable")
    rows, job = spans[order], jobs[spans["job"][order]]
    _, first, of = np.unique(rows["job"], return_index=True, return_inverse=True)
    number = (np.arange(len(rows)) - first[of]) // job["gpus"]
    before = np.maximum(np.arange(len(rows)) - job["gpus"], 0)  # a span of the previous run
    since = np.where(number > 0, rows["end"][before], job["arrival"])
    restoring = np.where(_has_checkpoint(rows, job, number, before), job["checkpoint"], 0.0)
    back = np.argsort(order)
    return RunDetails(number[back], (rows["start"] - since)[back], restoring[back])


def _has_checkpoint(
    rows: Records, job: Records, number: NDArray[np.int64], before: NDArray[np.int64]
) -> Mask:
    """Return whether the run of each span [S] began from a checkpoint.

    Args:
        rows: [S] spans, ordered by job.
        job: [S] the job of each span.
        number: [S] the number of its run, from 0.
        before: [S] index of a span of the job's previous run.
    """
    saved = np.zeros(len(rows), np.bool_)
    by_number = np.argsort(number, kind="stable")
    bounds = np.flatnonzero(np.diff(number[by_number])) + 1
    for group in np.split(by_number, bounds)[1:]:
        last = before[group]
        can, cost = job["checkpoint"][group] >= 0, np.maximum(job["checkpoint"][group], 0)
        length = rows["end"][last] - rows["start"][last]
        checkpointed = length + _TOLERANCE_S >= job["interval"][group] + cost  # without restoring
        saved[group] = can & ((rows["why"][last] == PREEMPTION) | saved[last] | checkpointed)
    return saved


class _Slice(NamedTuple):
    low: int  # thousandths of the row
    high: int
    end: float
    row: int


def _lowest_gap(beside: list[_Slice], share: int) -> int:
    """Return the lowest free position for a slice of size `share` beside others.

    `beside` is sorted by position. If no gap is large enough, the slice ends above the GPU's row.
    """
    low = 0
    for other in beside:
        if other.low - low >= share:
            break
        low = other.high
    return low


def lanes(spans: Records) -> tuple[Floats, Floats]:
    """Return the bottom [S] and height [S] of each span, as shares of the row of its GPU.

    Slices are stacked, each as high as its share. Where no gap is large enough for a new slice, all
    slices of that busy period are drawn thinner so that none overlap.
    """
    low, height = np.zeros(len(spans)), spans["share"] / WHOLE
    sliced = np.flatnonzero(spans["share"] < WHOLE)
    sliced = sliced[np.lexsort((spans["job"][sliced], spans["start"][sliced]))]
    for gpu in np.unique(spans["gpu"][sliced]):
        active: list[_Slice] = []
        period: list[_Slice] = []
        for row in sliced[spans["gpu"][sliced] == gpu]:
            span = spans[row]
            active = [other for other in active if other.end > span["start"]]
            if not active:
                _scale_to_fit(period, low, height)
                period = []
            place = _lowest_gap(active, span["share"])
            new = _Slice(place, place + int(span["share"]), float(span["end"]), int(row))
            active = sorted([*active, new])
            period.append(new)
        _scale_to_fit(period, low, height)
    return low, height


def _scale_to_fit(period: list[_Slice], low: Floats, height: Floats) -> None:
    """Write bottom and height of the slices of one busy period, scaled down to fit the row."""
    top = max((part.high for part in period), default=0)
    scale = min(1.0, WHOLE / top) if top else 1.0
    for part in period:
        low[part.row] = part.low / WHOLE * scale
        height[part.row] = (part.high - part.low) / WHOLE * scale
