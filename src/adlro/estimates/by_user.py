"""Base of the estimators that predict from the run times of the same user's ended jobs.

Where the user has none, they predict the requested time, or else the median of all ended jobs.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import AfterValidator, Field, ValidationError, model_validator

from adlro.errors import TraceError
from adlro.estimates.by_user_kernel import ENDED, MEDIAN, USER, calibrate, follow_users
from adlro.estimates.calibration import (
    Amount,
    LogSeconds,
    SavedCalibration,
    copy_into,
    restore,
    saved_calibration,
)
from adlro.estimates.calibration_kernel import (
    BY_MEDIAN,
    BY_REQUEST,
    PROBABILITIES,
    calibration,
    kind_of,
)
from adlro.estimates.estimator import (
    Explanation,
    Predictions,
    Progress,
    Settings,
    ends_only,
    submissions_only,
)
from adlro.estimates.job_fields import USER_FILLER
from adlro.estimates.job_table import SHORTEST_S, JobTable, one_job
from adlro.estimates.running_median_kernel import BINS
from adlro.features.hypervectors.schema import Words
from adlro.model.record import Record
from adlro.model.state import Counts, Floats

_MANY = 10  # ended jobs of a user; errors of estimates from fewer are learned apart
_SPREAD = 1.0  # the spread of a user's jobs is not measured


_Total = Annotated[float, Field(ge=-1e15, le=1e15)]
_Key = Annotated[int, Field(ge=0, lt=1 << 64)]


def _refuse_jobs_without_time(found: tuple[float, float, float, float]) -> tuple[float, ...]:
    ended, _, last, before = found
    if ended > 0 and min(last, before) < SHORTEST_S:
        raise ValueError("a run time is too short")
    return found


_User = Annotated[tuple[Amount, _Total, Amount, Amount], AfterValidator(_refuse_jobs_without_time)]


class _File(Record):
    """Saved estimator (JSON): GPU models, statistics of each user, histogram of run times."""

    models: tuple[str, ...]
    log_speeds: tuple[LogSeconds, ...]
    users: dict[_Key, _User]  # key -> USER
    run_times: dict[Annotated[int, Field(ge=0, lt=BINS)], Amount]  # bins of the histogram, if not 0
    calibration: SavedCalibration

    @model_validator(mode="after")
    def _has_one_speed_for_each_model(self) -> Self:
        if not len(set(self.models)) == len(self.models) == len(self.log_speeds):
            raise ValueError("log_speeds: not one for each model")
        return self


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
        self._calibration = calibration(1)

    @classmethod
    def create(cls, settings: Settings) -> Self:
        """Return an estimator with these settings that has learned nothing."""
        return cls(settings)

    def tune(self, jobs: JobTable) -> None:
        """Do nothing, since this estimator has no parameters."""

    def keys(self, jobs: JobTable) -> Words:
        """Return the key [J] of each job's user; statistics are those of jobs with equal keys."""
        if jobs.fillings.shape[1] == 0:
            return np.zeros(len(jobs.fillings), np.uint64)
        users: Words = jobs.fillings[:, USER_FILLER]
        return users

    def _rows(self, jobs: JobTable) -> Counts:
        """Return the row [J] of each job's user in `_users`; users not seen before are appended."""
        distinct, codes = np.unique(self.keys(jobs), return_inverse=True)
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
        found = self._follow(jobs, True)
        progress(len(jobs.order))
        return found

    def _follow(self, jobs: JobTable, keeps: bool) -> Predictions:
        """Process events in time order; `keeps` estimates to learn from their errors later."""
        found = self.statistics(jobs)
        count, models = len(found), jobs.prior.shape[1]
        own = np.full(count, np.nan) if self.statistic is None else found[:, self.statistic]
        is_request = np.isnan(own) & ~np.isnan(jobs.asked)
        fallback = np.where(is_request, jobs.asked, found[:, MEDIAN])
        log_s = np.where(np.isnan(own), fallback, own)
        kinds = np.where(is_request, BY_REQUEST, BY_MEDIAN)
        ended = np.nan_to_num(found[:, ENDED])
        few, many = kind_of(1.0, _SPREAD), kind_of(9.0, _SPREAD)
        kinds = np.where(np.isnan(own), kinds, np.where(ended < _MANY, few, many))
        out = np.full((count, len(PROBABILITIES) + 1), np.nan)
        calibrate(self._calibration, jobs, log_s, kinds, keeps, out)
        quantiles, confidence = out[:, None, :-1], np.nan_to_num(out[:, -1:])
        if models:
            prior = jobs.prior[jobs.kind]
            on_models, shifted = log_s[:, None] - prior, quantiles - prior[:, :, None]
            confidence = np.repeat(confidence, models, axis=1)
            return Predictions(np.exp(on_models), on_models, confidence, True, shifted)
        seconds = np.where(is_request, jobs.requested_s, np.exp(log_s))
        return Predictions(seconds[:, None], log_s[:, None], confidence, False, quantiles)

    def learn(self, jobs: JobTable) -> None:
        """Learn every job that has an end event in the table."""
        self._follow(ends_only(jobs), True)

    def predict(self, jobs: JobTable) -> Predictions:
        """Return estimates of all jobs of a table from what has been learned so far."""
        return self._follow(submissions_only(jobs), False)

    def explain(self, jobs: JobTable, job: int, model: int = 0) -> Explanation:
        """Return the estimate of one job on one GPU model, with its confidence.

        It names no neighbours, since only statistics of the ended jobs are stored.
        """
        found = self.predict(one_job(jobs, job))
        key = int(self.keys(jobs)[job])
        ended = self._users[self._row_of[key]]["ended"]
        matched = "same user" if self.statistic is not None and ended > 0 else ""
        return found.explained(0, model, matched=matched)

    def copy(self) -> Self:
        """Return an independent copy that has learned the same jobs."""
        other = type(self)(self.settings)
        other._row_of, other._users = dict(self._row_of), self._users.copy()
        other._histogram = self._histogram.copy()
        copy_into(other._calibration, self._calibration)
        return other

    def pack(self) -> bytes:
        """Return what has been learned as the content of a JSON file."""
        users = {key: tuple(self._users[row].tolist()) for key, row in self._row_of.items()}
        bins = {int(b): float(self._histogram[b]) for b in np.flatnonzero(self._histogram)}
        models, log_speeds = self.settings.models, self.settings.log_speeds
        file = _File(
            models=models,
            log_speeds=log_speeds or (0.0,) * len(models),
            users=users,
            run_times=bins,
            calibration=saved_calibration(self._calibration),
        )
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
        if not restore(found._calibration, file.calibration):
            raise TraceError(f"{where}: was written by another version of adlro; create it again")
        found._row_of = {key: row for row, key in enumerate(file.users)}
        found._users = np.array(list(file.users.values()), USER)
        for place, count in file.run_times.items():
            found._histogram[place] = count
        return found
