"""Details of the runs in a schedule, derived from its spans.

Dimensions: S spans, one for each GPU of each run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.model.state import PREEMPTION, WHOLE, Floats, Mask, Records

_TOLERANCE_S = 1e-9  # as in model/timeline.py


class RunDetails(NamedTuple):
    """Details of S spans."""

    number: NDArray[np.int64]  # [S] 0 = the job's first run
    waited: Floats  # [S] seconds since the arrival or the end of its previous run
    restoring: Floats  # [S] seconds of restoring a checkpoint at its start


def run_details(spans: Records, jobs: Records) -> RunDetails:
    """Number the runs of each job and find how long each waited and restored.

    Spans are ordered by the end of the run, so those of one job are in chronological order, with
    one span for each GPU of its gang.
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
    """Whether each run [S] began from a checkpoint; `before` [S] is a span of its previous run."""
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
    """Lowest position for a slice beside others, sorted by position; may exceed the GPU."""
    low = 0
    for other in beside:
        if other.low - low >= share:
            break
        low = other.high
    return low


def lanes(spans: Records) -> tuple[Floats, Floats]:
    """Vertical position of each span in the row of its GPU: bottom [S] and height [S], in 0 to 1.

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
    """Store the positions of the slices of one busy period, scaled to fit the row."""
    top = max((part.high for part in period), default=0)
    scale = min(1.0, WHOLE / top) if top else 1.0
    for part in period:
        low[part.row] = part.low / WHOLE * scale
        height[part.row] = (part.high - part.low) / WHOLE * scale
