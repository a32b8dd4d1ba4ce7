"""The estimator `oracle`: the true run times, which only a simulation knows."""

from __future__ import annotations

import statistics
from typing import ClassVar, Self

import numpy as np

from adlro.errors import ConfigError
from adlro.estimates.calibration_kernel import FACTOR_2, PROBABILITIES
from adlro.estimates.estimator import Explanation, Predictions, Progress, Settings
from adlro.estimates.job_table import JobTable
from adlro.model.state import Floats


class Oracle:
    """Estimator that returns the true run times, JobTable.truth."""

    needs_past: ClassVar[bool] = False
    needs_truth: ClassVar[bool] = True

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @classmethod
    def create(cls, settings: Settings) -> Self:
        """Return an estimator with these settings."""
        return cls(settings)

    def tune(self, jobs: JobTable) -> None:
        """Do nothing, since this estimator has no parameters."""

    def learn(self, jobs: JobTable) -> None:
        """Do nothing, since the true run times are already in the table."""

    def _seconds(self, jobs: JobTable) -> Floats:
        return jobs.truth

    def _spread(self) -> float:
        """Return the standard deviation of the log errors of the estimates."""
        return 0.0

    def predict(self, jobs: JobTable) -> Predictions:
        """Return the estimates of all jobs of a table, with the confidence that follows.

        Raises:
            ConfigError: the table does not hold true run times.
        """
        if jobs.truth.shape[1] == 0:
            raise ConfigError("true run times are known in simulations only; choose 'memory'")
        seconds = self._seconds(jobs)
        log_s, spread = np.log(seconds), self._spread()
        normal = statistics.NormalDist()
        steps = np.array([spread * normal.inv_cdf(p) for p in PROBABILITIES])
        within_2 = 2 * normal.cdf(FACTOR_2 / spread) - 1 if spread > 0 else 1.0
        quantiles = log_s[..., None] + steps
        return Predictions(seconds, log_s, np.full(seconds.shape, within_2), True, quantiles)

    def follow(self, jobs: JobTable, progress: Progress = lambda _: None) -> Predictions:
        """Return the same as `predict`, and report all events as done."""
        progress(len(jobs.order))
        return self.predict(jobs)

    def explain(self, jobs: JobTable, job: int, model: int = 0) -> Explanation:
        """Return the estimate of one job on one GPU model, without neighbours."""
        return self.predict(jobs).explained(job, model, matched="the true run time")

    def copy(self) -> Self:
        """Return this same object, since it learns nothing."""
        return self

    def pack(self) -> bytes:
        """Return empty bytes, since nothing is learned."""
        return b""

    @classmethod
    def unpack(cls, data: bytes, where: str) -> Self:
        """Return an estimator with default settings; `data` is ignored."""
        return cls(Settings())
