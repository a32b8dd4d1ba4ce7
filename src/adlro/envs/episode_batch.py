"""Several episodes as arrays with a leading dimension, the form that compiled code takes."""

from __future__ import annotations

from typing import NamedTuple

from adlro.model.state import Counts, Floats, Mask, Records


class EpisodeBatch(NamedTuple):
    """S episodes of J jobs each: the arrays of a workload that differ between episodes."""

    jobs: Records  # [S, J]
    est: Floats  # [S, J, M]
    allowed: Mask  # [S, J, P]
    seconds: Floats  # [S, J, M]
    events: Records  # [S, E], padded with events that never happen (time = inf)
    holders: Counts  # [S, J, 2]

    def from_row(self, first: int) -> EpisodeBatch:
        """The batch without its first `first` rows."""
        return EpisodeBatch._make(array[first:] for array in self)
