"""Several episodes as arrays, one row per episode, in the form that compiled code takes."""

from __future__ import annotations

from typing import NamedTuple

from adlro.model.state import Counts, Floats, Mask, Records


class EpisodeBatch(NamedTuple):
    """S episodes of J jobs each: the arrays of a workload that differ between episodes.

    E events, M GPU models, P pools; the fields are explained in `Workload`.
    """

    jobs: Records  # [S, J]
    est: Floats  # [S, J, M]
    allowed: Mask  # [S, J, P]
    seconds: Floats  # [S, J, M]
    events: Records  # [S, E], padded with events that never happen (time = inf)
    holders: Counts  # [S, J, 2] quota of the job's account and that of its user, -1 = none

    def from_row(self, first: int) -> EpisodeBatch:
        """Return the batch without its first `first` episodes."""
        return EpisodeBatch._make(array[first:] for array in self)
