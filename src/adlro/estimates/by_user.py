"""Base of the estimators that predict from the run times of the same user's ended jobs.

Where the user has none, they predict the requested time, or else the median of all ended jobs.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, ValidationError

from adlro.errors import TraceError
from adlro.estimates.by_user_kernel import ENDED, MEDIAN, USER, follow_users
from adlro.estimates.estimator import (
    Explanation,
    Predictions,
    Progress,
    Settings,
    ends_only,
    submissions_only,
)
from adlro.estimates.job_fields import USER_FILLER
from adlro.estimates.job_table import JobTable
from adlro.estimates.running_median_kernel import BINS
from adlro.model.record import Record
from adlro.model.state import Counts, Floats

Finite = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _File(Record):
    """Saved estimator (JSON): GPU models, statistics of each user, histogram of run times."""

    models: tuple[str, ...]
    log_speeds: tuple[Finite, ...]
    users: dict[int, tuple[Amount, Finite, Amount, Amount]]  # key -> USER
    run_times: dict[Annotated[int, Field(ge=0, lt=BINS)], Amount]  # bins of the histogram, if not 0


class ByUser:
    """Estimator that predicts one statistic of the run times of the user's ended jobs.

    If the user has no ended job, it predicts the requested time; if there is no request either, the
    median run time of all ended jobs. All jobs without a user count as jobs of one user.
    """

    needs_past: ClassVar[bool] = True
    needs_truth: ClassVar[bool] = False
    statistic: ClassVar[int | None] = None  # column of by_user_kernel; None = the request only

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._row_of: dict[int, int] = {}  # key of a user -> row of _users
        self._users = np.zeros(0, USER)
        self._histogram = np.zeros(BINS)

    @classmethod
    def create(cls, settings: Settings) -> Self:
        """Return an estimator with these settings that has learned nothing."""
        return cls(settings)

    def tune(self, jobs: JobTable) -> None:
        """Do nothing, since this estimator has no parameters."""

    def _rows(self, jobs: JobTable) -> Counts:
        """Return the row [J] of each job's user in `_users`; users not seen before are appended."""
        if jobs.fillings.shape[1] == 0:
            keys = np.zeros(len(jobs.fillings), np.uint64)
        else:
            keys = jobs.fillings[:, USER_FILLER]
        distinct, codes = np.unique(keys, return_inverse=True)
        rows = [self._row_of.setdefault(key, len(self._row_of)) for key in distinct.tolist()]
        added = np.zeros(len(self._row_of) - len(self._users), USER)
        self._users = np.concatenate((self._users, added))
        return np.array(rows, np.int64)[codes]

    def statistics(self, jobs: JobTable) -> Floats:
        """Process a table's events: learn jobs at their ends, record statistics at submissions.

        Returns:
            [J, 4] statistics at each job's submission, in the columns of by_user_kernel.py; nan =
            unknown.
        """
        out = np.full((len(jobs.log_s), 4), np.nan)
        rows = self._rows(jobs)
        follow_users(self._users, self._histogram, jobs, rows, out)
        return out

    def follow(self, jobs: JobTable, progress: Progress = lambda _: None) -> Predictions:
        """Process events in time order: learn each job that ends, estimate each one submitted."""
        found = self.statistics(jobs)
        progress(len(jobs.order))
        count, models = len(found), jobs.prior.shape[1]
        own = np.full(count, np.nan) if self.statistic is None else found[:, self.statistic]
        fallback = np.where(np.isnan(jobs.asked), found[:, MEDIAN], jobs.asked)
        log_s = np.where(np.isnan(own), fallback, own)
        ended = np.where(np.isnan(own), 0.0, found[:, ENDED])
        confidence = ended / (1 + ended)
        if models:
            on_models = log_s[:, None] - jobs.prior[jobs.kind]
            return Predictions(np.exp(on_models), on_models, confidence, True)
        is_request = np.isnan(own) & ~np.isnan(jobs.asked)
        seconds = np.where(is_request, jobs.requested_s, np.exp(log_s))
        return Predictions(seconds[:, None], log_s[:, None], confidence, False)

    def learn(self, jobs: JobTable) -> None:
        """Learn every job that has an end event in the table."""
        self.statistics(ends_only(jobs))

    def predict(self, jobs: JobTable) -> Predictions:
        """Return estimates of all jobs of a table from what has been learned so far."""
        return self.follow(submissions_only(jobs))

    def explain(self, jobs: JobTable, job: int, model: int = 0) -> Explanation:
        """Return the estimate of one job on one GPU model, with its confidence.

        It names no neighbours, since only statistics of the ended jobs are stored.
        """
        found = self.predict(jobs)
        confidence = float(found.confidence[job])
        matched = "same user" if confidence > 0 else ""
        return Explanation(float(found.seconds[job, model]), confidence, np.nan, (), matched)

    def copy(self) -> Self:
        """Return an independent copy that has learned the same jobs."""
        other = type(self)(self.settings)
        other._row_of, other._users = dict(self._row_of), self._users.copy()
        other._histogram = self._histogram.copy()
        return other

    def pack(self) -> bytes:
        """Return what has been learned as the content of a JSON file."""
        users = {key: tuple(self._users[row].tolist()) for key, row in self._row_of.items()}
        bins = {int(b): float(self._histogram[b]) for b in np.flatnonzero(self._histogram)}
        models, log_speeds = self.settings.models, self.settings.log_speeds
        file = _File(models=models, log_speeds=log_speeds, users=users, run_times=bins)
        return file.model_dump_json().encode()

    @classmethod
    def unpack(cls, data: bytes, where: str) -> Self:
        """Restore an estimator from the bytes of `pack`; error messages call the file `where`.

        Raises:
            TraceError: the bytes are not such a file.
        """
        try:
            file = _File.model_validate_json(data)
        except ValidationError as exc:
            raise TraceError(f"{where}: does not hold run times of users") from exc
        found = cls(Settings(file.models, file.log_speeds))
        found._row_of = {key: row for row, key in enumerate(file.users)}
        found._users = np.array(list(file.users.values()), USER)
        for place, count in file.run_times.items():
            found._histogram[place] = count
        return found
