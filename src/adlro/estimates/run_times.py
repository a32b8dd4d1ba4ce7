"""A memory of run times for live use: it learns jobs as they end, and predicts those that come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field, ValidationError

from adlro.errors import ConfigError, TraceError, suggestion
from adlro.estimates import memory as estimators
from adlro.estimates.job_fields import SCHEMA, JobFields, of_one
from adlro.estimates.memory import Explanation
from adlro.estimates.memory_kernel import Estimator, Jobs, predict, take_in
from adlro.estimates.outcomes import BINS, SHORTEST
from adlro.features.hypervectors import saved
from adlro.model.record import Record
from adlro.model.state import Floats

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Note(Record):
    """What a file holds besides the memory itself."""

    log_speeds: tuple[Annotated[float, Field(allow_inf_nan=False)], ...]  # [M] known beforehand
    asked: Amount  # as FACTS
    beyond: Amount
    run_times: dict[Annotated[int, Field(ge=0, lt=BINS)], Amount]  # of the histogram, what is not 0


class Foreseen(NamedTuple):
    """An estimate."""

    seconds: Floats  # [M] on each model asked for; nan = nothing is known at all
    confidence: float  # 0 to 1, for the model that it is greatest for


class RunTimes:
    """What became of jobs, and what will become of others; ages count in jobs, not in time."""

    def __init__(self, models: Sequence[str] = (), speeds: Sequence[float] = ()) -> None:
        """Nothing learned yet.

        Args:
            models: names of the GPU models; none = they do not matter.
            speeds: how fast jobs are on each of them, as far as known; none = all alike.

        Raises:
            ConfigError: two models have one name, or there is not a speed above 0 for each.
        """
        if speeds and (len(speeds) != len(models) or not all(0 < s < math.inf for s in speeds)):
            raise ConfigError("a memory of run times needs one speed above 0 for each GPU model")
        self.models = tuple(models)
        self._estimator = estimators.fresh(self.models)
        self._prior = np.log(np.array([speeds or [1.0] * len(models)], np.float64))

    @classmethod
    def of(cls, estimator: Estimator) -> RunTimes:
        """Of an estimator without GPU models, which is then this one's own."""
        found = cls()
        found._estimator = estimator
        return found

    def _model(self, name: str) -> int:
        """Place of a model; -1 = "", not known."""
        if not name:
            return -1
        if name not in self.models:
            known = suggestion(name, self.models) if self.models else "it was made without any"
            raise ConfigError(f"a memory of run times knows no GPU model {name!r}; {known}")
        return self.models.index(name)

    def _jobs(self, job: JobFields, source: int, log_s: float, model: int) -> Jobs:
        asked = math.log(job.requested_s) if job.requested_s > 0 else math.nan
        return Jobs(
            source=np.array([source]),
            fillings=of_one(job)[None],
            asked=np.array([asked]),
            log_s=np.array([log_s]),
            model=np.array([model]),
            kind=np.zeros(1, np.int64),
            prior=self._prior,
            order=np.zeros(0, np.int64),
            time=np.zeros(0),
        )

    def learn(
        self, job: JobFields, seconds: float, when: float, source: int, model: str = ""
    ) -> None:
        """Take in what became of a job.

        Args:
            job: as it was submitted.
            seconds: that it ran.
            when: it ended, in seconds of one clock for all jobs.
            source: its id, 0 or more; explanations name it.
            model: GPU model that it ran on; "" = not known.

        Raises:
            ConfigError: a number is negative or not finite, or the model is not one of `models`.
        """
        if not (0 <= seconds < math.inf and math.isfinite(when) and source >= 0):
            raise ConfigError(
                f"job {source} cannot be learned: {seconds:g} s that ended at {when:g}; "
                "all three must be finite, seconds and id not below 0"
            )
        log_s = math.log(max(seconds, SHORTEST))
        take_in(self._estimator, self._jobs(job, source, log_s, self._model(model)), 0, when)

    def predict(self, job: JobFields, models: Sequence[str] = ()) -> Foreseen:
        """How long a job will take; models [M], none = all that the memory was made with.

        Raises:
            ConfigError: a number of the job is negative or infinite, or a model is not known.
        """
        if "" in models:
            raise ConfigError("a memory of run times cannot predict for a GPU model without a name")
        places = [self._model(name) for name in models] or slice(None)
        out = np.full(max(1, len(self.models)), np.nan)
        confidence = predict(self._estimator, self._jobs(job, 0, math.nan, -1), 0, out)
        return Foreseen(np.exp(out)[places], confidence)

    def explain(self, job: JobFields, model: str = "") -> Explanation:
        """How the estimate comes about, on one model; "" = the first.

        Raises:
            ConfigError: a number of the job is negative or infinite, or the model is not known.
        """
        jobs = self._jobs(job, 0, math.nan, -1)
        return estimators.explain(self._estimator, jobs, 0, max(0, self._model(model)))

    def pack(self) -> bytes:
        """As a file; the same memory makes the same bytes."""
        facts, histogram = self._estimator.facts[0], self._estimator.histogram
        note = _Note(
            log_speeds=tuple(self._prior[0].tolist()),
            asked=facts["asked"],
            beyond=facts["beyond"],
            run_times={int(b): float(histogram[b]) for b in np.flatnonzero(histogram)},
        )
        kept = saved.SavedMemory(
            SCHEMA, self.models, self._estimator.memory, note.model_dump_json()
        )
        return saved.pack(kept)

    @classmethod
    def unpack(cls, data: bytes, where: str) -> RunTimes:
        """That of a file's bytes; the file is called `where` in errors.

        Raises:
            TraceError: it is not such a file, or not of this version.
        """
        kept = saved.unpack(data, where)
        try:
            note = _Note.model_validate_json(kept.note)
        except ValidationError as exc:
            raise TraceError(
                f"{where}: is a memory, but not one of run times; make it anew"
            ) from exc
        found = cls(kept.models)
        if kept.schema != SCHEMA or len(note.log_speeds) != len(kept.models):
            raise TraceError(f"{where}: was written by another version of adlro; make it anew")
        size = found._estimator.memory.outcomes.shape
        if kept.memory.outcomes.shape != size:
            raise TraceError(f"{where}: was written by another version of adlro; make it anew")
        found._estimator = estimators.around(kept.memory)
        found._estimator.facts[0] = note.asked, note.beyond
        for place, count in note.run_times.items():
            found._estimator.histogram[place] = count
        found._prior[0] = note.log_speeds
        return found
