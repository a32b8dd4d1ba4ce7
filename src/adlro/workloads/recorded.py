"""Waits, completion times and GPU-hours of a history's jobs as recorded, also by group of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adlro.model.history import History
from adlro.model.state import Counts, Floats, Mask
from adlro.workloads import summary

GROUPINGS = ("partition", "account", "gpu_type", "gang")
_COLUMNS = {"partition": "queue", "account": "account", "gpu_type": "gpu_model"}
_UNKNOWN = "unknown"
_GANGS = ("below 1", "1", "2", "3 to 4", "5 to 8", "9 to 16", "17 to 32", "33 to 64", "above 64")
_GANG_EDGES = (0.9995, 1, 2, 4, 8, 16, 32, 64)  # upper bound of each gang size but the last


class Times(NamedTuple):
    """Recorded times [K] in seconds of K jobs; nan = unknown."""

    ready_s: Floats  # eligible, or else submitted; never after the start
    start_s: Floats
    end_s: Floats
    is_early: Mask  # recorded as started before it could: its wait counts as 0

    @property
    def wait_s(self) -> Floats:
        """Time [K] from when a job could start until it started."""
        return self.start_s - self.ready_s

    @property
    def jct_s(self) -> Floats:
        """Time [K] from when a job could start until its end."""
        return self.end_s - self.ready_s

    @property
    def is_known(self) -> Mask:
        """Mask [K] of jobs whose wait and completion time are known."""
        known: Mask = ~np.isnan(self.wait_s) & ~np.isnan(self.jct_s)
        return known


def times(history: History, rows: Counts) -> Times:
    """Return the recorded times of these rows of a history.

    A missing end is the start plus the run time.
    """
    ready, start, end = history.ready_s()[rows], history.start_s[rows], history.end_s[rows]
    end = np.where(np.isnan(end), start + history.run_s[rows], end)
    is_early = start < ready
    return Times(np.where(is_early, start, ready), start, np.maximum(end, start), is_early)


class Distribution(NamedTuple):
    """Mean, median and 99th percentile in seconds over jobs; None = unknown."""

    mean: float
    p50: float | None
    p99: float | None


class Group(NamedTuple):
    """Recorded figures of a group of jobs."""

    name: str
    jobs: int
    without_start: int  # of them, those whose start or end is not recorded
    gpu_hours: float
    use: float | None  # mean GPUs in use by the group / GPUs of the cluster; None = unknown
    wait_s: Distribution | None  # of jobs with a recorded start; None = there are none
    jct_s: Distribution | None


class Summary(NamedTuple):
    """Recorded figures of all jobs with GPUs of a history, and of groups of them."""

    whole: Group
    early: int  # jobs recorded as started before they could
    without_gpus: int  # jobs that are not counted because they ask for no GPU
    by: dict[str, list[Group]]  # one of GROUPINGS -> groups, most GPU-hours first; gangs by size


class _Jobs(NamedTuple):
    """Recorded figures of each of K jobs."""

    times: Times
    is_job: Mask  # [K] False = a run that a requeued job lost: it counts in GPU time only
    gpu_s: Floats  # [K] GPU-seconds; 0 = unknown
    share: Floats  # [K] share of the cluster's GPU-time that the job used; nan = unknown

    def group(self, name: str, members: Counts) -> Group:
        """Return the figures of the members, indices of jobs."""
        jobs = members[self.is_job[members]]
        known = jobs[self.times.is_known[jobs]]
        use = float(self.share[members].sum())
        return Group(
            name,
            len(jobs),
            len(jobs) - len(known),
            float(self.gpu_s[members].sum()) / 3600,
            use if np.isfinite(use) else None,
            _distribution(self.times.wait_s[known]),
            _distribution(self.times.jct_s[known]),
        )


def _distribution(values: Floats) -> Distribution | None:
    if len(values) == 0:
        return None
    p50, p99 = np.percentile(values, (50, 99)).tolist()
    return Distribution(float(values.mean()), p50, p99)


def _gang_codes(amount: Floats) -> Counts:
    codes = np.searchsorted(_GANG_EDGES, amount)
    return np.where(np.isnan(amount), -1, codes).astype(np.int64)


class Grouping(NamedTuple):
    """The group of each of K jobs, by one of GROUPINGS."""

    codes: Counts  # [K]; -1 = unknown
    words: Sequence[str]  # names behind the codes

    def name(self, code: int) -> str:
        """Return the name of a group."""
        return self.words[code] if code >= 0 else _UNKNOWN


def _groups(jobs: _Jobs, grouping: Grouping) -> list[Group]:
    """Return the figures of the jobs of each group that occurs, in the order of the codes."""
    order: Counts = np.argsort(grouping.codes, kind="stable")
    found, first = np.unique(grouping.codes[order], return_index=True)
    parts = np.split(order, first[1:])
    return [
        jobs.group(grouping.name(code), part)
        for code, part in zip(found.tolist(), parts, strict=True)
    ]


def groupings(history: History, rows: Counts) -> dict[str, Grouping]:
    """Return the groups of these rows of a history, by those of GROUPINGS that it has."""
    found = {
        key: Grouping(getattr(history, column)[rows].astype(np.int64), history.tables[column])
        for key, column in _COLUMNS.items()
        if history.tables[column]
    }
    _, amount = summary.demand(history)
    if not np.isnan(amount[rows]).all():
        found["gang"] = Grouping(_gang_codes(amount[rows]), _GANGS)
    return found


def _cluster_shares(history: History, rows: Counts, amount: Floats, size: float) -> Floats:
    """Return the share [K] of the cluster's time that each job used, as in `summary.in_use`.

    Time counts from the first to the last start; without recorded starts it is unknown.
    """
    start, run = history.start_s[rows], history.run_s[rows]
    known = ~np.isnan(start) & ~np.isnan(run) & ~np.isnan(amount)
    share = np.zeros(len(rows))
    span = float(np.ptp(start[known])) if known.any() else 0.0
    if span <= 0 or size <= 0:
        return np.full(len(rows), np.nan)
    inside = np.minimum(start[known] + run[known], start[known].max()) - start[known]
    share[known] = inside * amount[known] / (span * size)
    return share


def summarise(history: History, size: float) -> Summary:
    """Return what a history recorded, over all jobs with GPUs and by GROUPINGS.

    Runs that requeued jobs lost count in GPU-hours and use alone. A history without GPUs counts
    processors instead. A grouping is left out if the history does not have it.

    Args:
        history: the jobs.
        size: GPUs (or processors) of the cluster; 0 = unknown.
    """
    _, amount = summary.demand(history)
    rows: Counts = np.flatnonzero(~(amount <= 0))
    amount = amount[rows]
    found = times(history, rows)
    gpu_s = np.nan_to_num(history.run_s[rows] * amount)
    is_job = ~history.is_lost[rows]
    jobs = _Jobs(found, is_job, gpu_s, _cluster_shares(history, rows, amount, size))
    by = {}
    for key, grouping in groupings(history, rows).items() if len(rows) else ():
        groups = _groups(jobs, grouping)
        by[key] = groups if key == "gang" else sorted(groups, key=lambda one: -one.gpu_hours)
    whole = jobs.group("all", np.arange(len(rows)))
    early = int((found.is_early & is_job).sum())
    return Summary(whole, early, history.jobs - int(is_job.sum()), by)


def merged(groups: Sequence[Group], name: str) -> Group:
    """Return several groups as one; only counts, GPU-hours, use and means can be merged."""
    uses = [group.use for group in groups]
    return Group(
        name,
        sum(group.jobs for group in groups),
        sum(group.without_start for group in groups),
        sum(group.gpu_hours for group in groups),
        None if None in uses else sum(use for use in uses if use is not None),
        _merged_mean([(group, group.wait_s) for group in groups]),
        _merged_mean([(group, group.jct_s) for group in groups]),
    )


def _merged_mean(parts: list[tuple[Group, Distribution | None]]) -> Distribution | None:
    counted = [(group.jobs - group.without_start, part) for group, part in parts]
    total = sum(count for count, part in counted if part is not None)
    if total == 0:
        return None
    mean = sum(count * part.mean for count, part in counted if part is not None) / total
    return Distribution(mean, None, None)
