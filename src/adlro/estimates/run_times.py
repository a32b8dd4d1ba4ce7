"""Any estimator for live use, job by job: learn jobs as they end, predict those that arrive."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adlro.config.scenario import EstimateSource
from adlro.errors import ConfigError, suggestion
from adlro.estimates.estimator import Estimator, Explanation, Settings
from adlro.estimates.job_fields import JobFields, of_one
from adlro.estimates.job_table import SHORTEST_S, EventOrder, JobTable, table
from adlro.estimates.registry import ESTIMATORS
from adlro.model.state import Floats


class Prediction(NamedTuple):
    """The estimate of one job."""

    seconds: Floats  # [M] on each model asked for; nan = nothing is known at all
    confidence: float  # 0 to 1, for the model that it is greatest for


class RunTimes:
    """An estimator that is asked about one job at a time; ages count in jobs, not in time."""

    def __init__(
        self,
        models: Sequence[str] = (),
        speeds: Sequence[float] = (),
        estimator: EstimateSource = "memory",
    ) -> None:
        """Start with nothing learned.

        Args:
            models: names of the GPU models; none = they do not matter.
            speeds: assumed speed of jobs on each of them; none = all alike.
            estimator: name in the registry.

        Raises:
            ConfigError: two models have one name, or there is not a speed above 0 for each.
        """
        if speeds and (len(speeds) != len(models) or not all(0 < s < math.inf for s in speeds)):
            raise ConfigError("a memory of run times needs one speed above 0 for each GPU model")
        log_speeds = np.log(np.array(speeds or [1.0] * len(models), np.float64))
        settings = Settings(tuple(models), tuple(log_speeds.tolist()))
        self._estimator: Estimator = ESTIMATORS[estimator].create(settings)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the GPU models."""
        return self._estimator.settings.models

    def _model(self, name: str) -> int:
        """Place of a model; -1 = "", unknown."""
        if not name:
            return -1
        if name not in self.models:
            known = suggestion(name, self.models) if self.models else "it was made without any"
            raise ConfigError(f"a memory of run times knows no GPU model {name!r}; {known}")
        return self.models.index(name)

    @functools.cached_property
    def _blank(self) -> JobTable:
        """Table of one job without fields and events."""
        nothing = EventOrder(np.full(1, np.nan), np.zeros(0, np.int64), np.zeros(0))
        found = table(np.zeros((1, 0), np.uint64), np.full(1, np.nan), nothing)
        return found._replace(prior=np.array([self._estimator.settings.log_speeds]))

    def _table(self, job: JobFields) -> JobTable:
        """Table of one job without events."""
        requested = job.requested_s if job.requested_s > 0 else math.nan
        return self._blank._replace(
            fillings=of_one(job)[None],
            requested_s=np.array([requested]),
            asked=np.array([math.log(requested)]),
        )

    def learn(
        self, job: JobFields, seconds: float, when: float, source: int, model: str = ""
    ) -> None:
        """Learn a job that has ended.

        Args:
            job: as it was submitted.
            seconds: its run time.
            when: its end, in seconds of one clock for all jobs.
            source: its id, 0 or more; explanations name it.
            model: GPU model that it ran on; "" = unknown.

        Raises:
            ConfigError: a number is negative or not finite, or the model is not one of `models`.
        """
        if not (0 <= seconds < math.inf and math.isfinite(when) and source >= 0):
            raise ConfigError(
                f"job {source} cannot be learned: {seconds:g} s that ended at {when:g}; "
                "all three must be finite, seconds and id not below 0"
            )
        ended = self._table(job)._replace(
            source=np.array([source]),
            log_s=np.array([math.log(max(seconds, SHORTEST_S))]),
            model=np.array([self._model(model)]),
            order=np.zeros(1, np.int64),
            time=np.array([when]),
        )
        self._estimator.learn(ended)

    def predict(self, job: JobFields, models: Sequence[str] = ()) -> Prediction:
        """Predict a job's run time on models [M]; none = all that the estimator was created with.

        Raises:
            ConfigError: a number of the job is negative or infinite, or a model is not known.
        """
        if "" in models:
            raise ConfigError("a memory of run times cannot predict for a GPU model without a name")
        places = [self._model(name) for name in models] or slice(None)
        found = self._estimator.predict(self._table(job))
        return Prediction(found.seconds[0][places], float(found.confidence[0]))

    def explain(self, job: JobFields, model: str = "") -> Explanation:
        """Explain the estimate on one model; "" = the first.

        Raises:
            ConfigError: a number of the job is negative or infinite, or the model is not known.
        """
        return self._estimator.explain(self._table(job), 0, max(0, self._model(model)))

    def pack(self) -> bytes:
        """Return the content of a file; the same estimator gives the same bytes."""
        return self._estimator.pack()

    @classmethod
    def unpack(cls, data: bytes, where: str, estimator: EstimateSource = "memory") -> RunTimes:
        """Restore what `pack` returned; errors call the file `where`.

        Raises:
            TraceError: it is not such a file, or of another version.
        """
        found = cls()
        found._estimator = ESTIMATORS[estimator].unpack(data, where)
        return found
