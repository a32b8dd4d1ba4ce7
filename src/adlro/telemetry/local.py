"""Builds a sample of this host's GPUs, one GPU at a time."""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping

import numpy as np

from adlro.telemetry.gather import is_blank
from adlro.telemetry.sample import CHANNELS, WHOLE_GPU, Sample, is_name


class LocalSampleBuilder:
    """Collects this host's GPUs one by one and builds a sample from them."""

    def __init__(self) -> None:
        self._index: list[int] = []
        self._model: list[str] = []
        self._values: list[list[float]] = []
        self._notes: list[str] = []

    def add(
        self, index: int, model: str, raw: Mapping[str, float], scale: Mapping[str, float]
    ) -> None:
        """Add one GPU with its readings.

        Args:
            index: its number on this host.
            model: as the source spells it; an impossible name is dropped.
            raw: its channels in the source's units; absent, NaN and blank values are missing, and
                impossible values are dropped and noted.
            scale: factors from the source's units to the channels'; 1 where a channel is absent.
        """
        row = []
        for channel in CHANNELS:
            number = raw.get(channel.name, math.nan)
            value = number * scale.get(channel.name, 1.0)
            if not channel.least <= value <= channel.most:
                if not is_blank(number):
                    what = f"{channel.name} = {value:g} of GPU {index}"
                    self._notes.append(f"absurd and left out: {what}")
                value = math.nan
            row.append(value)
        self._index.append(index)
        self._model.append(model if is_name(model) else "")
        self._values.append(row)

    def lose(self, index: int, why: str) -> None:
        """Add a GPU that does not answer: all its channels are missing."""
        self._notes.append(f"GPU {index} does not answer: {why}")
        self.add(index, "", {}, {})

    def sample(self, now: float) -> Sample:
        """Build the sample of all added GPUs; its readings are dated `now`."""
        count = len(self._index)
        return Sample(
            host=(socket.gethostname(),) * count,
            gpu=np.array(self._index, np.int64),
            part=np.full(count, WHOLE_GPU, np.int64),
            model=tuple(self._model),
            values=np.array(self._values, np.float64).reshape(count, len(CHANNELS)),
            time=np.full(count, now),
            now=now,
            notes=tuple(self._notes),
        )
