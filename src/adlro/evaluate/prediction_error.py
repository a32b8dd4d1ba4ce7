"""Measures the errors of run-time estimators on a history; jobs are predicted at submission.

If a history names the GPU models that its jobs ran on, estimators tell them apart, and each job's
estimate is the one for the model that it ran on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.config.scenario import EstimateSource
from adlro.errors import TraceError
from adlro.estimates import job_table
from adlro.estimates.errors import Errors, Reliability, coverage, errors, reliability
from adlro.estimates.estimator import (
    INTERVAL,
    Estimator,
    Explanation,
    Predictions,
    Progress,
    Settings,
)
from adlro.estimates.job_table import JobTable, with_events
from adlro.estimates.registry import ESTIMATORS
from adlro.evaluate.stats import Estimate, estimate
from adlro.model.history import History
from adlro.model.state import Counts, Floats, Mask

_MOST_MODELS = 16  # GPU models that are told apart; jobs on rarer ones ran on an unknown one
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


def gpu_models(history: History) -> tuple[str, ...]:
    """Return the GPU models that estimators tell apart, the most common first; () = none.

    A single model need not be told from others.
    """
    counts = np.bincount(history.gpu_model[history.gpu_model >= 0])
    common = np.argsort(-counts, kind="stable")[: min(_MOST_MODELS, np.count_nonzero(counts))]
    names = history.tables["gpu_model"]
    return tuple(names[code] for code in common.tolist()) if len(common) > 1 else ()


def _table_of(history: History, models: tuple[str, ...]) -> JobTable:
    """Return a table of a history's jobs on these GPU models, none faster until it is learned."""
    jobs = job_table.table_of(history)
    if not models:
        return jobs
    place = {name: m for m, name in enumerate(models)}
    of_code = np.array([place.get(name, -1) for name in history.tables["gpu_model"]] + [-1])
    return jobs._replace(model=of_code[history.gpu_model], prior=np.zeros((1, len(models))))


def _model_asked(jobs: JobTable) -> Counts:
    """Return the GPU model [J] that each job is predicted for: its own, or the most common."""
    return np.maximum(jobs.model, 0)


def _on_own_model(found: Predictions, jobs: JobTable) -> Predictions:
    """Return predictions with K = 1: those for the GPU model that each job ran on."""
    if not found.per_model:
        return found
    at = (np.arange(len(jobs.model)), _model_asked(jobs))
    return Predictions(
        found.seconds[at][:, None],
        found.log_s[at][:, None],
        found.confidence[at][:, None],
        False,
        found.log_quantiles[at][:, None],
    )


class PredictionErrors(NamedTuple):
    """Predictions of the J jobs of a history by several estimators."""

    jobs: JobTable
    predictions: dict[str, Predictions]  # K = 1; by name of the estimator, - as blank
    learned: dict[EstimateSource, Estimator]  # the estimators after the last event

    @property
    def log_s(self) -> dict[str, Floats]:
        """Predicted log seconds [J] by name of the estimator."""
        return {name: one.log_s[:, 0] for name, one in self.predictions.items()}

    def errors(self, counted: Mask) -> dict[str, Errors]:
        """Return the errors of each estimator over the jobs for which `counted` [J] is True."""
        return {name: errors(found, self.jobs.log_s, counted) for name, found in self.log_s.items()}

    def by_submission(self, counted: Mask) -> Counts:
        """Return the jobs `counted` [J] in the order of their submissions."""
        order = self.jobs.order
        rows = -1 - order[order < 0]
        return rows[counted[rows]]

    def memory_versus(self, counted: Mask) -> dict[str, Estimate]:
        """Return the mean |log error| of `memory` minus that of each other estimator."""
        rows, found = self.by_submission(counted), self.log_s
        return {
            name: paired_difference(found["memory"], other, self.jobs.log_s, rows)
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
    models = gpu_models(history)
    jobs = _table_of(history, models)
    learned, found = {}, {}
    for place, (name, kind) in enumerate(_MEASURED.items()):
        learned[name] = kind.create(Settings(models))
        predicted = learned[name].follow(jobs, _offset(progress, place * len(jobs.order)))
        found[name] = _on_own_model(predicted, jobs)
    named = {name.replace("-", " "): one for name, one in found.items()}
    return PredictionErrors(jobs, named, learned)


def explain(
    history: History,
    job: int,
    progress: Progress = lambda _: None,
    estimator: EstimateSource = "memory",
) -> Explanation:
    """Explain how an estimator predicts one job of a history on its GPU model at its submission.

    Raises:
        TraceError: the history has no time of submission for the job.
    """
    models = gpu_models(history)
    jobs = _table_of(history, models)
    place = np.flatnonzero(jobs.order == -1 - job)
    if len(place) == 0:
        raise TraceError(f"{history.header.source}: that job has no time of submission")
    before = np.arange(len(jobs.order)) < place[0]
    known = ESTIMATORS[estimator].create(Settings(models))
    known.follow(with_events(jobs, before), progress)
    return known.explain(jobs, job, int(_model_asked(jobs)[job]))
