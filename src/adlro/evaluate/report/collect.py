"""Job-level statistics of a comparison, accumulated while the seeds run.

Dimensions: J jobs, B bins of seconds, K groups of jobs (by type, for example).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.evaluate.recorded import times_of
from adlro.evaluate.report.groups import Grouping, groupings
from adlro.model.state import Counts, Floats, Records
from adlro.policies.registry import Policy
from adlro.sim.simulator import RunResult
from adlro.workloads.generate import jobs_of
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload, measured

_BINS_PER_DECADE = 40  # neighbouring edges are 6 % apart
EDGES = 10 ** (
    np.arange(-_BINS_PER_DECADE, 9 * _BINS_PER_DECADE + 1) / _BINS_PER_DECADE
)  # [B] seconds
MOST_LONG_WAITS = 10  # jobs of each policy whose wait is kept


class GroupTotals(NamedTuple):
    """Number of jobs and sums of their times in each of K groups of jobs, under one policy."""

    jobs: Counts  # [K]
    jct_s: Floats  # [K]
    wait_s: Floats  # [K]

    @property
    def mean_s(self) -> Floats:
        """Mean JCT [K]; NaN for a group without jobs."""
        return self._mean(self.jct_s)

    @property
    def mean_wait_s(self) -> Floats:
        """Mean wait until the first start [K]; NaN for a group without jobs."""
        return self._mean(self.wait_s)

    def _mean(self, total: Floats) -> Floats:
        mean: Floats = np.full(len(self.jobs), np.nan)
        np.divide(total, self.jobs, out=mean, where=self.jobs > 0)
        return mean


class LongWait(NamedTuple):
    """A job that waited long; longer waits sort first, and ties by seed and job."""

    minus_wait_s: float
    seed: int
    job: int  # row of the seed's job table
    run_s: float  # from the first start to the end
    gpus: int
    share: int  # thousandths of a GPU, if it is a slice

    @property
    def wait_s(self) -> float:
        """Wait until the first start."""
        return -self.minus_wait_s


class JobStatistics(NamedTuple):
    """Statistics of one policy's measured jobs over all seeds, or of the jobs as recorded."""

    jct: Counts  # [B] number of jobs with a JCT up to each edge and above the previous edge
    wait: Counts  # [B] the same of waits until the first start
    groups: dict[str, GroupTotals]  # key of a grouping -> totals
    longest: list[LongWait]  # longest first


class JobTimes(NamedTuple):
    """What happened to J jobs of one seed, in a simulation or by the record."""

    seed: int
    job: Counts  # [J] rows of the seed's job table
    jobs: Records  # [J] JOB
    rows: Counts  # [J] rows of the history; [0] = there is none
    wait: Floats  # [J] seconds until the first start
    jct: Floats  # [J] seconds until the end


def _histogram(seconds: Floats) -> Counts:
    """Return the number of values in each bin [B]; values out of range go to the end bins."""
    place = np.minimum(np.searchsorted(EDGES, seconds), len(EDGES) - 1)
    return np.bincount(place, minlength=len(EDGES))


def _totals(group: NDArray[np.integer], count: int, times: JobTimes) -> GroupTotals:
    sums: list[Floats] = [
        np.bincount(group, seconds, count).astype(np.float64) for seconds in (times.jct, times.wait)
    ]
    return GroupTotals(np.bincount(group, minlength=count), *sums)


def _longest(times: JobTimes) -> list[LongWait]:
    order = np.lexsort((times.job, -times.wait))[:MOST_LONG_WAITS]
    return [
        LongWait(
            -float(times.wait[i]),
            times.seed,
            int(times.job[i]),
            float(times.jct[i] - times.wait[i]),
            int(times.jobs["gpus"][i]),
            int(times.jobs["share"][i]),
        )
        for i in order.tolist()
    ]


def job_statistics(times: JobTimes, ways: Sequence[Grouping]) -> JobStatistics:
    """Return the statistics of one seed's jobs in the given groupings."""
    return JobStatistics(
        _histogram(times.jct),
        _histogram(times.wait),
        {w.key: _totals(w.groups_of(times.jobs, times.rows), len(w.names), times) for w in ways},
        _longest(times),
    )


def _exact(one: JobStatistics) -> JobStatistics:
    """Return the statistics with exact fractions of seconds, whose sum is the same in any order."""

    def fractions(seconds: Floats) -> Floats:
        return np.array([Fraction(value) for value in seconds], object)

    sums = {
        key: GroupTotals(own.jobs, fractions(own.jct_s), fractions(own.wait_s))
        for key, own in one.groups.items()
    }
    return one._replace(groups=sums)


def _rounded(one: JobStatistics) -> JobStatistics:
    """Return the statistics with exact fractions of seconds rounded to floats."""
    sums = {
        key: GroupTotals(own.jobs, own.jct_s.astype(np.float64), own.wait_s.astype(np.float64))
        for key, own in one.groups.items()
    }
    return one._replace(groups=sums)


def _add(one: JobStatistics, other: JobStatistics) -> JobStatistics:
    sums = {
        key: GroupTotals._make(a + b for a, b in zip(own, other.groups[key], strict=True))
        for key, own in one.groups.items()
    }
    longest = sorted([*one.longest, *other.longest])[:MOST_LONG_WAITS]
    return JobStatistics(one.jct + other.jct, one.wait + other.wait, sums, longest)


class Collector:
    """Adds up each policy's job statistics during a comparison; thread-safe.

    If seeds are repeated with jitter, only the first repetition counts.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._ways = groupings(setting)
        self._lock = threading.Lock()
        self._statistics: dict[str, JobStatistics] = {}  # exact, as runs end in any order
        self._seen: set[tuple[str, int]] = set()  # policies and seeds

    def watch(self, policy: Policy, seed: int, workload: Workload, result: RunResult) -> None:
        """Add the jobs of one run; `evaluate.compare` calls this after each run."""
        with self._lock:
            if (policy.name, seed) in self._seen:
                return
            self._seen.add((policy.name, seed))
        setting = self._setting
        counted = workload.measured(setting.scenario.measure)
        jobs, outcome = workload.jobs[counted], result.outcome[counted]
        wait, jct = outcome["start"] - jobs["arrival"], outcome["finish"] - jobs["arrival"]
        rows = np.zeros(0, np.int64)
        if setting.played is not None:
            rows = jobs_of(setting, seed).rows[counted]
        new = _exact(job_statistics(JobTimes(seed, counted, jobs, rows, wait, jct), self._ways))
        with self._lock:
            old = self._statistics.get(policy.name)
            self._statistics[policy.name] = new if old is None else _add(old, new)

    def statistics(self) -> dict[str, JobStatistics]:
        """Return the statistics of all jobs so far, by policy."""
        with self._lock:
            return {name: _rounded(found) for name, found in self._statistics.items()}


def recorded_statistics(setting: Setting, seeds: range) -> JobStatistics | None:
    """Return the statistics of the same jobs as recorded; None = no start is recorded.

    Jobs without a recorded start are left out.
    """
    total, ways = None, groupings(setting)
    for seed in seeds:
        played = jobs_of(setting, seed)
        found = times_of(setting, played)
        if found is None:
            return None
        counted = measured(played.lost, setting.scenario.measure)
        known = counted[found.is_known[counted]]
        jobs, rows = played.jobs[known], played.rows[known]
        times = JobTimes(seed, known, jobs, rows, found.wait_s[known], found.jct_s[known])
        new = _exact(job_statistics(times, ways))
        total = new if total is None else _add(total, new)
    return None if total is None or not total.jct.sum() else _rounded(total)
