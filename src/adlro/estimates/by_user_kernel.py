"""Statistics of each user's run times, updated as jobs end; compiled."""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit_apart
from adlro.estimates.job_table import JobTable
from adlro.estimates.running_median_kernel import count_in, median_of
from adlro.model.state import Counts, Floats, Records

USER = np.dtype(
    [
        ("ended", "f8"),  # number of the user's ended jobs
        ("total", "f8"),  # sum of their log seconds
        ("last", "f8"),  # seconds of the last ended job
        ("before", "f8"),  # seconds of the job before the last; as `last` if there is only one
    ],
    align=True,
)
MEDIAN, LAST_TWO, USER_MEAN, ENDED = range(4)  # columns of statistics


@njit_apart
def follow_users(
    users: Records, histogram: Floats, jobs: JobTable, user: Counts, out: Floats
) -> None:
    """Process a table's events: update statistics at job ends, write them at submissions.

    All run times are converted to the reference GPU.

    Args:
        users: [U] USER records, updated in place.
        histogram: [BINS] run times of all ended jobs in log seconds, updated in place.
        jobs: the table.
        user: [J] row of each job's user in `users`.
        out: [J, 4] receives, for each job submitted, the columns MEDIAN, LAST_TWO and USER_MEAN in
            log seconds, and ENDED, the number of the user's ended jobs. LAST_TWO and USER_MEAN are
            left unchanged for users without ended jobs.
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
