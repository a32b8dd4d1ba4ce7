"""The interface of run-time estimators, the same in simulations, on histories and on live clusters.

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
    """What an estimator is created from; each takes what it needs."""

    models: tuple[str, ...] = ()  # [M] GPU models to predict for; none = the reference GPU only
    log_speeds: tuple[float, ...] = ()  # [M] assumed for live use; none = all models are alike
    classes: int = 0  # classes of jobs that differ in their speeds
    sigma: float = 0.0  # spread of the error of `noisy`
    rng: np.random.Generator | None = None  # of `noisy`


DEFAULTS = Settings()


class Predictions(NamedTuple):
    """Estimates of J jobs on K GPU models."""

    seconds: Floats  # [J, K] nan = nothing is known at all
    log_s: Floats  # [J, K]
    confidence: Floats  # [J] 0 to 1
    per_model: bool  # False: K = 1, the reference GPU

    def on_models(self, speeds: Floats) -> Floats:
        """Seconds [J, M], by assumed speeds [J, M] where the estimator knows no models."""
        return self.seconds if self.per_model else self.seconds / speeds


class Neighbour(NamedTuple):
    """A job that has ended and that an estimate was drawn from."""

    source: int  # id; -1 = older jobs, of which only the mean is known
    share: float  # of the estimate
    seconds: float  # its run time, adjusted to the job at hand


class Explanation(NamedTuple):
    """How an estimate came about."""

    seconds: float
    confidence: float  # 0 to 1, for the model that it is greatest for
    spread: float  # mean |log(neighbour / estimate)| by share; nan = there are no neighbours
    sources: tuple[Neighbour, ...]  # those with the largest shares, largest first
    matched: str  # which fields agree; "" = nothing is known


class Estimator(Protocol):
    """Predicts run times at submission from jobs that have ended by then."""

    needs_past: ClassVar[bool]  # it learns; a scenario without a history generates a past for it
    needs_truth: ClassVar[bool]  # it reads JobTable.truth, so it works in simulations only
    settings: Settings

    @classmethod
    def create(cls, settings: Settings) -> Self:
        """Return an estimator that has learned nothing."""
        ...

    def tune(self, jobs: JobTable) -> None:
        """Choose parameters by the events of a past, before it is learned."""
        ...

    def learn(self, jobs: JobTable) -> None:
        """Learn the jobs that end in the table's events, in their order."""
        ...

    def predict(self, jobs: JobTable) -> Predictions:
        """Predict all jobs of a table from what has been learned so far."""
        ...

    def follow(self, jobs: JobTable, progress: Progress = ...) -> Predictions:
        """Go through a table's events: learn each end, predict each submission."""
        ...

    def explain(self, jobs: JobTable, job: int, model: int = 0) -> Explanation:
        """Explain what `predict` returns for one job on one model."""
        ...

    def copy(self) -> Self:
        """Return an independent estimator that has learned the same."""
        ...

    def pack(self) -> bytes:
        """Return what has been learned as the content of a file."""
        ...

    @classmethod
    def unpack(cls, data: bytes, where: str) -> Self:
        """Restore an estimator from `pack`; errors call the file `where`.

        Raises:
            TraceError: the bytes are not such a file, or of another version.
        """
        ...


def ends_only(jobs: JobTable) -> JobTable:
    """The table with its ends as the only events."""
    return with_events(jobs, jobs.order >= 0)


def submissions_only(jobs: JobTable) -> JobTable:
    """The table with a submission of every job as the only events."""
    count = len(jobs.log_s)
    return jobs._replace(order=-1 - np.arange(count), time=np.zeros(count))
