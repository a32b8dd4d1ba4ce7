"""The estimator `noisy`: the true run times multiplied by lognormal errors."""

from __future__ import annotations

import math

import numpy as np

from adlro.errors import ConfigError
from adlro.estimates.job_table import JobTable
from adlro.estimates.oracle import Oracle
from adlro.model.state import Floats

_MODEL_SPREAD = 0.3  # part of the error that differs between GPU models, relative to the common one


class Noisy(Oracle):
    """Estimator that returns JobTable.truth multiplied by lognormal errors.

    The settings give the spread `sigma` of the log error and the random stream `rng`. Most of a
    job's error is the same on all GPU models; a smaller part is drawn for each model.
    """

    def _seconds(self, jobs: JobTable) -> Floats:
        rng, sigma = self.settings.rng, self.settings.sigma
        if rng is None:
            raise ConfigError("the estimator 'noisy' needs a random stream")
        common = rng.standard_normal(len(jobs.truth))[:, None]
        apart = rng.standard_normal(jobs.truth.shape)
        seconds: Floats = jobs.truth * np.exp(sigma * (common + _MODEL_SPREAD * apart))
        return seconds

    def _spread(self) -> float:
        return self.settings.sigma * math.sqrt(1 + _MODEL_SPREAD**2)
