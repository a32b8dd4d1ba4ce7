"""Statistics of each user's run times and errors of estimates, updated as jobs end; compiled."""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit, njit_apart
from adlro.estimates.calibration_kernel import (
    Calibration,
    describe,
    forecast,
    observe,
    recollect,
    remember,
)
from adlro.estimates.job_table import JobTable
from adlro.estimates.running_median_kernel import count_in, median_of
from adlro.model.state import Counts, Floats, Records, Row

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


@njit
def _write(histogram: Floats, row: Row, out: Floats) -> None:
    """Write the statistics of a user to `out` [4]."""
    out[MEDIAN] = median_of(histogram)
    out[ENDED] = row.ended
    if row.ended > 0:
        out[LAST_TWO] = np.log((row.last + row.before) / 2)
        out[USER_MEAN] = row.total / row.ended


@njit_apart
def follow_users(
    users: Records, histogram: Floats, jobs: JobTable, user: Counts, out: Floats
) -> None:
    """Process a table's events: update statistics at job ends, write them at submissions.

    All run times are converted to the reference GPU. Statistics of a job that was not submitted in
    this table are those just before its end.

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
            row = users[user[event]]
            if np.isnan(out[event, ENDED]):
                _write(histogram, row, out[event])
            count_in(histogram, value)
            row.ended += 1
            row.total += value
            row.before = row.last if row.ended > 1 else np.exp(value)
            row.last = np.exp(value)
        else:
            j = -1 - event
            _write(histogram, users[user[j]], out[j])


@njit_apart
def calibrate(
    cal: Calibration, jobs: JobTable, log_s: Floats, kinds: Counts, keeps: bool, out: Floats
) -> None:
    """Process a table's events: learn errors of estimates at job ends, write what follows of them.

    Args:
        cal: updated in place; it is for one model, the reference GPU.
        jobs: the table.
        log_s: [J] estimated log seconds of each job on the reference GPU.
        kinds: [J] kind of each estimate, see calibration_kernel.py.
        keeps: whether estimates are kept until the jobs end.
        out: [J, Q + 1] receives quantiles in log seconds and the confidence of each job submitted.
    """
    latest, quantiles = cal.latest[0], out.shape[1] - 1
    for event in jobs.order:
        j = event if event >= 0 else -1 - event
        if event >= 0 and not recollect(cal, jobs.source[j]):
            forecast(cal, log_s[j], 0.0, 0.0, 0.0, kinds[j], latest)
            describe(cal, latest, cal.spare)
        if event >= 0:
            value = jobs.log_s[j]
            if jobs.model[j] >= 0:
                value += jobs.prior[jobs.kind[j], jobs.model[j]]
            observe(cal, latest, value)
        else:
            forecast(cal, log_s[j], 0.0, 0.0, 0.0, kinds[j], latest)
            out[j, quantiles] = describe(cal, latest, out[j, :quantiles])
            if keeps:
                remember(cal, jobs.source[j])
