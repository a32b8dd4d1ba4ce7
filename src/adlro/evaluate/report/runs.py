"""What a picture of a schedule tells of each run beside when and where it was.

Dimensions: S rows of the log of spans, one for each GPU of each run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.model.state import PREEMPTION, WHOLE, Floats, Mask, Records

_NEARLY = 1e-9  # seconds: as in the rules of a run's timeline


class Runs(NamedTuple):
    """Facts of S rows of the log."""

    number: NDArray[np.int64]  # [S] 0 = the job's first run
    waited: Floats  # [S] seconds since the arrival, or since its last run ended
    restoring: Floats  # [S] seconds of restoring a checkpoint that it began with


def retrace(spans: Records, jobs: Records) -> Runs:
    """Tell the runs of each job apart and what each began with.

    The log is in the order in which runs ended, a job's own runs therefore in that of time, with a
    row for each GPU of its gang.
    """
    order = np.argsort(spans["job"], kind="stable")
    rows, job = spans[order], jobs[spans["job"][order]]
    _, first, of = np.unique(rows["job"], return_index=True, return_inverse=True)
    number = (np.arange(len(rows)) - first[of]) // job["gpus"]
    before = np.maximum(np.arange(len(rows)) - job["gpus"], 0)  # the last run's row
    since = np.where(number > 0, rows["end"][before], job["arrival"])
    restoring = np.where(_saved(rows, job, number, before), job["checkpoint"], 0.0)
    back = np.argsort(order)
    return Runs(number[back], (rows["start"] - since)[back], restoring[back])


def _saved(
    rows: Records, job: Records, number: NDArray[np.int64], before: NDArray[np.int64]
) -> Mask:
    """Whether each run [S] began from a checkpoint; by job, before = row of the last run."""
    saved = np.zeros(len(rows), np.bool_)
    by_number = np.argsort(number, kind="stable")
    bounds = np.flatnonzero(np.diff(number[by_number])) + 1
    for group in np.split(by_number, bounds)[1:]:
        last = before[group]
        can, cost = job["checkpoint"][group] >= 0, np.maximum(job["checkpoint"][group], 0)
        length = rows["end"][last] - rows["start"][last]
        kept = length + _NEARLY >= job["interval"][group] + cost  # of one that restored nothing
        saved[group] = can & ((rows["why"][last] == PREEMPTION) | saved[last] | kept)
    return saved


class _Slice(NamedTuple):
    low: int  # thousandths of the row
    high: int
    end: float
    row: int


def _gap(beside: list[_Slice], share: int) -> int:
    """The lowest place for a slice beside others, sorted by place; it may be above the GPU."""
    low = 0
    for other in beside:
        if other.low - low >= share:
            break
        low = other.high
    return low


def lanes(spans: Records) -> tuple[Floats, Floats]:
    """Where in the row of its GPU each run is drawn: bottom [S] and height [S], in 0 to 1.

    Slices lie side by side, each as high as its share. Where those that come and go leave no gap
    large enough, all slices of that stretch of time are drawn thinner, so that none overlap.
    """
    low, height = np.zeros(len(spans)), spans["share"] / WHOLE
    sliced = np.flatnonzero(spans["share"] < WHOLE)
    sliced = sliced[np.lexsort((spans["job"][sliced], spans["start"][sliced]))]
    for gpu in np.unique(spans["gpu"][sliced]):
        active: list[_Slice] = []
        stretch: list[_Slice] = []
        for row in sliced[spans["gpu"][sliced] == gpu]:
            span = spans[row]
            active = [other for other in active if other.end > span["start"]]
            if not active:
                _settle(stretch, low, height)
                stretch = []
            place = _gap(active, span["share"])
            new = _Slice(place, place + int(span["share"]), float(span["end"]), int(row))
            active = sorted([*active, new])
            stretch.append(new)
        _settle(stretch, low, height)
    return low, height


def _settle(stretch: list[_Slice], low: Floats, height: Floats) -> None:
    """Write down the places of slices that were there without a pause between them."""
    top = max((part.high for part in stretch), default=0)
    scale = min(1.0, WHOLE / top) if top else 1.0
    for part in stretch:
        low[part.row] = part.low / WHOLE * scale
        height[part.row] = (part.high - part.low) / WHOLE * scale
