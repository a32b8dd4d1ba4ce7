"""Readings as numbers in [0, 1], by what GPUs of the same model have shown so far.

What is learned are counts in fixed bins. So all that was seen in one go, GPU after GPU or on
several hosts gives the same state, in any order, and states add up. A range ends at quantiles: a
few wild readings do not move it. Dimensions: G GPUs, M models, C channels, L learned channels,
B bins.
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
from adlro.model.state import Counts, Floats, Mask
from adlro.telemetry.sample import CHANNELS, COLUMN, LONGEST_NAME, is_name

LEARNED = ("memory_used", "temperature", "power")
SHARES = ("utilisation", "bandwidth")  # in [0, 1] as they come
SCALED = (*SHARES, *LEARNED, "errors")  # the columns of what comes out
BINS = 512

_IS_LOG = {"memory_used": True, "temperature": False, "power": True}
_LOW, _HIGH = 0.02, 0.98  # the quantiles that become 0 and 1
_HALF = 200.0  # readings after which what was seen weighs as much as the catalogue
_NARROWEST = 0.1  # of the catalogue's range: an idle GPU's noise is not stretched to [0, 1]
_DEGREES = (30.0, 85.0)
_UNKNOWN_MB, _UNKNOWN_W = 32.0 * MB_PER_GB, 350.0
_MOST_MODELS = 10_000
MODELS, COUNTS = "telemetry_models", ("telemetry_counts", "telemetry_outside")  # arrays of a state
_KEYS = (MODELS, *COUNTS)


class Norm(NamedTuple):
    """What has been seen."""

    models: tuple[str, ...]  # [M] sorted
    counts: Counts  # [M, L, B] readings in each bin
    outside: Counts  # [M, L] readings beyond the channel's range, in no bin


class Scaled(NamedTuple):
    """Readings ready for a network: it reads np.where(known, values, 0) and known."""

    values: Floats  # [G, SCALED] in [0, 1]; NaN = missing
    known: Mask  # [G, SCALED]
    clipped: Counts  # [SCALED] how many lay beyond their range and became 0 or 1


def empty() -> Norm:
    """Nothing seen yet."""
    return Norm((), np.zeros((0, len(LEARNED), BINS), np.int64), np.zeros((0, len(LEARNED)), int))


def _place(name: str, values: Floats) -> Floats:
    """Where values lie in a channel's range, 0 to 1, by the scale of its bins."""
    channel = CHANNELS[COLUMN[name]]
    if _IS_LOG[name]:
        return np.asarray(np.log1p(values) / math.log1p(channel.most))
    return (values - channel.least) / (channel.most - channel.least)


def _value(name: str, place: float) -> float:
    """The reverse of _place."""
    channel = CHANNELS[COLUMN[name]]
    if _IS_LOG[name]:
        return math.expm1(place * math.log1p(channel.most))
    return channel.least + place * (channel.most - channel.least)


def observe(norm: Norm, models: Sequence[str], values: Floats) -> Norm:
    """The state with the readings of some GPUs more.

    Args:
        norm: what has been seen before; is not changed.
        models: [G].
        values: [G, C] of a sample; NaN = missing. Leave out what is old.

    Raises:
        TelemetryError: a model's name is not one that can be stored.
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
    """What two have seen together."""
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
    """The range of each learned channel by the catalogue, or that of a usual GPU."""
    try:
        gpu = find(model)
        memory_mb, power_w = gpu.memory_gb * MB_PER_GB, gpu.tdp_w
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
    """The readings of a learned channel that become 0 and 1.

    They go from the catalogue's range to the quantiles of what was seen, as more is seen.
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


def scale(norm: Norm, models: Sequence[str], values: Floats) -> Scaled:
    """Readings in [0, 1]; what is missing stays missing.

    Args:
        norm: what has been seen.
        models: [G].
        values: [G, C] of a sample; NaN = missing.
    """
    out = np.full((len(models), len(SCALED)), np.nan)
    for name in SHARES:
        out[:, SCALED.index(name)] = values[:, COLUMN[name]]
    for name in LEARNED:
        ranges = {model: bounds(norm, model, name) for model in set(models)}
        low, high = np.array([ranges[model] for model in models]).reshape(-1, 2).T
        out[:, SCALED.index(name)] = (values[:, COLUMN[name]] - low) / (high - low)
    errors = values[:, COLUMN["errors"]]
    share = 1 - 1 / (np.maximum(errors, 0.0) + 1)  # n / (n + 1): the first error says the most
    out[:, SCALED.index("errors")] = np.where(errors < 0, errors, share)
    clipped = ((out < 0) | (out > 1)).sum(axis=0)
    return Scaled(np.clip(out, 0.0, 1.0), ~np.isnan(out), clipped)


def to_arrays(norm: Norm) -> dict[str, NDArray[np.generic]]:
    """The state as plain arrays, to be stored in the .npz of a policy."""
    return dict(zip(_KEYS, (np.array(norm.models, "U"), norm.counts, norm.outside), strict=True))


def from_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> Norm:
    """The state that to_arrays wrote.

    Raises:
        TelemetryError: the arrays are not that.
    """
    missing = [key for key in _KEYS if key not in arrays]
    if missing:
        raise TelemetryError(f"what was learned about telemetry lacks {', '.join(missing)}")
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
        raise TelemetryError("what was learned about telemetry is damaged; learn it anew")
    return Norm(tuple(names), counts.astype(np.int64), outside.astype(np.int64))
