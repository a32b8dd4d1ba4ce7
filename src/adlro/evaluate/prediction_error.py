"""Measures the errors of run-time estimators on a history; jobs are predicted at submission."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.config.scenario import EstimateSource
from adlro.errors import TraceError
from adlro.estimates import job_table
from adlro.estimates.errors import Errors, Reliability, coverage, errors, reliability
from adlro.estimates.estimator import (
    DEFAULTS,
    INTERVAL,
    Estimator,
    Explanation,
    Predictions,
    Progress,
)
from adlro.estimates.job_table import JobTable, with_events
from adlro.estimates.registry import ESTIMATORS
from adlro.evaluate.stats import Estimate, estimate
from adlro.model.history import History
from adlro.model.state import Counts, Floats, Mask

BLOCKS = 20  # of jobs in a row: the units of paired intervals
_MEASURED = {name: kind for name, kind in ESTIMATORS.items() if not kind.needs_truth}


def paired_difference(one: Floats, other: Floats, log_s: Floats, rows: Counts) -> Estimate:
    """Mean |log error| of one estimator minus that of another, with an interval over BLOCKS blocks.

    Jobs in a row are much alike, so that blocks of them are the units, not jobs. There is no
    interval for fewer jobs than blocks.

    Args:
        one: [J] log seconds; nan = no estimate.
        other: [J] likewise.
        log_s: [J] log of the true seconds; nan = unknown.
        rows: jobs to compare, by submission; blocks have equally many of them.
    """
    gaps = (np.abs(one - log_s) - np.abs(other - log_s))[rows]
    gaps = gaps[~np.isnan(gaps)]
    if len(gaps) < BLOCKS:
        mean = float(gaps.mean()) if len(gaps) else np.nan
        return Estimate(mean=mean, sd=None, ci95=None)
    return estimate(np.array([block.mean() for block in np.array_split(gaps, BLOCKS)]))


class PredictionErrors(NamedTuple):
    """Predictions of the J jobs of a history by several estimators."""

    jobs: JobTable
    predictions: dict[str, Predictions]  # by name of the estimator, - as blank
    learned: dict[EstimateSource, Estimator]  # the estimators after the last event

    @property
    def log_s(self) -> dict[str, Floats]:
        """Predicted log seconds [J] by name of the estimator."""
        return {name: one.log_s[:, 0] for name, one in self.predictions.items()}

    def errors(self, counted: Mask) -> dict[str, Errors]:
        """Return the errors of each estimator over the jobs for which `counted` [J] is True."""
        return {name: errors(found, self.jobs.log_s, counted) for name, found in self.log_s.items()}

    def memory_versus(self, counted: Mask) -> dict[str, Estimate]:
        """Return the mean |log error| of `memory` minus that of each other estimator."""
        order = self.jobs.order
        rows = -1 - order[order < 0]  # by submission
        rows, log_s, found = rows[counted[rows]], self.jobs.log_s, self.log_s
        return {
            name: paired_difference(found["memory"], other, log_s, rows)
            for name, other in found.items()
            if name != "memory"
        }

    def coverage(self, counted: Mask) -> dict[str, float]:
        """Return the share of the jobs `counted` [J] in the 80 % interval of each estimator."""
        found = {}
        for name, one in self.predictions.items():
            low, high = (np.log(one.at(p)[:, 0]) for p in INTERVAL)
            found[name] = coverage(low, high, self.jobs.log_s, counted)
        return found

    def reliability(self, counted: Mask) -> dict[str, tuple[Reliability, ...]]:
        """Return the reliability table of each estimator over the jobs `counted` [J]."""
        return {
            name: reliability(one.confidence[:, 0], one.log_s[:, 0], self.jobs.log_s, counted)
            for name, one in self.predictions.items()
        }


def events(history: History) -> int:
    """Return the total number of events that `prediction_errors` reports to `progress`."""
    return len(job_table.event_order_of(history).order) * len(_MEASURED)


def _offset(progress: Progress, before: int) -> Progress:
    return lambda done: progress(before + done)


def prediction_errors(history: History, progress: Progress = lambda _: None) -> PredictionErrors:
    """Predict the jobs of a history with every estimator that does not read true run times.

    `progress` is called with the number of events done so far, over all estimators.
    """
    jobs = job_table.table_of(history)
    learned, found = {}, {}
    for place, (name, kind) in enumerate(_MEASURED.items()):
        learned[name] = kind.create(DEFAULTS)
        found[name] = learned[name].follow(jobs, _offset(progress, place * len(jobs.order)))
    named = {name.replace("-", " "): one for name, one in found.items()}
    return PredictionErrors(jobs, named, learned)


def explain(
    history: History,
    job: int,
    progress: Progress = lambda _: None,
    estimator: EstimateSource = "memory",
) -> Explanation:
    """Explain how an estimator predicts one job of a history at the job's submission.

    Raises:
        TraceError: the history has no time of submission for the job.
    """
    jobs = job_table.table_of(history)
    place = np.flatnonzero(jobs.order == -1 - job)
    if len(place) == 0:
        raise TraceError(f"{history.header.source}: that job has no time of submission")
    before = np.arange(len(jobs.order)) < place[0]
    known = ESTIMATORS[estimator].create(DEFAULTS)
    known.follow(with_events(jobs, before), progress)
    return known.explain(jobs, job)
