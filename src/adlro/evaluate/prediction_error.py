"""How well run times are foreseen on a history: `memory` and what needs no memory, job by job.

Every estimator sees what had ended when a job was submitted, and nothing else; what knows nothing
of a job yet says its request, or without one the median of all that had ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adlro.errors import TraceError
from adlro.estimates import job_fields, memory, outcomes
from adlro.estimates.memory import Explanation
from adlro.estimates.memory_kernel import Estimator, Jobs
from adlro.estimates.outcomes import Errors, Timeline
from adlro.model.history import History
from adlro.model.state import Floats, Mask

Tell = Callable[[int], object]


class PredictionErrors(NamedTuple):
    """What was foreseen of the J jobs of a history."""

    line: Timeline
    log_s: dict[str, Floats]  # by estimator: log seconds [J]
    confidence: Floats  # [J] of `memory`
    learned: Estimator  # that has gone through all of it

    def errors(self, counted: Mask) -> dict[str, Errors]:
        """By estimator, over the jobs [J] that count."""
        return {
            name: outcomes.errors(found, self.line, counted) for name, found in self.log_s.items()
        }


def events(history: History) -> int:
    """How many ends and submissions there are to go through."""
    return len(outcomes.timeline_of(history).order)


def _jobs(history: History, line: Timeline) -> Jobs:
    return memory.jobs_of(job_fields.of_history(history), history.requested_s, line)


def prediction_errors(history: History, tell: Tell = lambda _: None) -> PredictionErrors:
    """Go through a history; `tell` is called with the number of events done so far."""
    line = outcomes.timeline_of(history)
    simple = outcomes.simple_of(history, line)
    learned = memory.fresh()
    found = memory.followed(learned, _jobs(history, line), tell)
    nothing = np.full(history.jobs, np.nan)
    log_s = {
        name: outcomes.filled(values, history.requested_s, simple.median)
        for name, values in (
            ("memory", found.log_s[:, 0]),
            ("request", nothing),
            ("last two", simple.last_two),
            ("user mean", simple.user_mean),
        )
    }
    return PredictionErrors(line, log_s, found.confidence, learned)


def explain(history: History, job: int, tell: Tell = lambda _: None) -> Explanation:
    """The estimate of one job as it stood at its submission.

    Raises:
        TraceError: the history does not say when it was submitted.
    """
    line = outcomes.timeline_of(history)
    jobs = _jobs(history, line)
    place = np.flatnonzero(line.order == -1 - job)
    if len(place) == 0:
        raise TraceError(f"{history.header.source}: that job has no time of submission")
    before = slice(0, int(place[0]))
    known = memory.fresh()
    ends = jobs.order[before] >= 0
    memory.followed(
        known,
        jobs._replace(order=jobs.order[before][ends], time=jobs.time[before][ends]),
        tell,
    )
    return memory.explain(known, jobs, job)
