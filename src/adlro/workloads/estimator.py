"""The estimator `memory`: run times from jobs like this one that have ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from adlro.encode.hypervectors import memory as memories
from adlro.encode.hypervectors.memory import Size, Weighing
from adlro.encode.hypervectors.schema import Words
from adlro.model.state import Floats
from adlro.workloads import job_fields
from adlro.workloads.estimator_kernel import FACTS, Estimator, Jobs, follow
from adlro.workloads.outcomes import BINS, Timeline

WEIGHING = Weighing(fresh=5.0, fading=0.8, slope=1.0)
NEAREST = 64  # patterns of each GPU model that an estimate is drawn from
_LATEST, _HALF_JOBS = 32, 5_000.0  # outcomes kept of a pattern; jobs after which it counts half
_STRETCH = 4_096  # events between two reports of how far it is


class Predicted(NamedTuple):
    """What was foreseen of J jobs at their submission."""

    log_s: Floats  # [J, max(M, 1)] on each model; on the reference GPU if the memory knows none
    confidence: Floats  # [J] 0 to 1


def fresh(models: Sequence[str] = (), classes: int = 0) -> Estimator:
    """An estimator that has learned nothing yet.

    Args:
        models: names of GPU models whose speeds it shall learn; none = all is on the reference GPU.
        classes: how many classes of jobs differ in their speeds.

    Raises:
        ConfigError: too many of them.
    """
    space = job_fields.SPACE
    words = len(space.binding)
    memory = memories.empty(
        space, Size(latest=_LATEST, classes=classes, half_jobs=_HALF_JOBS), models
    )
    return Estimator(
        space,
        memory,
        memories.work_for(memory, NEAREST),
        WEIGHING,
        np.zeros(1, FACTS),
        np.zeros(BINS),
        np.zeros(words, np.uint64),
        np.zeros(words, np.uint64),
    )


def copied(estimator: Estimator) -> Estimator:
    """One that goes on from there on its own."""
    memory = memories.copy(estimator.memory)
    return estimator._replace(
        memory=memory,
        work=memories.work_for(memory, NEAREST),
        facts=estimator.facts.copy(),
        histogram=estimator.histogram.copy(),
        bits=estimator.bits.copy(),
        known=estimator.known.copy(),
    )


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
