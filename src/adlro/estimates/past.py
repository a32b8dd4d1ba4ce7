"""The past that a scenario without a history gives to estimators that learn.

Every policy must see the same estimates, so what is learned of a job does not depend on the policy:
the job ran at its arrival, without waiting, on a GPU model drawn by the shares of the capacity LP.
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
    """J jobs of a scenario and how they ran."""

    jobs: Records  # [J] JOB
    model: Counts  # [J] GPU model that each ran on
    seconds: Floats  # [J] run times on it


def draw_models(shares: Floats, allowed: Mask, pool_models: Counts, u: Floats) -> Counts:
    """Draw a GPU model for each job [J].

    Args:
        shares: [J, P] how the capacity LP spreads jobs of its type over the pools.
        allowed: [J, P] where it may run; if no share is left, such pools are equally likely.
        pool_models: [P].
        u: [J] uniform numbers.
    """
    odds = shares * allowed
    odds = np.where(odds.sum(axis=1, keepdims=True) > 0, odds, allowed)
    passed = np.cumsum(odds, axis=1)
    pool = (u[:, None] * passed[:, -1:] >= passed).sum(axis=1)
    models: Counts = pool_models[np.minimum(pool, len(pool_models) - 1)]
    return models


def _table(runs: Runs, speeds: Floats, last_end: float) -> JobTable:
    """Table with run times on the reference GPU; ends after `last_end` are left out."""
    jobs = runs.jobs
    end = jobs["arrival"] + runs.seconds
    reference_s = runs.seconds * speeds[jobs["type"], runs.model]
    end = np.where(end > last_end, np.nan, end)
    events = job_table.event_order(jobs["arrival"], end, reference_s)
    return job_table.table(job_fields.of_jobs(jobs), jobs["requested"], events)


def learn_past(estimator: Estimator, runs: Runs, speeds: Floats) -> None:
    """Tune an estimator on jobs that came before time 0, and learn them; speeds [T, M].

    Their arrivals are moved back by whole days; jobs that would end after 0 are not learned.
    """
    days = math.floor(runs.jobs["arrival"][-1] / job_fields.DAY_S) + 1
    moved = runs.jobs.copy()
    moved["arrival"] -= days * job_fields.DAY_S
    jobs = _table(runs._replace(jobs=moved), speeds, 0.0)
    estimator.tune(jobs)
    estimator.learn(jobs)


def predict_arrivals(before: Estimator, runs: Runs, speeds: Floats) -> Floats:
    """Estimates [J, M] of jobs at their arrivals by a copy of `before` that goes on learning."""
    found = before.copy().follow(_table(runs, speeds, math.inf))
    return found.on_models(speeds[runs.jobs["type"]])
