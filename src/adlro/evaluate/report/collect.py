"""What a comparison's page tells of single jobs, added up while the seeds run.

Dimensions: B bins of seconds, K groups of one kind (job types, say).
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.model.state import WHOLE, Floats, Records
from adlro.policies.registry import Policy
from adlro.sim.simulator import RunResult
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

Counts = NDArray[np.int64]

_BINS_A_DECADE = 40  # neighbouring edges are 6 % apart
EDGES = 10 ** (np.arange(-_BINS_A_DECADE, 9 * _BINS_A_DECADE + 1) / _BINS_A_DECADE)  # [B] seconds

CLASSES = ("low, below 1/3", "middle", "high, from 2/3")
_CLASS_EDGES = (1 / 3, 2 / 3)
GANGS = ("slice", "1 GPU", "2 GPUs", "3 or 4", "5 to 8", "9 or more")
_GANG_EDGES = (0, 1, 2, 4, 8)  # GPUs: the most of each group but the last; a slice counts as 0


class Sums(NamedTuple):
    """Jobs of one policy in K groups."""

    jobs: Counts  # [K]
    jct_s: Floats  # [K]

    @property
    def mean_s(self) -> Floats:
        """Mean JCT [K]; NaN of a group without jobs."""
        mean: Floats = np.full(len(self.jobs), np.nan)
        np.divide(self.jct_s, self.jobs, out=mean, where=self.jobs > 0)
        return mean


class Tally(NamedTuple):
    """The jobs of one policy that count, of all seeds."""

    jct: Counts  # [B] jobs with a JCT up to each edge and above the one before
    wait: Counts  # [B] the same by the wait until the first start
    by_type: Sums
    by_class: Sums  # of priority, see CLASSES
    by_gang: Sums  # see GANGS


def _histogram(seconds: Floats) -> Counts:
    """Jobs [B] by seconds; what lies outside is in the first or the last bin."""
    place = np.minimum(np.searchsorted(EDGES, seconds), len(EDGES) - 1)
    return np.bincount(place, minlength=len(EDGES))


def _sums(group: NDArray[np.integer], count: int, jct: Floats) -> Sums:
    summed: Floats = np.bincount(group, jct, count).astype(np.float64)
    return Sums(np.bincount(group, minlength=count), summed)


def tally(jobs: Records, outcome: Records, types: int) -> Tally:
    """One run's jobs, counted; types is how many job types there are."""
    jct, wait = outcome["finish"] - jobs["arrival"], outcome["start"] - jobs["arrival"]
    size = np.where(jobs["share"] < WHOLE, 0, jobs["gpus"])
    return Tally(
        _histogram(jct),
        _histogram(wait),
        _sums(jobs["type"], types, jct),
        _sums(np.digitize(jobs["priority"], _CLASS_EDGES), len(CLASSES), jct),
        _sums(np.searchsorted(_GANG_EDGES, size), len(GANGS), jct),
    )


def _plus(one: Tally, other: Tally) -> Tally:
    sums = (
        Sums(a.jobs + b.jobs, a.jct_s + b.jct_s) for a, b in zip(one[2:], other[2:], strict=True)
    )
    return Tally(one.jct + other.jct, one.wait + other.wait, *sums)


class Collector:
    """Watches a comparison, from any thread; what it keeps does not grow with jobs or seeds."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._lock = threading.Lock()
        self._tallies: dict[str, Tally] = {}

    def watch(self, policy: Policy, _: int, workload: Workload, result: RunResult) -> None:
        """Add a run; what evaluate.compare calls after each."""
        counted = self._setting.scenario.measure.window(len(workload.jobs))
        types = len(self._setting.scenario.types)
        new = tally(workload.jobs[counted], result.outcome[counted], types)
        with self._lock:
            old = self._tallies.get(policy.name)
            self._tallies[policy.name] = new if old is None else _plus(old, new)

    def tallies(self) -> dict[str, Tally]:
        """Policy -> its jobs so far."""
        with self._lock:
            return dict(self._tallies)
