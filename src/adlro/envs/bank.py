"""Episodes side by side, as compiled code takes them."""

from __future__ import annotations

from typing import NamedTuple

from adlro.model.state import Counts, Floats, Mask, Records


class EpisodeBatch(NamedTuple):
    """S episodes of J jobs each: what of a workload is an episode's own."""

    jobs: Records  # [S, J]
    est: Floats  # [S, J, M]
    allowed: Mask  # [S, J, P]
    seconds: Floats  # [S, J, M]
    events: Records  # [S, E], filled up with such as never come
    holders: Counts  # [S, J, 2]

    def from_row(self, first: int) -> EpisodeBatch:
        """Without the rows before."""
        return EpisodeBatch._make(array[first:] for array in self)
