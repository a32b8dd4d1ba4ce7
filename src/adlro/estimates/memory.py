"""The estimator `memory`: it predicts a job's run time from similar jobs that have ended.

A second stage (blend_kernel.py) blends its answer with statistics of alike jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, ValidationError

from adlro.errors import TraceError
from adlro.estimates import blend_kernel, job_fields
from adlro.estimates.blend import SavedBlend, restored, saved_blend
from adlro.estimates.calibration import (
    Amount,
    LogSeconds,
    SavedCalibration,
    copy_into,
    restore,
    saved_calibration,
)
from adlro.estimates.calibration_kernel import PROBABILITIES, calibration
from adlro.estimates.errors import errors
from adlro.estimates.estimator import (
    DEFAULTS,
    Explanation,
    Neighbour,
    Predictions,
    Progress,
    Settings,
    ends_only,
    submissions_only,
)
from adlro.estimates.job_table import JobTable, one_job, with_events
from adlro.estimates.memory_kernel import FACTS, MemoryState, follow
from adlro.estimates.running_median_kernel import BINS
from adlro.estimates.utilisation_kernel import USE, USES
from adlro.features.hypervectors import memory as memories
from adlro.features.hypervectors import saved
from adlro.features.hypervectors.explain import sentence
from adlro.features.hypervectors.memory import Memory as Patterns
from adlro.features.hypervectors.memory import Query, Size, Weighing
from adlro.features.hypervectors.recall_kernel import answer, gather, shift
from adlro.features.hypervectors.unbind_kernel import match_parts, pattern_of
from adlro.model.record import Record

WEIGHING = Weighing(fresh=5.0, fading=0.8, slope=1.0, half_evidence=1.0, apart=0.25, known=12.0)
CHOICES = tuple(  # for `tune`; the first is used on histories
    WEIGHING._replace(fading=fading, nats=nats)
    for fading in (WEIGHING.fading, 0.0)
    for nats in (1.0, 0.5, 0.25)
)
NEAREST = 64  # patterns of each GPU model that an estimate is drawn from
CLASSES = 64  # of jobs that differ in their speeds on GPU models
_LATEST, _HALF_JOBS = 32, 5_000.0  # run times stored by pattern; jobs after which it counts half
_STRETCH = 4_096  # events between two reports of progress
_SHOWN = 5  # neighbours in an explanation
_LEARNED = 0.8  # share of the events of a past that `tune` learns before it measures the rest

Share = Annotated[float, Field(ge=0, le=1)]


class _Note(Record):
    """Part of a saved estimator that is stored beside its patterns: all but these."""

    log_speeds: tuple[LogSeconds, ...]  # [M] assumed
    asked: Amount  # as FACTS
    beyond: Amount
    run_times: dict[Annotated[int, Field(ge=0, lt=BINS)], Amount]  # bins of the histogram, if not 0
    calibration: SavedCalibration
    uses: dict[Annotated[int, Field(gt=0, lt=1 << 64)], tuple[Share, Amount]]  # key -> USE
    blend: SavedBlend


def _state_of(patterns: Patterns) -> MemoryState:
    """Return a state with these patterns, zero FACTS and an empty histogram of run times."""
    space, models = job_fields.SPACE, max(1, len(patterns.model_bits))
    return MemoryState(
        space,
        patterns,
        memories.work_for(patterns, NEAREST),
        WEIGHING,
        np.zeros(1, FACTS),
        np.zeros(BINS),
        blend_kernel.empty(models),
        calibration(models),
        np.zeros(USES, USE),
        np.zeros(space.fillers, np.uint64),
        np.zeros(models, memories.ANSWER),
        np.zeros(1),
        np.zeros((models, len(PROBABILITIES))),
        np.zeros(models),
        np.zeros(len(space.binding), np.uint64),
        np.zeros(len(space.binding), np.uint64),
    )


def _fresh(models: Sequence[str]) -> MemoryState:
    classes = CLASSES if models else 0
    size = Size(latest=_LATEST, classes=classes, half_jobs=_HALF_JOBS)
    return _state_of(memories.empty(job_fields.SPACE, size, models))


class Memory:
    """Estimator that predicts from an associative memory of ended jobs.

    If the settings name GPU models, it learns their relative speeds from similar jobs that ran on
    different models. Otherwise all run times count as run times on the reference GPU.
    """

    needs_past: ClassVar[bool] = True
    needs_truth: ClassVar[bool] = False

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        """Create a memory that has learned nothing.

        Raises:
            ConfigError: there are too many GPU models, or two models have the same name.
        """
        self.settings = settings
        self.state = _fresh(settings.models)

    @classmethod
    def create(cls, settings: Settings) -> Self:
        """Return a memory with these settings that has learned nothing."""
        return cls(settings)

    def tune(self, jobs: JobTable) -> None:
        """Choose the weighing of CHOICES with the smallest error on the last fifth of the events.

        For each choice, a copy learns the first four fifths and then predicts the rest. The best
        choice depends on how much users and hours reveal about run times (in a simulation often
        nothing): it sets how strongly dissimilar jobs are discounted, and how fast old jobs lose
        weight.
        """
        at = np.arange(len(jobs.order))
        later = at >= _LEARNED * len(at)
        learned = self.copy()
        learned.learn(with_events(jobs, ~later))
        all_jobs = np.ones(len(jobs.log_s), np.bool_)
        found = []
        for weighing in CHOICES:
            tried = learned.copy()
            tried.weigh(weighing)
            log_s = tried.follow(with_events(jobs, later)).log_s[:, 0]
            found.append(errors(log_s, jobs.log_s, all_jobs).mae_log)
        self.weigh(CHOICES[0] if np.isnan(found).any() else CHOICES[int(np.argmin(found))])

    def weigh(self, weighing: Weighing) -> None:
        """Set how estimates weigh the patterns of ended jobs, by similarity and age."""
        self.state = self.state._replace(weighing=weighing)

    def learn(self, jobs: JobTable) -> None:
        """Learn every job that has an end event in the table, in the order of the events."""
        self.follow(ends_only(jobs))

    def predict(self, jobs: JobTable) -> Predictions:
        """Return estimates of all jobs of a table from what has been learned so far."""
        return self._follow(submissions_only(jobs), False, lambda _: None)

    def follow(self, jobs: JobTable, progress: Progress = lambda _: None) -> Predictions:
        """Process events in time order: learn each job that ends, estimate each one submitted."""
        return self._follow(jobs, True, progress)

    def _follow(self, jobs: JobTable, keeps: bool, progress: Progress) -> Predictions:
        """Process events in time order; `keeps` estimates to learn from their errors later."""
        count, models = len(jobs.log_s), len(self.state.memory.model_bits)
        log_s = np.full((count, max(1, models)), np.nan)
        quantiles = np.full((*log_s.shape, len(PROBABILITIES)), np.nan)
        confidence = np.zeros_like(log_s)
        for first in range(0, len(jobs.order), _STRETCH):
            last = min(first + _STRETCH, len(jobs.order))
            follow(self.state, jobs, first, last, keeps, log_s, quantiles, confidence)
            progress(last)
        return Predictions(np.exp(log_s), log_s, confidence, models > 0, quantiles)

    def explain(self, jobs: JobTable, job: int, model: int = 0) -> Explanation:
        """Return how one job's estimate on one GPU model is made, and from which jobs."""
        space, memory, work, weighing, *_ = self.state
        found = self.predict(one_job(jobs, job))
        kind, bits, known = int(jobs.kind[job]), self.state.bits, self.state.known
        group = job_fields.class_of(self.state.filling, kind, len(memory.speeds) - 1)
        query = Query(bits, known, float(jobs.asked[job]), group, jobs.prior[kind])
        asked = model if len(memory.model_bits) else -1
        count = gather(space, memory, query, weighing, work)
        answer(space, memory, query, weighing, asked, count, work, work.answers[model])
        sources = work.sources[:count]
        sources = sources[np.argsort(-sources["share"], kind="stable")][:_SHOWN]
        neighbours = []
        for row in sources:
            log_s = row["log_seconds"] + shift(memory, query, int(row["model"]), asked)
            neighbours.append(
                Neighbour(int(row["source"]), float(row["share"]), float(np.exp(log_s)))
            )
        matched = self._matched(int(sources[0]["slot"])) if neighbours else ""
        spread = float(work.answers[model]["spread"])
        return found.explained(0, model, spread, tuple(neighbours), matched)

    def _matched(self, slot: int) -> str:
        """Describe in which fields the last predicted job agrees with a stored pattern.

        slot: index of the pattern in the memory.
        """
        pattern = np.zeros(len(self.state.bits), np.uint64)
        pattern_of(self.state.memory, slot, pattern)
        parts = np.zeros(len(self.state.space.roles))
        match_parts(self.state.space, self.state.bits, self.state.known, pattern, parts)
        return sentence(job_fields.SCHEMA, parts)

    def copy(self) -> Self:
        """Return an independent copy that has learned the same jobs."""
        other = type(self).__new__(type(self))
        other.settings = self.settings
        other.state = _state_of(memories.copy(self.state.memory))
        other.state.facts[:], other.state.histogram[:] = self.state.facts, self.state.histogram
        other.state.uses[:] = self.state.uses
        copy_into(other.state.calibration, self.state.calibration)
        other.weigh(self.state.weighing)
        for to, array in zip(other.state.blend, self.state.blend, strict=True):
            to[:] = array
        return other

    def pack(self) -> bytes:
        """Return the memory as the content of an .npz file; equal memories give equal bytes."""
        facts, histogram, uses = self.state.facts[0], self.state.histogram, self.state.uses
        note = _Note(
            log_speeds=self.settings.log_speeds or (0.0,) * len(self.settings.models),
            asked=facts["asked"],
            beyond=facts["beyond"],
            run_times={int(b): float(histogram[b]) for b in np.flatnonzero(histogram)},
            calibration=saved_calibration(self.state.calibration),
            uses={int(row["key"]): (row["mean"], row["jobs"]) for row in uses if row["key"]},
            blend=saved_blend(self.state.blend),
        )
        models, memory = self.settings.models, self.state.memory
        return saved.pack(
            saved.SavedMemory(job_fields.SCHEMA, models, memory, note.model_dump_json())
        )

    @classmethod
    def unpack(cls, data: bytes, where: str) -> Self:
        """Restore a memory from the bytes of `pack`; error messages call the file `where`.

        Raises:
            TraceError: the bytes are not such a file, or another version of adlro wrote it.
        """
        file = saved.unpack(data, where)
        try:
            note = _Note.model_validate_json(file.note)
        except ValidationError as exc:
            raise TraceError(
                f"{where}: is a memory, but not one of run times; create it again"
            ) from exc
        found = cls(Settings(file.models, note.log_speeds))
        shape = found.state.memory.outcomes.shape
        if (
            file.schema != job_fields.SCHEMA
            or len(note.log_speeds) != len(file.models)
            or file.memory.outcomes.shape != shape
            or file.memory.speeds.shape != found.state.memory.speeds.shape
            or not restore(found.state.calibration, note.calibration)
        ):
            raise TraceError(f"{where}: was written by another version of adlro; create it again")
        learned = found.state.calibration
        found.state = _state_of(file.memory)._replace(
            calibration=learned, blend=restored(note.blend, max(1, len(file.models)))
        )
        found.state.facts[0] = note.asked, note.beyond
        for place, count in note.run_times.items():
            found.state.histogram[place] = count
        for key, (mean, jobs) in note.uses.items():
            found.state.uses[key & (USES - 1)] = key, mean, jobs
        return found
