"""Job-level statistics of a comparison, accumulated while the seeds run.

Dimensions: B bins of seconds, K groups of jobs (by type, for example).
"""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.model.state import WHOLE, Floats, Records
from adlro.policies.registry import Policy
from adlro.sim.simulator import RunResult
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

Counts = NDArray[np.int64]

_BINS_PER_DECADE = 40  # neighbouring edges are 6 % apart
EDGES = 10 ** (
    np.arange(-_BINS_PER_DECADE, 9 * _BINS_PER_DECADE + 1) / _BINS_PER_DECADE
)  # [B] seconds

PRIORITY_CLASSES = ("low, below 1/3", "middle", "high, from 2/3")
_PRIORITY_EDGES = (1 / 3, 2 / 3)
GANG_SIZES = ("slice", "1 GPU", "2 GPUs", "3 or 4", "5 to 8", "9 or more")
_GANG_EDGES = (0, 1, 2, 4, 8)  # GPUs: upper bound of each group but the last; a slice counts as 0


class GroupTotals(NamedTuple):
    """Number of jobs and sum of their JCTs in each of K groups of jobs, under one policy."""

    jobs: Counts  # [K]
    jct_s: Floats  # [K]

    @property
    def mean_s(self) -> Floats:
        """Mean JCT [K]; NaN for a group without jobs."""
        mean: Floats = np.full(len(self.jobs), np.nan)
        np.divide(self.jct_s, self.jobs, out=mean, where=self.jobs > 0)
        return mean


class JobStatistics(NamedTuple):
    """Statistics of one policy's measured jobs over all seeds."""

    jct: Counts  # [B] number of jobs with a JCT up to each edge and above the previous edge
    wait: Counts  # [B] the same of waits until the first start
    by_type: GroupTotals
    by_priority: GroupTotals  # see PRIORITY_CLASSES
    by_gang: GroupTotals  # see GANG_SIZES


def _histogram(seconds: Floats) -> Counts:
    """Return the number of values in each bin [B]; values out of range go to the end bins."""
    place = np.minimum(np.searchsorted(EDGES, seconds), len(EDGES) - 1)
    return np.bincount(place, minlength=len(EDGES))


def _totals(group: NDArray[np.integer], count: int, jct: Floats) -> GroupTotals:
    summed: Floats = np.bincount(group, jct, count).astype(np.float64)
    return GroupTotals(np.bincount(group, minlength=count), summed)


def job_statistics(jobs: Records, outcome: Records, types: int) -> JobStatistics:
    """Return the statistics of one run's jobs; `types` is the number of job types."""
    jct, wait = outcome["finish"] - jobs["arrival"], outcome["start"] - jobs["arrival"]
    size = np.where(jobs["share"] < WHOLE, 0, jobs["gpus"])
    return JobStatistics(
        _histogram(jct),
        _histogram(wait),
        _totals(jobs["type"], types, jct),
        _totals(np.digitize(jobs["priority"], _PRIORITY_EDGES), len(PRIORITY_CLASSES), jct),
        _totals(np.searchsorted(_GANG_EDGES, size), len(GANG_SIZES), jct),
    )


def _exact(one: JobStatistics) -> JobStatistics:
    """Return the statistics with exact fractions of seconds, whose sum is the same in any order."""
    sums = (
        GroupTotals(part.jobs, np.array([Fraction(seconds) for seconds in part.jct_s], object))
        for part in one[2:]
    )
    return JobStatistics(one.jct, one.wait, *sums)


def _rounded(one: JobStatistics) -> JobStatistics:
    """Return the statistics with exact fractions of seconds rounded to floats."""
    sums = (GroupTotals(part.jobs, part.jct_s.astype(np.float64)) for part in one[2:])
    return JobStatistics(one.jct, one.wait, *sums)


def _add(one: JobStatistics, other: JobStatistics) -> JobStatistics:
    sums = (
        GroupTotals(a.jobs + b.jobs, a.jct_s + b.jct_s)
        for a, b in zip(one[2:], other[2:], strict=True)
    )
    return JobStatistics(one.jct + other.jct, one.wait + other.wait, *sums)


class Collector:
    """Adds up each policy's job statistics during a comparison; thread-safe, of constant size."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._lock = threading.Lock()
        self._statistics: dict[str, JobStatistics] = {}  # exact, as runs end in any order

    def watch(self, policy: Policy, _: int, workload: Workload, result: RunResult) -> None:
        """Add the jobs of one run; `evaluate.compare` calls this after each run."""
        counted = workload.measured(self._setting.scenario.measure)
        types = len(self._setting.scenario.types)
        new = _exact(job_statistics(workload.jobs[counted], result.outcome[counted], types))
        with self._lock:
            old = self._statistics.get(policy.name)
            self._statistics[policy.name] = new if old is None else _add(old, new)

    def statistics(self) -> dict[str, JobStatistics]:
        """Return the statistics of all jobs so far, by policy."""
        with self._lock:
            return {name: _rounded(found) for name, found in self._statistics.items()}
