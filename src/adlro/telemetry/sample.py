"""One sample of the readings of all GPUs; a missing reading is NaN, never 0.

Dimensions: G GPUs, C channels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.errors import ConfigError
from adlro.model.gpu import find
from adlro.model.state import READING, Counts, Floats, Mask, Records

WHOLE_GPU = -1  # the part of a GPU that is not divided
LONGEST_NAME = 200  # characters
LATEST = 1e11  # seconds since 1970: a later time, or one before 0, is ignored


class Channel(NamedTuple):
    """A measured quantity, in the same unit for every source."""

    name: str
    unit: str
    least: float  # values outside of least to most are impossible
    most: float


CHANNELS = (
    Channel("utilisation", "0-1", 0.0, 1.0),  # share of the time in which a kernel ran
    Channel("memory_used", "MB", 0.0, 4_194_304.0),
    Channel("memory_total", "MB", 1.0, 4_194_304.0),
    Channel("bandwidth", "0-1", 0.0, 1.0),  # share of the memory's bandwidth, or of its time
    Channel("temperature", "°C", 1.0, 150.0),
    Channel("power", "W", 0.0, 2_000.0),
    Channel("errors", "count", 0.0, 1e9),  # uncorrectable by the hardware
)
NAMES = tuple(channel.name for channel in CHANNELS)
COLUMN = {name: c for c, name in enumerate(NAMES)}


def is_name(text: str) -> bool:
    """True if text can be the name of a host or a model: printable, and not too long."""
    return len(text) <= LONGEST_NAME and text.isprintable()


class Sample(NamedTuple):
    """The readings of all GPUs at one moment, sorted by host, number and part."""

    host: tuple[str, ...]  # [G]
    gpu: Counts  # [G] its number on its host
    part: Counts  # [G] the number of a slice (MIG, AMD's partitions), or WHOLE_GPU
    model: tuple[str, ...]  # [G] as the source spells it; "" = unknown
    values: Floats  # [G, C] NaN = missing
    time: Floats  # [G] seconds since 1970 of the oldest of its readings; NaN = unknown
    now: float  # by the same clock
    notes: tuple[str, ...] = ()  # on dropped readings, with the reasons

    @property
    def age(self) -> Floats:
        """Age [G] in seconds of each GPU's oldest reading; NaN = unknown."""
        return self.now - self.time

    def column(self, name: str) -> Floats:
        """Return the values [G] of one channel."""
        return self.values[:, COLUMN[name]]

    def is_fresh(self, limit_s: float) -> Mask:
        """Return [G] True for each GPU whose readings have a known age of at most `limit_s`.

        Readings dated later than now by more than the limit are not fresh either.
        """
        return np.abs(self.age) <= limit_s


def readings(sample: Sample, most_age_s: float = np.inf) -> Records:
    """Convert a sample to READING records [G], as in a policy's view.

    Bandwidth is in GB/s, and missing for models that are not in the catalogue. Readings older than
    the limit, or of unknown age, are missing.
    """
    known = {name: _gb_per_s(name) for name in set(sample.model)}
    scale = {"bandwidth": np.array([known[name] for name in sample.model])}
    is_fresh = sample.is_fresh(most_age_s)
    out = np.zeros(len(sample.host), READING)
    for name in ("utilisation", "bandwidth", "temperature", "power"):
        out[name] = np.where(is_fresh, sample.column(name) * scale.get(name, 1.0), np.nan)
    return out


def _gb_per_s(model: str) -> float:
    try:
        return find(model).bandwidth_gb_s or np.nan
    except ConfigError:
        return np.nan
