"""Past jobs from which estimators learn in a scenario without a history.

All policies must see the same estimates, so what estimators learn must not depend on the policy.
Each job is therefore assumed to have run at its arrival, without waiting, on a GPU model drawn by
the shares of the capacity LP.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adlro.estimates import job_fields, job_table
from adlro.estimates.estimator import Estimator
from adlro.estimates.job_table import JobTable
from adlro.model.state import Counts, Floats, Mask, Records

PAST_JOBS = 5_000


class Runs(NamedTuple):
    """J jobs of a scenario, the GPU model that each ran on and its run time there."""

    jobs: Records  # [J] JOB
    model: Counts  # [J] GPU model that each job ran on
    seconds: Floats  # [J] run time on that model


def draw_models(shares: Floats, allowed: Mask, pool_models: Counts, u: Floats) -> Counts:
    """Draw the GPU model [J] that each job ran on.

    Args:
        shares: [J, P] share of the job's type that the capacity LP puts on each pool.
        allowed: [J, P] pools where the job may run. If the LP puts none of the type on them, they
            are equally likely.
        pool_models: [P] GPU model of each pool.
        u: [J] uniform random numbers in [0, 1), one for each job.
    """
    odds = shares * allowed
    odds = np.where(odds.sum(axis=1, keepdims=True) > 0, odds, allowed)
    passed = np.cumsum(odds, axis=1)
    pool = (u[:, None] * passed[:, -1:] >= passed).sum(axis=1)
    models: Counts = pool_models[np.minimum(pool, len(pool_models) - 1)]
    return models


def _table(runs: Runs, speeds: Floats, last_end: float) -> JobTable:
    """Return a table of the jobs with their run times converted to the reference GPU.

    Jobs that end after `last_end` (seconds) have no end event and no run time in the table.
    """
    jobs = runs.jobs
    end = jobs["arrival"] + runs.seconds
    reference_s = runs.seconds * speeds[jobs["type"], runs.model]
    end = np.where(end > last_end, np.nan, end)
    events = job_table.event_order(jobs["arrival"], end, reference_s)
    return job_table.table(job_fields.of_jobs(jobs), jobs["requested"], events)


def learn_past(estimator: Estimator, runs: Runs, speeds: Floats) -> None:
    """Tune an estimator on past jobs, then let it learn them.

    All arrivals are moved back by the same number of whole days, so that the jobs arrive before
    time 0; jobs that would end after time 0 are not learned.

    Args:
        estimator: is changed in place.
        runs: the past jobs, sorted by arrival.
        speeds: [T, M] speed of each job type on each GPU model, relative to the reference GPU.
    """
    days = math.floor(runs.jobs["arrival"][-1] / job_fields.DAY_S) + 1
    moved = runs.jobs.copy()
    moved["arrival"] -= days * job_fields.DAY_S
    jobs = _table(runs._replace(jobs=moved), speeds, 0.0)
    estimator.tune(jobs)
    estimator.follow(jobs)


def predict_arrivals(
    before: Estimator, runs: Runs, speeds: Floats, probability: float | None = None
) -> Floats:
    """Return estimated seconds [J, M] of each job on each GPU model, made when the job arrives.

    With a probability, that quantile of the run time is returned instead.

    A copy of `before` makes the estimates and learns each job when it ends; `before` is not
    changed.
    speeds [T, M]: speed of each job type on each GPU model, relative to the reference GPU.
    """
    found = before.copy().follow(_table(runs, speeds, math.inf))
    return found.on_models(speeds[runs.jobs["type"]], probability)
