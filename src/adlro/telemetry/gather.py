"""Builds a sample from single readings in any order.

A source's code for "no value" counts as missing; impossible values are dropped and noted.
Dimensions: G GPUs, K metrics, C channels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from adlro.model.state import Floats
from adlro.telemetry.names import MEMORY_FREE, MEMORY_RESERVED, Gpu, identify, metrics, model_name
from adlro.telemetry.sample import CHANNELS, LATEST, NAMES, Sample

_RANGE = {channel.name: (channel.least, channel.most) for channel in CHANNELS}
_RANGE |= dict.fromkeys((MEMORY_FREE, MEMORY_RESERVED), _RANGE["memory_used"])

# Codes for "no value": DCGM's blanks (16 above each base), all bits of a word, AMD's -1.
_BLANK_BASES = (0x7FFFFFF0, 1 << 47)
_WORDS = (0xFFFF, 0xFFFFFFFF, -1)
_LEAST_WIDE = float((1 << 63) - 1024)  # 64-bit blanks, which a double holds only roughly


def is_blank(raw: float) -> bool:
    """True for a code that means "no value"; called only for values that are out of range."""
    return (
        math.isnan(raw)
        or raw in _WORDS
        or _LEAST_WIDE <= raw < math.inf
        or any(base <= raw < base + 16 for base in _BLANK_BASES)
    )


class _Slot(NamedTuple):
    """Column and limits of a metric.

    The product raw * scale must lie between `least` and `largest`, and is then cut to `most`.
    """

    column: int
    scale: float
    most: float
    least: float
    largest: float


class SampleBuilder:
    """Collects readings in any order and builds a sample from them."""

    def __init__(self, prefix: str = "") -> None:
        self._metrics = metrics(prefix)
        self._slots = {
            name: _Slot(k, metric.scale, metric.most, *_RANGE[metric.channel])
            for k, (name, metric) in enumerate(self._metrics.items())
        }
        self._row: dict[Gpu, int] = {}
        self._model: list[str] = []
        self._time: list[float] = []
        self._cells: dict[tuple[int, int], float] = {}  # row, metric: value in our unit
        self._seen: set[str] = set()
        self._absurd = 0
        self._example = ""
        self._twice = 0
        self._nameless = 0
        self._renamed: dict[int, str] = {}  # row: its models

    def _row_of(self, labels: Mapping[str, str]) -> int | None:
        gpu = identify(labels)
        if gpu is None:
            return None
        row = self._row.get(gpu)
        if row is None:
            row = self._row[gpu] = len(self._row)
            self._model.append("")
            self._time.append(math.nan)
        return row

    def _name(self, row: int, labels: Mapping[str, str]) -> None:
        """Store the model of a row; if its labels name two, the alphabetically first is used."""
        known, name = self._model[row], model_name(labels)
        if not name or name == known:
            return
        if known:
            self._renamed[row] = f"{known!r} and {name!r}"
        self._model[row] = min(known, name) if known else name

    def knows(self, name: str) -> bool:
        """True if this is the name of a known metric of GPUs."""
        return name in self._slots

    def take(self, name: str, labels: Mapping[str, str], raw: float) -> None:
        """Add one reading; unknown metrics are ignored.

        If a GPU's metric comes twice, as when two jobs scrape one exporter, the larger one is used.
        """
        slot = self._slots.get(name)
        if slot is None:
            return
        row = self._row_of(labels)
        if row is None:
            self._nameless += 1
            return
        self._name(row, labels)
        self._seen.add(name)
        value = raw * slot.scale
        if not slot.least <= value <= slot.largest:
            if not is_blank(raw):
                self._absurd += 1
                self._example = self._example or f"{name} = {raw:g} of {identify(labels)}"
            return
        cell, value = (row, slot.column), min(value, slot.most)
        if cell in self._cells:
            self._twice += 1
            value = max(self._cells[cell], value)
        self._cells[cell] = value

    def expect(self, labels: Mapping[str, str]) -> None:
        """Add a row for a GPU that is expected, though it may have no reading."""
        row = self._row_of(labels)
        if row is not None and not self._model[row]:
            self._model[row] = model_name(labels)

    def date(self, labels: Mapping[str, str], time: float) -> None:
        """Set the time of a GPU's readings, s since 1970; of several times the oldest is used.

        An impossible time is ignored: the age stays unknown.
        """
        row = self._row_of(labels)
        if row is not None and 0 <= time < LATEST:
            known = self._time[row]
            self._time[row] = time if math.isnan(known) else min(known, time)

    def names(self) -> list[str]:
        """Return the names of the metrics that have been added, sorted."""
        return sorted(self._seen)

    def sample(self, now: float, notes: tuple[str, ...] = ()) -> Sample:
        """Build the sample of all readings so far."""
        order = sorted(self._row)
        rows = np.array([self._row[gpu] for gpu in order], np.int64)
        return Sample(
            host=tuple(gpu.host for gpu in order),
            gpu=np.array([gpu.number for gpu in order], np.int64),
            part=np.array([gpu.part for gpu in order], np.int64),
            model=tuple(self._model[row] for row in rows),
            values=self._channels()[rows],
            time=np.array(self._time)[rows],
            now=now,
            notes=(*notes, *self._notes()),
        )

    def _channels(self) -> Floats:
        """Return the values [G, C] of all channels, each from its best metric that has a value.

        Where the total memory is missing, it is the sum of the used, free and reserved memory.
        """
        table = np.full((len(self._row), len(self._metrics)), np.nan)
        if self._cells:
            cells = np.array(list(self._cells), np.int64)
            table[cells[:, 0], cells[:, 1]] = list(self._cells.values())
        best = {name: np.full(len(table), np.nan) for name in _RANGE}
        for name, metric in sorted(self._metrics.items(), key=lambda item: item[1].rank):
            channel, column = best[metric.channel], table[:, self._slots[name].column]
            np.copyto(channel, column, where=np.isnan(channel))
        total = best["memory_total"]
        parts = best["memory_used"] + best[MEMORY_FREE] + np.nan_to_num(best[MEMORY_RESERVED])
        np.copyto(total, parts, where=np.isnan(total) & (parts > 0))
        return np.stack([best[name] for name in NAMES], axis=1)

    def _notes(self) -> list[str]:
        notes = []
        if self._absurd:
            notes.append(f"{self._absurd:,} absurd values left out, such as {self._example}")
        if self._nameless:
            notes.append(f"{self._nameless:,} readings left out that do not say of which GPU")
        if self._twice:
            notes.append(f"{self._twice:,} readings came twice: the larger was taken")
        if self._renamed:
            row, models = next(iter(self._renamed.items()))
            gpu = list(self._row)[row]  # in the order of the rows
            what = f"{len(self._renamed):,} GPUs have two models, such as {gpu}: {models}"
            notes.append(f"{what}; are two GPUs of one host numbered alike?")
        return notes
