"""The estimator `noisy`: the true run times times a lognormal error."""

from __future__ import annotations

import numpy as np

from adlro.errors import ConfigError
from adlro.estimates.job_table import JobTable
from adlro.estimates.oracle import Oracle
from adlro.model.state import Floats

_MODEL_SPREAD = 0.3  # part of the error that differs between GPU models, relative to the common one


class Noisy(Oracle):
    """Multiplies JobTable.truth by errors of spread `sigma`, drawn from `rng`."""

    def _seconds(self, jobs: JobTable) -> Floats:
        rng, sigma = self.settings.rng, self.settings.sigma
        if rng is None:
            raise ConfigError("the estimator 'noisy' needs a random stream")
        common = rng.standard_normal(len(jobs.truth))[:, None]
        apart = rng.standard_normal(jobs.truth.shape)
        seconds: Floats = jobs.truth * np.exp(sigma * (common + _MODEL_SPREAD * apart))
        return seconds
