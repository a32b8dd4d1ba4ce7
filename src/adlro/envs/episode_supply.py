"""Supplies numbered episodes: whole workloads, or pieces that workloads are cut into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from adlro.envs.episode_batch import EpisodeBatch
from adlro.errors import ConfigError
from adlro.model.state import EVENT, Records
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload


class EpisodeSupply(NamedTuple):
    """Supplies the episodes of one scenario; a number always gives the same episode."""

    setting: Setting
    draw: Callable[[int], Workload]  # workload number -> workload; all of J jobs
    pieces: int = 1  # episodes cut from each workload: drawing a workload costs about 1 ms

    def batch(self, first: int, count: int) -> EpisodeBatch:
        """Return `count` or more episodes with consecutive numbers, starting with `first`.

        Raises:
            ConfigError: a workload cannot be cut into `pieces` pieces of equal length.
        """
        start, end = first // self.pieces, (first + count - 1) // self.pieces + 1
        cut = [_cut(self.draw(k), self.pieces) for k in range(start, end)]
        return _joined(cut).from_row(first - start * self.pieces)


def _cut(workload: Workload, pieces: int) -> EpisodeBatch:
    """Cut a workload into pieces of consecutive jobs, each with its first arrival at 0.

    If there is only one piece, its arrival times stay unchanged. Each piece has all events of the
    workload: events before the piece's first arrival take effect at its start, so that the cluster
    starts in the state that it has in the workload at that time.
    """
    jobs = len(workload.jobs)
    if pieces < 1 or jobs % pieces > 0:
        raise ConfigError(
            f"pieces: {jobs} jobs cannot be cut into {pieces} episodes of the same length"
        )
    shape = (pieces, jobs // pieces)
    batch = EpisodeBatch(
        workload.jobs.reshape(shape).copy(),
        workload.est.reshape(*shape, -1),
        workload.allowed.reshape(*shape, -1),
        workload.seconds.reshape(*shape, -1),
        np.tile(workload.events, (pieces, 1)),
        workload.holders.reshape(*shape, 2),
    )
    if pieces > 1:
        begins = batch.jobs["arrival"][:, :1].copy()
        batch.jobs["arrival"] -= begins
        batch.events["time"] -= begins
        batch.jobs["id"] = np.arange(shape[1])
    return batch


def widened(events: Records, width: int) -> Records:
    """Return lists of events [S, E], each padded to `width` with events that never happen."""
    never = np.zeros((len(events), max(width - events.shape[1], 0)), EVENT)
    never["time"] = np.inf
    return np.concatenate([events, never], axis=1)


def _joined(batches: Sequence[EpisodeBatch]) -> EpisodeBatch:
    width = max(batch.events.shape[1] for batch in batches)
    level = [batch._replace(events=widened(batch.events, width)) for batch in batches]
    if len({batch.jobs.shape[1] for batch in batches}) > 1:
        raise ConfigError("episodes: all workloads of a supply must have as many jobs")
    return EpisodeBatch._make(np.concatenate(arrays) for arrays in zip(*level, strict=True))
