"""An estimator for live use: it learns each job when it ends and predicts submitted jobs."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adlro.config.scenario import EstimateSource
from adlro.errors import ConfigError, suggestion
from adlro.estimates.estimator import Estimator, Explanation, Settings, quantile
from adlro.estimates.job_fields import JobFields, of_one
from adlro.estimates.job_table import SHORTEST_S, EventOrder, JobTable, table
from adlro.estimates.registry import ESTIMATORS
from adlro.model.state import Floats

_MOST_S, _SOURCES = 1e11, 1 << 62  # longest run time, as in histories; ids are below this
_FASTEST = 1e6  # speeds are between 1 / this and this


class Prediction(NamedTuple):
    """Estimated run time of one job on each of M GPU models, and the confidence in it."""

    seconds: Floats  # [M] on each model asked for; nan = nothing is known at all
    confidence: Floats  # [M] probability that `seconds` is within a factor of 2 of the run time
    log_quantiles: Floats  # [M, Q] log seconds for PROBABILITIES, see Predictions

    def at(self, probability: float) -> Floats:
        """Return seconds [M] that the run time does not exceed with a probability, 0.02 to 0.98.

        Raises:
            ConfigError: the probability is outside of that range.
        """
        return quantile(self.log_quantiles, probability)


def _check_source(source: int) -> None:
    if not (isinstance(source, int | np.integer) and 0 <= source < _SOURCES):
        raise ConfigError(f"{source!r} is no id of a job: it is a whole number, 0 to 2^62 - 1")


class RunTimes:
    """An estimator that learns and predicts one job at a time.

    The estimator `memory` gives less weight to older jobs; a job's age is the number of jobs
    learned after it, not the time that has passed.
    """

    def __init__(
        self,
        models: Sequence[str] = (),
        speeds: Sequence[float] = (),
        estimator: EstimateSource = "memory",
    ) -> None:
        """Create an estimator that has learned nothing.

        Args:
            models: names of the GPU models to tell apart; none = all GPUs count as the reference
                GPU.
            speeds: assumed speed of jobs on each of `models`, above 0; none = all equally fast.
            estimator: name of the estimator in registry.py.

        Raises:
            ConfigError: two models have the same name, `speeds` is given without one speed above 0
                for each model, or there is no such estimator for live use.
        """
        if speeds and (
            len(speeds) != len(models) or not all(1 / _FASTEST <= s <= _FASTEST for s in speeds)
        ):
            raise ConfigError("a memory of run times needs one speed above 0 for each GPU model")
        if estimator not in ESTIMATORS:
            raise ConfigError(f"no estimator {estimator!r}; {suggestion(estimator, ESTIMATORS)}")
        log_speeds = np.log(np.array(speeds or [1.0] * len(models), np.float64))
        settings = Settings(tuple(models), tuple(log_speeds.tolist()))
        self._estimator: Estimator = ESTIMATORS[estimator].create(settings)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the GPU models that the estimator tells apart."""
        return self._estimator.settings.models

    def _model(self, name: str) -> int:
        """Return the index of a GPU model in `models`; -1 for the name "" (model unknown)."""
        if not name:
            return -1
        if name not in self.models:
            known = suggestion(name, self.models) if self.models else "it was made without any"
            raise ConfigError(f"a memory of run times knows no GPU model {name!r}; {known}")
        return self.models.index(name)

    @functools.cached_property
    def _blank(self) -> JobTable:
        """Table of one job without events, with all of its fields unknown."""
        nothing = EventOrder(np.full(1, np.nan), np.zeros(0, np.int64), np.zeros(0))
        found = table(np.zeros((1, 0), np.uint64), np.full(1, np.nan), nothing)
        return found._replace(prior=np.array([self._estimator.settings.log_speeds]))

    def _table(self, job: JobFields) -> JobTable:
        """Return a table that holds this one job and no events."""
        requested = job.requested_s if job.requested_s > 0 else math.nan
        return self._blank._replace(
            fillings=of_one(job)[None],
            requested_s=np.array([requested]),
            asked=np.array([math.log(requested)]),
        )

    def learn(
        self,
        job: JobFields,
        seconds: float,
        when: float,
        source: int,
        model: str = "",
        utilisation: float = math.nan,
    ) -> None:
        """Learn the run time of a job that has ended.

        Args:
            job: fields of the job at its submission.
            seconds: run time of the job.
            when: time at which the job ended, in seconds of a clock that is the same for all jobs.
            source: id of the job, 0 or more; explanations name it.
            model: GPU model that the job ran on; "" = unknown.
            utilisation: measured mean utilisation of its GPUs, 0 to 1; nan = not measured. Later
                jobs of the same user and name get it as a field (estimator `memory`).

        Raises:
            ConfigError: a number is negative or not finite, or the model is not one of `models`.
        """
        if not (0 <= utilisation <= 1 or math.isnan(utilisation)):
            raise ConfigError(
                f"job {source} cannot be learned: its GPU utilisation is {utilisation:g}, not "
                "between 0 and 1"
            )
        if not (0 <= seconds <= _MOST_S and math.isfinite(when)):
            raise ConfigError(
                f"job {source} cannot be learned: {seconds:g} s that ended at {when:g}; seconds "
                f"are between 0 and {_MOST_S:g}, the end is a finite number"
            )
        _check_source(source)
        ended = self._table(job)._replace(
            source=np.array([source]),
            log_s=np.array([math.log(max(seconds, SHORTEST_S))]),
            model=np.array([self._model(model)]),
            order=np.zeros(1, np.int64),
            time=np.array([when], np.float64),
            utilisation=np.array([utilisation], np.float64),
        )
        self._estimator.learn(ended)

    def predict(
        self, job: JobFields, models: Sequence[str] = (), source: int | None = None
    ) -> Prediction:
        """Return the estimated run time of a job on each of `models`.

        Without `models`, the estimate is made for all models that the estimator was created with.
        Give the job's id as `source` at its submission: the estimate is then kept until `learn`
        tells the end of that job, and quantiles and confidences are learned from its error. Without
        it they are learned from an estimate made at the end, which is a little better informed.

        Raises:
            ConfigError: a number of the job is negative or infinite, a model is not known, or the
                id cannot be one.
        """
        if source is not None:
            _check_source(source)
        if "" in models:
            raise ConfigError("a memory of run times cannot predict for a GPU model without a name")
        places = [self._model(name) for name in models] or slice(None)
        asked = self._table(job)
        if source is None:
            found = self._estimator.predict(asked)
        else:
            submitted = asked._replace(source=np.array([source]), order=np.full(1, -1))
            found = self._estimator.follow(submitted._replace(time=np.zeros(1)))
        rows = (found.seconds, found.confidence, found.log_quantiles)
        return Prediction(*(row[0][places] for row in rows))

    def explain(self, job: JobFields, model: str = "") -> Explanation:
        """Return how the estimate of a job on one GPU model was made; model "" = the first model.

        Raises:
            ConfigError: a number of the job is negative or infinite, or the model is not known.
        """
        return self._estimator.explain(self._table(job), 0, max(0, self._model(model)))

    def pack(self) -> bytes:
        """Return what has been learned as a file's content; equal estimators give equal bytes."""
        return self._estimator.pack()

    @classmethod
    def unpack(cls, data: bytes, where: str, estimator: EstimateSource = "memory") -> RunTimes:
        """Restore an estimator from the bytes that `pack` returned.

        Args:
            data: content of the file.
            where: name of the file in error messages.
            estimator: name of the estimator in registry.py that wrote the file.

        Raises:
            TraceError: the bytes are not such a file, or another version of adlro wrote it.
        """
        found = cls()
        found._estimator = ESTIMATORS[estimator].unpack(data, where)
        return found
