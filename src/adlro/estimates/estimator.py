"""Interface of run-time estimators; simulations, histories and live clusters share it.

An estimator reads tables of jobs (job_table.py). How to add one: docs/estimators.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np

from adlro.errors import ConfigError
from adlro.estimates.calibration_kernel import PROBABILITIES
from adlro.estimates.job_table import JobTable, with_events
from adlro.model.state import Floats

INTERVAL = (0.1, 0.9)  # probabilities of an 80 % interval
Progress = Callable[[int], object]  # called with the number of events done so far


class Settings(NamedTuple):
    """Settings for the creation of an estimator; each estimator reads only those it needs."""

    models: tuple[str, ...] = ()  # [M] GPU models to predict for; none = the reference GPU only
    log_speeds: tuple[float, ...] = ()  # [M] assumed for live use; none = all models are alike
    sigma: float = 0.0  # spread of the error of `noisy`
    rng: np.random.Generator | None = None  # random stream of `noisy`


DEFAULTS = Settings()


class Neighbour(NamedTuple):
    """An ended job that contributed to an estimate: its id, its share and its run time."""

    source: int  # id; -1 = older jobs, of which only the mean is known
    share: float  # of the estimate that comes from this job, 0 to 1
    seconds: float  # run time of this job, adjusted to the job that is estimated


class Explanation(NamedTuple):
    """An estimate with its confidence, the jobs that contributed and the fields that agree."""

    seconds: float
    confidence: float  # probability that it is within a factor of 2 of the run time
    interval: tuple[float, float]  # seconds: the run time is in it with a probability of 80 %
    spread: float  # mean |log(neighbour / estimate)| by share; nan = there are no neighbours
    sources: tuple[Neighbour, ...]  # those with the largest shares, largest first
    matched: str  # which fields agree; "" = nothing is known


def quantile(log_quantiles: Floats, probability: float) -> Floats:
    """Return the quantile of run times in seconds [...] from log quantiles [..., Q].

    It is interpolated linearly in log seconds between PROBABILITIES.

    Raises:
        ConfigError: the probability is not between 0.02 and 0.98.
    """
    lowest, highest = PROBABILITIES[0], PROBABILITIES[-1]
    if not lowest <= probability <= highest:
        raise ConfigError(
            f"a quantile of run times is between {lowest} and {highest}, not {probability:g}"
        )
    above = max(1, int(np.searchsorted(PROBABILITIES, probability)))
    low, high = PROBABILITIES[above - 1], PROBABILITIES[above]
    share = (probability - low) / (high - low)
    log_s = (1 - share) * log_quantiles[..., above - 1] + share * log_quantiles[..., above]
    return np.asarray(np.exp(log_s))


class Predictions(NamedTuple):
    """Estimated run times of J jobs on K GPU models, with quantiles and confidences."""

    seconds: Floats  # [J, K] nan = nothing is known at all
    log_s: Floats  # [J, K]
    confidence: Floats  # [J, K] probability of being within a factor of 2 of the run time
    per_model: bool  # False: K = 1, the reference GPU
    log_quantiles: Floats  # [J, K, Q] log seconds for PROBABILITIES; nan = unknown

    def at(self, probability: float) -> Floats:
        """Return seconds [J, K] that the run time does not exceed with a probability.

        Raises:
            ConfigError: the probability is not between 0.02 and 0.98.
        """
        return quantile(self.log_quantiles, probability)

    def on_models(self, speeds: Floats, probability: float | None = None) -> Floats:
        """Return the estimated seconds [J, M] of each job on each GPU model.

        speeds [J, M]: speed of each job on each model, relative to the reference GPU. It converts
        estimates that were made for the reference GPU only; others are returned unchanged.
        With a probability, that quantile of the run time is returned instead of the estimate.
        """
        seconds = self.seconds if probability is None else self.at(probability)
        return seconds if self.per_model else seconds / speeds

    def explained(
        self,
        job: int,
        model: int,
        spread: float = math.nan,
        sources: tuple[Neighbour, ...] = (),
        matched: str = "",
    ) -> Explanation:
        """Return the estimate of one job on one model with its interval, and how it was made."""
        low, high = (float(self.at(p)[job, model]) for p in INTERVAL)
        return Explanation(
            float(self.seconds[job, model]),
            float(self.confidence[job, model]),
            (low, high),
            spread,
            sources,
            matched,
        )


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
