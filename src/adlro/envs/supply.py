"""Where episodes come from: workloads by number, whole or cut into short pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from adlro.envs.bank import EpisodeBatch
from adlro.errors import ConfigError
from adlro.model.state import EVENT, Records
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload


class EpisodeSupply(NamedTuple):
    """Episodes of one scenario, by number: the same number is the same episode."""

    setting: Setting
    draw: Callable[[int], Workload]  # the jobs of a number, always as many
    pieces: int = 1  # episodes that each workload is cut into: drawing one costs about 1 ms

    def bank(self, first: int, count: int) -> EpisodeBatch:
        """At least so many episodes from number `first` on.

        Raises:
            ConfigError: a workload cannot be cut into so many pieces of the same length.
        """
        start, end = first // self.pieces, (first + count - 1) // self.pieces + 1
        cut = [_cut(self.draw(k), self.pieces) for k in range(start, end)]
        return _joined(cut).from_row(first - start * self.pieces)


def _cut(workload: Workload, pieces: int) -> EpisodeBatch:
    """Consecutive jobs, so many to a piece, the first of each arriving at 0 if there are several.

    Each piece keeps all events of the workload: those that lie before it happen at once, so that
    the cluster is as it was then.
    """
    jobs = len(workload.jobs)
    if pieces < 1 or jobs % pieces > 0:
        raise ConfigError(
            f"pieces: {jobs} jobs cannot be cut into {pieces} episodes of the same length"
        )
    shape = (pieces, jobs // pieces)
    bank = EpisodeBatch(
        workload.jobs.reshape(shape).copy(),
        workload.est.reshape(*shape, -1),
        workload.allowed.reshape(*shape, -1),
        workload.seconds.reshape(*shape, -1),
        np.tile(workload.events, (pieces, 1)),
        workload.holders.reshape(*shape, 2),
    )
    if pieces > 1:
        begins = bank.jobs["arrival"][:, :1].copy()
        bank.jobs["arrival"] -= begins
        bank.events["time"] -= begins
        bank.jobs["id"] = np.arange(shape[1])
    return bank


def widened(events: Records, width: int) -> Records:
    """Lists of events [S, E] filled up to a width with such as never come."""
    never = np.zeros((len(events), max(width - events.shape[1], 0)), EVENT)
    never["time"] = np.inf
    return np.concatenate([events, never], axis=1)


def _joined(banks: Sequence[EpisodeBatch]) -> EpisodeBatch:
    width = max(bank.events.shape[1] for bank in banks)
    level = [bank._replace(events=widened(bank.events, width)) for bank in banks]
    if len({bank.jobs.shape[1] for bank in banks}) > 1:
        raise ConfigError("episodes: all workloads of a supply must have as many jobs")
    return EpisodeBatch._make(np.concatenate(arrays) for arrays in zip(*level, strict=True))
