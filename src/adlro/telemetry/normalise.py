"""Learns the bounds of telemetry readings: for each GPU model, which readings become 0 and 1.

This is the only place that computes bounds, and features/telemetry_kernel.py is the only place that
applies them; policies/loading/telemetry_ranges.py hands them over with a policy's weights.

The learned state is a histogram of fixed bins for each model and channel. The order of readings
therefore does not matter, and states from several hosts can be added. The bounds are quantiles, so
a few outliers do not move them. Dimensions: G GPUs, M models, C channels, L learned channels, B
bins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.errors import ConfigError, TelemetryError
from adlro.model.cluster import MB_PER_GB
from adlro.model.gpu import find
from adlro.model.state import Counts, Floats
from adlro.telemetry.sample import CHANNELS, COLUMN, LONGEST_NAME, is_name

LEARNED = ("memory_used", "temperature", "power")  # the other channels need no bounds
BINS = 512

_IS_LOG = {"memory_used": True, "temperature": False, "power": True}
_LOW, _HIGH = 0.02, 0.98  # the quantiles that become 0 and 1
_HALF = 200.0  # readings after which the quantiles weigh as much as the catalogue's range
_NARROWEST = 0.1  # share of the catalogue's range: the noise of an idle GPU is not magnified
_DEGREES = (30.0, 85.0)
_UNKNOWN_MB, _UNKNOWN_W = 32.0 * MB_PER_GB, 350.0
_MOST_MODELS = 10_000
MODELS, COUNTS = "telemetry_models", ("telemetry_counts", "telemetry_outside")  # arrays of a state
_KEYS = (MODELS, *COUNTS)


class Norm(NamedTuple):
    """The learned state: histograms of the readings observed so far."""

    models: tuple[str, ...]  # [M] sorted
    counts: Counts  # [M, L, B] readings in each bin
    outside: Counts  # [M, L] readings beyond the channel's limits, in no bin


def empty() -> Norm:
    """Return the state before any reading."""
    return Norm((), np.zeros((0, len(LEARNED), BINS), np.int64), np.zeros((0, len(LEARNED)), int))


def _place(name: str, values: Floats) -> Floats:
    """Return where values lie between a channel's limits, 0 to 1, on the scale of its bins."""
    channel = CHANNELS[COLUMN[name]]
    if _IS_LOG[name]:
        return np.asarray(np.log1p(values) / math.log1p(channel.most))
    return (values - channel.least) / (channel.most - channel.least)


def _value(name: str, place: float) -> float:
    """Return the value at a position, 0 to 1: the inverse of `_place`."""
    channel = CHANNELS[COLUMN[name]]
    if _IS_LOG[name]:
        return math.expm1(place * math.log1p(channel.most))
    return channel.least + place * (channel.most - channel.least)


def observe(norm: Norm, models: Sequence[str], values: Floats) -> Norm:
    """Return the state after adding the readings of some GPUs.

    Args:
        norm: the state before, which is not changed.
        models: [G] names of the GPUs' models.
        values: [G, C] of a sample; NaN = missing. The caller leaves out old readings.

    Raises:
        TelemetryError: a model's name cannot be stored.
    """
    names = sorted(set(models))
    for name in names:
        if not is_name(name):
            raise TelemetryError(f"{name[:80]!r} is not the name of a GPU model")
    row = np.array([names.index(model) for model in models], np.int64)
    counts = np.zeros((len(names), len(LEARNED), BINS), np.int64)
    outside = np.zeros((len(names), len(LEARNED)), np.int64)
    for c, name in enumerate(LEARNED):
        channel, column = CHANNELS[COLUMN[name]], values[:, COLUMN[name]]
        fits = (column >= channel.least) & (column <= channel.most)
        bins = (_place(name, column[fits]) * BINS).astype(np.int64).clip(0, BINS - 1)
        cells = np.bincount(row[fits] * BINS + bins, minlength=len(names) * BINS)
        counts[:, c] = cells.reshape(len(names), BINS)
        beyond = row[~fits & ~np.isnan(column)]
        outside[:, c] = np.bincount(beyond, minlength=len(names))
    return merge(norm, Norm(tuple(names), counts, outside))


def merge(one: Norm, other: Norm) -> Norm:
    """Return the sum of two states: the state after the readings of both."""
    models = tuple(sorted({*one.models, *other.models}))
    counts = np.zeros((len(models), len(LEARNED), BINS), np.int64)
    outside = np.zeros((len(models), len(LEARNED)), np.int64)
    for part in (one, other):
        rows = [models.index(name) for name in part.models]
        counts[rows] += part.counts
        outside[rows] += part.outside
    return Norm(models, counts, outside)


@cache
def _published(model: str) -> dict[str, tuple[float, float]]:
    """Return the range of each learned channel: the catalogue's, or a default for other models."""
    try:
        gpu = find(model)
        memory_mb, power_w = gpu.memory_gb * MB_PER_GB, gpu.tdp_w or _UNKNOWN_W
    except ConfigError:
        memory_mb, power_w = _UNKNOWN_MB, _UNKNOWN_W
    return {"memory_used": (0.0, memory_mb), "temperature": _DEGREES, "power": (0.0, power_w)}


def _quantile(name: str, counts: Counts, share: float) -> float:
    total = np.cumsum(counts)
    target = share * total[-1]
    at = int(np.searchsorted(total, target))
    within = (target - (total[at] - counts[at])) / counts[at]
    return _value(name, (at + float(within)) / BINS)


def bounds(norm: Norm, model: str, name: str) -> tuple[float, float]:
    """Return the two readings of a model in a learned channel that become 0 and 1.

    They move from the catalogue's range to the observed quantiles as more readings are observed.
    """
    low, high = _published(model)[name]
    narrowest = _NARROWEST * (high - low)
    if model in norm.models:
        counts = norm.counts[norm.models.index(model), LEARNED.index(name)]
        seen = int(counts.sum())
        if seen:
            weight = seen / (seen + _HALF)
            low += weight * (_quantile(name, counts, _LOW) - low)
            high += weight * (_quantile(name, counts, _HIGH) - high)
    return low, max(high, low + narrowest)


def to_arrays(norm: Norm) -> dict[str, NDArray[np.generic]]:
    """Return the state as plain arrays, as they are stored in the .npz of a policy."""
    return dict(zip(_KEYS, (np.array(norm.models, "U"), norm.counts, norm.outside), strict=True))


def from_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> Norm:
    """Rebuild the state from the arrays that `to_arrays` returned.

    Raises:
        TelemetryError: an array is missing or damaged.
    """
    missing = [key for key in _KEYS if key not in arrays]
    if missing:
        raise TelemetryError(f"the learned telemetry bounds lack {', '.join(missing)}")
    models, counts, outside = (arrays[key] for key in _KEYS)
    shape = (len(models) if models.ndim == 1 else -1, len(LEARNED))
    names = [str(name) for name in models.ravel()]
    is_sound = (
        models.dtype.kind == "U"
        and len(names) <= _MOST_MODELS
        and max(map(len, names), default=0) <= LONGEST_NAME
        and names == sorted(set(names))
        and counts.dtype == np.int64
        and outside.dtype == np.int64
        and (counts.shape, outside.shape) == ((*shape, BINS), shape)
        and all(array.min(initial=0) >= 0 for array in (counts, outside))
    )
    if not is_sound:
        raise TelemetryError("the learned telemetry bounds are damaged; train again")
    return Norm(tuple(names), counts.astype(np.int64), outside.astype(np.int64))
