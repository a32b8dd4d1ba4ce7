"""Run times by user, compiled: running statistics of the jobs that have ended."""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit_apart
from adlro.estimates.job_table import JobTable
from adlro.estimates.running_median_kernel import count_in, median_of
from adlro.model.state import Counts, Floats, Records

USER = np.dtype(
    [
        ("ended", "f8"),  # jobs
        ("total", "f8"),  # sum of their log seconds
        ("last", "f8"),  # seconds of the last one
        ("before", "f8"),  # and of the one before; of the last if there is one only
    ],
    align=True,
)
MEDIAN, LAST_TWO, USER_MEAN, ENDED = range(4)  # columns of statistics


@njit_apart
def follow_users(
    users: Records, histogram: Floats, jobs: JobTable, user: Counts, out: Floats
) -> None:
    """Go through a table's events and write statistics out [J, 4] at each submission.

    All run times are log seconds on the reference GPU. users [U] USER; user [J] is a row of it.
    """
    for event in jobs.order:
        if event >= 0:
            value = jobs.log_s[event]
            if jobs.model[event] >= 0:
                value += jobs.prior[jobs.kind[event], jobs.model[event]]
            count_in(histogram, value)
            row = users[user[event]]
            row.ended += 1
            row.total += value
            row.before = row.last if row.ended > 1 else np.exp(value)
            row.last = np.exp(value)
        else:
            j = -1 - event
            row = users[user[j]]
            out[j, MEDIAN] = median_of(histogram)
            out[j, ENDED] = row.ended
            if row.ended > 0:
                out[j, LAST_TWO] = np.log((row.last + row.before) / 2)
                out[j, USER_MEAN] = row.total / row.ended
