"""Interface of run-time estimators; simulations, histories and live clusters share it.

An estimator reads tables of jobs (job_table.py). How to add one: docs/estimators.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np

from adlro.estimates.job_table import JobTable, with_events
from adlro.model.state import Floats

Progress = Callable[[int], object]  # called with the number of events done so far


class Settings(NamedTuple):
    """Settings for the creation of an estimator; each estimator reads only those it needs."""

    models: tuple[str, ...] = ()  # [M] GPU models to predict for; none = the reference GPU only
    log_speeds: tuple[float, ...] = ()  # [M] assumed for live use; none = all models are alike
    classes: int = 0  # classes of jobs that differ in their speeds
    sigma: float = 0.0  # spread of the error of `noisy`
    rng: np.random.Generator | None = None  # random stream of `noisy`


DEFAULTS = Settings()


class Predictions(NamedTuple):
    """Estimated run times of J jobs on K GPU models, with confidences."""

    seconds: Floats  # [J, K] nan = nothing is known at all
    log_s: Floats  # [J, K]
    confidence: Floats  # [J] 0 to 1
    per_model: bool  # False: K = 1, the reference GPU

    def on_models(self, speeds: Floats) -> Floats:
        """Return the estimated seconds [J, M] of each job on each GPU model.

        speeds [J, M]: speed of each job on each model, relative to the reference GPU. It converts
        estimates that were made for the reference GPU only; others are returned unchanged.
        """
        return self.seconds if self.per_model else self.seconds / speeds


class Neighbour(NamedTuple):
    """An ended job that contributed to an estimate: its id, its share and its run time."""

    source: int  # id; -1 = older jobs, of which only the mean is known
    share: float  # of the estimate that comes from this job, 0 to 1
    seconds: float  # run time of this job, adjusted to the job that is estimated


class Explanation(NamedTuple):
    """An estimate with its confidence, the jobs that contributed and the fields that agree."""

    seconds: float
    confidence: float  # 0 to 1, the largest over the models
    spread: float  # mean |log(neighbour / estimate)| by share; nan = there are no neighbours
    sources: tuple[Neighbour, ...]  # those with the largest shares, largest first
    matched: str  # which fields agree; "" = nothing is known


class Estimator(Protocol):
    """Interface of estimators, which predict run times of submitted jobs from ended jobs."""

    needs_past: ClassVar[bool]  # it learns; a scenario without a history generates a past for it
    needs_truth: ClassVar[bool]  # it reads JobTable.truth, so it works in simulations only
    settings: Settings

    @classmethod
    def create(cls, settings: Settings) -> Self:
        """Return an estimator with these settings that has learned nothing."""
        ...

    def tune(self, jobs: JobTable) -> None:
        """Choose the estimator's parameters on a table of past jobs, without learning the jobs."""
        ...

    def learn(self, jobs: JobTable) -> None:
        """Learn every job that has an end event in the table, in the order of the events."""
        ...

    def predict(self, jobs: JobTable) -> Predictions:
        """Return estimates of all jobs of a table from what has been learned so far."""
        ...

    def follow(self, jobs: JobTable, progress: Progress = ...) -> Predictions:
        """Process events in time order: learn each job that ends, estimate each one submitted.

        Returns:
            Estimates of all jobs; only those of jobs with a submission event are meaningful.
        """
        ...

    def explain(self, jobs: JobTable, job: int, model: int = 0) -> Explanation:
        """Return how the estimate of one job of the table on one GPU model is made."""
        ...

    def copy(self) -> Self:
        """Return an independent copy that has learned the same jobs."""
        ...

    def pack(self) -> bytes:
        """Return what has been learned as the content of a file."""
        ...

    @classmethod
    def unpack(cls, data: bytes, where: str) -> Self:
        """Restore an estimator from the bytes of `pack`; error messages call the file `where`.

        Raises:
            TraceError: the bytes are not such a file, or another version of adlro wrote it.
        """
        ...


def ends_only(jobs: JobTable) -> JobTable:
    """Return the same table with its job ends as the only events."""
    return with_events(jobs, jobs.order >= 0)


def submissions_only(jobs: JobTable) -> JobTable:
    """Return a copy of the table whose only events are submissions: one per job, all at time 0."""
    count = len(jobs.log_s)
    return jobs._replace(order=-1 - np.arange(count), time=np.zeros(count))
