"""The estimator `memory`: run times from jobs like this one that have ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from adlro.estimates import job_fields
from adlro.estimates.memory_kernel import FACTS, Estimator, Jobs, follow, predict
from adlro.estimates.outcomes import BINS, Timeline
from adlro.features.hypervectors import memory as memories
from adlro.features.hypervectors.explain import sentence
from adlro.features.hypervectors.memory import Memory, Query, Size, Weighing
from adlro.features.hypervectors.recall_kernel import answer, gather, shift
from adlro.features.hypervectors.schema import Words
from adlro.features.hypervectors.unbind_kernel import match_parts, pattern_of
from adlro.model.state import Floats

WEIGHING = Weighing(fresh=5.0, fading=0.8, slope=1.0, half_evidence=1.0)
NEAREST = 64  # patterns of each GPU model that an estimate is drawn from
_LATEST, _HALF_JOBS = 32, 5_000.0  # outcomes kept of a pattern; jobs after which it counts half
_STRETCH = 4_096  # events between two reports of how far it is
_SHOWN = 5  # sources of an explanation


class Predicted(NamedTuple):
    """What was foreseen of J jobs at their submission."""

    log_s: Floats  # [J, max(M, 1)] on each model; on the reference GPU if the memory knows none
    confidence: Floats  # [J] 0 to 1


class Source(NamedTuple):
    """Jobs that an estimate was drawn from."""

    source: int  # id; -1 = older jobs, of which only the mean is known
    share: float  # of the estimate
    seconds: float  # that it says


class Explanation(NamedTuple):
    """How an estimate came about."""

    seconds: float
    confidence: float  # 0 to 1, for the model that it is greatest for
    spread: float  # mean |log(source / estimate)| by share; nan = there are no sources
    sources: tuple[Source, ...]  # with the largest shares, the largest first
    matched: str  # which parts of the likest pattern are the same; "" = nothing is known


def fresh(models: Sequence[str] = (), classes: int = 0) -> Estimator:
    """An estimator that has learned nothing yet.

    Args:
        models: names of GPU models whose speeds it shall learn; none = all is on the reference GPU.
        classes: how many classes of jobs differ in their speeds.

    Raises:
        ConfigError: too many of them.
    """
    size = Size(latest=_LATEST, classes=classes, half_jobs=_HALF_JOBS)
    return around(memories.empty(job_fields.SPACE, size, models))


def around(memory: Memory) -> Estimator:
    """An estimator with this memory, which knows nothing else yet."""
    space = job_fields.SPACE
    return Estimator(
        space,
        memory,
        memories.work_for(memory, NEAREST),
        WEIGHING,
        np.zeros(1, FACTS),
        np.zeros(BINS),
        np.zeros(len(space.binding), np.uint64),
        np.zeros(len(space.binding), np.uint64),
    )


def copied(estimator: Estimator) -> Estimator:
    """One that goes on from there on its own."""
    other = around(memories.copy(estimator.memory))._replace(weighing=estimator.weighing)
    other.facts[:], other.histogram[:] = estimator.facts, estimator.histogram
    return other


def jobs_of(fillings: Words, requested_s: Floats, line: Timeline) -> Jobs:
    """Jobs whose GPU models are not known; requested_s [J], nan = not said."""
    count = len(fillings)
    asked = np.log(np.where(requested_s > 0, requested_s, np.nan))
    unknown = np.full(count, -1)
    return Jobs(
        source=np.arange(count),
        fillings=fillings,
        asked=asked,
        log_s=line.log_s,
        model=unknown,
        kind=np.zeros(count, np.int64),
        prior=np.zeros((1, 0)),
        order=line.order,
        time=line.time,
    )


def followed(
    estimator: Estimator, jobs: Jobs, tell: Callable[[int], object] = lambda _: None
) -> Predicted:
    """Learn and predict all jobs in the order of time; `tell` is called with events done so far."""
    count = len(jobs.log_s)
    out = np.full((count, max(1, len(estimator.memory.model_bits))), np.nan)
    confidence = np.zeros(count)
    for first in range(0, len(jobs.order), _STRETCH):
        last = min(first + _STRETCH, len(jobs.order))
        follow(estimator, jobs, first, last, out, confidence)
        tell(last)
    return Predicted(out, confidence)


def _matched(estimator: Estimator, slot: int) -> str:
    """Which parts of what the estimator was asked last are those of a pattern that it knows."""
    pattern = np.zeros(len(estimator.bits), np.uint64)
    pattern_of(estimator.memory, slot, pattern)
    parts = np.zeros(len(estimator.space.roles))
    match_parts(estimator.space, estimator.bits, estimator.known, pattern, parts)
    return sentence(job_fields.SCHEMA, parts)


def explain(estimator: Estimator, jobs: Jobs, j: int, model: int = 0) -> Explanation:
    """The estimate for one job as things stand; `model` is 0 if the memory knows none."""
    space, memory, work, weighing, *_ = estimator
    out = np.full(work.answers.shape, np.nan)
    confidence = predict(estimator, jobs, j, out)
    kind = int(jobs.kind[j])
    query = Query(estimator.bits, estimator.known, float(jobs.asked[j]), kind, jobs.prior[kind])
    asked = model if len(memory.model_bits) else -1
    count = gather(space, memory, query, weighing, work)
    answer(space, memory, query, weighing, asked, count, work, work.answers[model])
    found = work.sources[:count]
    found = found[np.argsort(-found["share"], kind="stable")][:_SHOWN]
    shifts = [shift(memory, query, int(row["model"]), asked) for row in found]
    sources = tuple(
        Source(int(row["source"]), float(row["share"]), float(np.exp(row["log_seconds"] + moved)))
        for row, moved in zip(found, shifts, strict=True)
    )
    matched = _matched(estimator, int(found[0]["slot"])) if sources else ""
    spread = float(work.answers[model]["spread"])
    return Explanation(float(np.exp(out[model])), confidence, spread, sources, matched)
