"""Statistics of the ended jobs that are alike in some fields, at each submission.

They are features of gradient boosting. A group is the jobs with the same words; a job without a
word is alike to the others without it.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict, deque

import numpy as np

from adlro.estimates.job_table import JobTable
from adlro.model.state import Counts, Floats

COLUMNS = ("last", "last two", "median of the latest", "mean", "median", "count", "age")
_LATEST = 10


class _Group:
    """Run times (log seconds) of one group's ended jobs."""

    def __init__(self) -> None:
        self.latest: deque[float] = deque(maxlen=_LATEST)
        self.ranked: list[float] = []
        self.total = 0.0
        self.when = 0.0

    def learn(self, log_s: float, when: float) -> None:
        self.latest.append(log_s)
        insort(self.ranked, log_s)
        self.total += log_s
        self.when = when

    def row(self, now: float) -> tuple[float, ...]:
        """Return COLUMNS at a time in seconds."""
        count, latest = len(self.ranked), sorted(self.latest)
        last, before = self.latest[-1], self.latest[-2 if count > 1 else -1]
        return (
            last,
            float(np.logaddexp(last, before) - np.log(2)),
            latest[len(latest) // 2],
            self.total / count,
            self.ranked[count // 2],
            np.log(count),
            np.log1p(now - self.when),
        )


def codes_of(*columns: Floats | Counts) -> Counts:
    """Return a number [J] for each distinct combination of values; nan equals nan."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, own = np.unique(column, return_inverse=True)
        _, codes = np.unique(codes * (int(own.max(initial=0)) + 1) + own, return_inverse=True)
    return codes


def statistics(jobs: JobTable, group: Counts) -> Floats:
    """Return COLUMNS of each job's group at its submission, [J, COLUMNS]; nan = none had ended.

    group: [J] number of each job's group.
    """
    found = np.full((len(group), len(COLUMNS)), np.nan)
    groups: defaultdict[int, _Group] = defaultdict(_Group)
    log_s, names = jobs.log_s.tolist(), group.tolist()
    for event, time in zip(jobs.order.tolist(), jobs.time.tolist(), strict=True):
        if event >= 0:
            groups[names[event]].learn(log_s[event], time)
        elif names[-1 - event] in groups:
            found[-1 - event] = groups[names[-1 - event]].row(time)
    return found
