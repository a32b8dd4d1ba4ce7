"""The calibration of estimates (calibration_kernel.py) as part of a saved file."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from adlro.estimates.calibration_kernel import (
    KINDS,
    LEAST_SCALE,
    RELIABILITY_BINS,
    Z_BINS,
    Calibration,
    remember,
)
from adlro.model.record import Record

# A file may come from outside: its numbers have bounds, so that compiled code cannot fail on them.
LogSeconds = Annotated[float, Field(ge=-700, le=700)]  # also of speeds: their exp is finite
Amount = Annotated[float, Field(ge=0, le=1e15)]
_Scale = Annotated[float, Field(ge=LEAST_SCALE, le=700)]
_Raw = Annotated[float, Field(ge=-1e-9, le=1 + 1e-9)]
_Bin = Annotated[int, Field(ge=0, lt=Z_BINS)]
_Kind = Annotated[int, Field(ge=0, lt=KINDS)]
_Source = Annotated[int, Field(ge=0, lt=1 << 62)]
_Forecast = tuple[LogSeconds | None, _Scale, _Scale, _Raw, _Kind]  # FORECAST; None = no estimate


def _refuse_more_hits(found: tuple[float, float]) -> tuple[float, float]:
    if found[1] > found[0]:
        raise ValueError("more hits than jobs")
    return found


_Hits = Annotated[tuple[Amount, Amount], AfterValidator(_refuse_more_hits)]


class SavedCalibration(Record):
    """A calibration in a file: see Calibration for the meaning of its parts."""

    counts: tuple[dict[_Bin, Amount], ...]  # bins that are not 0
    sizes: tuple[tuple[Amount, Amount], ...]
    hits: tuple[_Hits, ...]
    waiting: dict[_Source, tuple[_Forecast, ...]]


def saved_calibration(cal: Calibration) -> SavedCalibration:
    """Return a calibration as it is written to a file."""
    rows = np.flatnonzero(cal.keys)
    return SavedCalibration(
        counts=tuple({int(b): float(row[b]) for b in np.flatnonzero(row)} for row in cal.counts),
        sizes=tuple((float(one), float(other)) for one, other in cal.sizes),
        hits=tuple((float(one), float(other)) for one, other in cal.hits),
        waiting={
            int(cal.keys[row]) - 1: tuple(
                (None if math.isnan(centre) else centre, low, high, raw, kind)
                for centre, low, high, raw, kind in cal.waiting[row].tolist()
            )
            for row in rows
        },
    )


def restore(cal: Calibration, saved: SavedCalibration) -> bool:
    """Fill an empty calibration from a file; False if the file is not one of its shape."""
    models = len(cal.latest)
    if (len(saved.counts), len(saved.sizes), len(saved.hits)) != (
        KINDS + 1,
        KINDS + 1,
        RELIABILITY_BINS,
    ) or any(len(row) != models for row in saved.waiting.values()):
        return False
    for row, bins in zip(cal.counts, saved.counts, strict=True):
        row[list(bins)] = list(bins.values())
    cal.sizes[:], cal.hits[:] = saved.sizes, saved.hits
    for source, rows in saved.waiting.items():
        for k, (centre, *rest) in enumerate(rows):
            cal.latest[k] = (math.nan if centre is None else centre, *rest)
        remember(cal, source)
    return True


def copy_into(cal: Calibration, other: Calibration) -> None:
    """Make a calibration of the same shape equal to another one."""
    for own, array in zip(cal, other, strict=True):
        own[...] = array
