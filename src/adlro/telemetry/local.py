"""The GPUs of the host we run on, read one after the other."""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping

import numpy as np

from adlro.telemetry.sample import CHANNELS, WHOLE_GPU, Sample


class Local:
    """Takes one GPU after the other, values in our units, and makes a sample of them."""

    def __init__(self) -> None:
        self._index: list[int] = []
        self._model: list[str] = []
        self._values: list[list[float]] = []
        self._notes: list[str] = []

    def add(self, index: int, model: str, values: Mapping[str, float]) -> None:
        """One GPU; a channel that is not named or NaN is missing, an absurd one is noted."""
        row = []
        for channel in CHANNELS:
            value = values.get(channel.name, math.nan)
            if not math.isnan(value) and not channel.least <= value <= channel.most:
                self._notes.append(
                    f"absurd and left out: {channel.name} = {value:g} of GPU {index}"
                )
                value = math.nan
            row.append(value)
        self._index.append(index)
        self._model.append(model)
        self._values.append(row)

    def sample(self, now: float) -> Sample:
        """All that were added, read just now."""
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
