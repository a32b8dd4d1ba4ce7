"""What the estimator `memory` foresees for the jobs of a scenario.

In a history the memory goes through all recorded jobs in the order of time, also those that are not
played. Without one it has learned PAST_JOBS jobs of the same scenario before the first arrival, and
goes on learning. So that every policy meets the same estimates, what it learns of a job does not
depend on the policy: it ran, at once, on a GPU model drawn by the shares of the capacity LP.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from adlro.config.history import Recorded
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.estimates import job_fields, memory, outcomes
from adlro.estimates.memory import WEIGHING
from adlro.estimates.memory_kernel import Estimator, Jobs
from adlro.features.hypervectors.memory import Weighing
from adlro.model import gpu
from adlro.model.cluster import Layout
from adlro.model.history import History
from adlro.model.job import JobType
from adlro.model.state import Counts, Floats, Mask, Records
from adlro.workloads import capacity, replay

PAST_JOBS = 5_000
CHOICES = tuple(  # the first is that of histories
    WEIGHING._replace(fading=fading, nats=nats)
    for fading in (WEIGHING.fading, 0.0)
    for nats in (1.0, 0.5, 0.25)
)
_LEARNED = 0.8  # share of the past's events before it is measured how well it foresees the rest


class Ran(NamedTuple):
    """J jobs of a scenario and what became of them."""

    jobs: Records  # [J] JOB
    model: Counts  # [J] GPU model that each ran on
    seconds: Floats  # [J] how long


def ran_on(shares: Floats, allowed: Mask, pool_models: Counts, u: Floats) -> Counts:
    """A GPU model for each job [J].

    Args:
        shares: [J, P] how the capacity LP spreads jobs of its type over the pools.
        allowed: [J, P] where it may run; where that leaves no share, all such pools are alike.
        pool_models: [P].
        u: [J] uniform numbers.
    """
    odds = shares * allowed
    odds = np.where(odds.sum(axis=1, keepdims=True) > 0, odds, allowed)
    passed = np.cumsum(odds, axis=1)
    pool = (u[:, None] * passed[:, -1:] >= passed).sum(axis=1)
    models: Counts = pool_models[np.minimum(pool, len(pool_models) - 1)]
    return models


def _as_jobs(ran: Ran, speeds: Floats, last_end: float) -> Jobs:
    """For the kernel; jobs that end after last_end are never learned. speeds [T, M]."""
    jobs = ran.jobs
    end = jobs["arrival"] + ran.seconds
    reference_s = ran.seconds * speeds[jobs["type"], ran.model]
    line = outcomes.timeline(jobs["arrival"], np.where(end > last_end, np.nan, end), reference_s)
    return memory.jobs_of(job_fields.of_jobs(jobs), jobs["requested"], line)


def _part(jobs: Jobs, wanted: Mask) -> Jobs:
    """The same with some of the events [E]."""
    return jobs._replace(order=jobs.order[wanted], time=jobs.time[wanted])


def _best_weighing(jobs: Jobs) -> Weighing:
    """The one of CHOICES that foresees the last fifth of some jobs best.

    How sharply a memory should tell jobs apart, and how soon it should forget, depends on how much
    users and hours say of run times: in a simulation often nothing.
    """
    at = np.arange(len(jobs.order))
    later = at >= _LEARNED * len(at)
    learned = memory.fresh()
    memory.followed(learned, _part(jobs, ~later & (jobs.order >= 0)))
    line = outcomes.Timeline(jobs.log_s, jobs.order, jobs.time)
    all_jobs = np.ones(len(jobs.log_s), np.bool_)
    errors = []
    for weighing in CHOICES:
        tried = memory.copied(learned)._replace(weighing=weighing)
        found = memory.followed(tried, _part(jobs, later))
        errors.append(outcomes.errors(found.log_s[:, 0], line, all_jobs).mae_log)
    return CHOICES[0] if np.isnan(errors).any() else CHOICES[int(np.argmin(errors))]


def past(ran: Ran, speeds: Floats) -> Estimator:
    """An estimator that has learned jobs that came before time 0, and how to weigh them.

    Their arrivals are moved back by whole days; what would not have ended by 0 is forgotten.
    """
    days = math.floor(ran.jobs["arrival"][-1] / job_fields.DAY_S) + 1
    moved = ran.jobs.copy()
    moved["arrival"] -= days * job_fields.DAY_S
    jobs = _as_jobs(ran._replace(jobs=moved), speeds, 0.0)
    learned = memory.fresh()._replace(weighing=_best_weighing(jobs))
    memory.followed(learned, _part(jobs, jobs.order >= 0))
    return learned


def of_jobs(before: Estimator, ran: Ran, speeds: Floats) -> Floats:
    """Estimates [J, M] of jobs at their arrivals, by an estimator that goes on learning."""
    found = memory.followed(memory.copied(before), _as_jobs(ran, speeds, math.inf))
    estimates: Floats = np.exp(found.log_s) / speeds[ran.jobs["type"]]
    return estimates


class _Named(NamedTuple):
    """GPU models that a history names."""

    names: tuple[str, ...]  # [M]
    of_job: Counts  # [J] -1 = not known


def _named_models(history: History, recorded: Recorded) -> _Named:
    found = replay.models_of(history, recorded, "gpu_model")
    names = tuple(dict.fromkeys(model.name for model in found if model is not None))
    of_word = [-1 if model is None else names.index(model.name) for model in found]
    return _Named(names, np.array([*of_word, -1])[history.gpu_model])


def _log_speed(job_type: JobType, name: str) -> float:
    """What is assumed of a type on a model; nothing = as on the reference GPU."""
    try:
        return math.log(capacity.speed_on(job_type, gpu.find(name)))
    except ConfigError:
        return 0.0


@functools.lru_cache(maxsize=4)
def _foreseen(text: str, source: str, names: tuple[str, ...], _: tuple[int, ...]) -> Floats:
    """Seconds [J, M] of all jobs of a history on the cluster's models of these names."""
    scenario, recorded = Scenario.model_validate_json(text), Recorded.model_validate_json(source)
    history = replay.history_of(recorded)
    line = outcomes.timeline_of(history)
    jobs = memory.jobs_of(job_fields.of_history(history), history.requested_s, line)
    types = replay.types_of(scenario, recorded, history, np.arange(history.jobs))
    named = _named_models(history, recorded)
    models = tuple(dict.fromkeys((*named.names, *names))) if named.names else names
    prior = np.array([[_log_speed(one, name) for name in models] for one in scenario.types])
    if not named.names:
        found = memory.followed(memory.fresh(), jobs)
        alike: Floats = np.exp(found.log_s - prior[types])
        return alike
    jobs = jobs._replace(model=named.of_job, kind=types, prior=prior)
    found = memory.followed(memory.fresh(models, len(scenario.types)), jobs)
    seconds: Floats = np.exp(found.log_s[:, [models.index(name) for name in names]])
    return seconds


def of_history(
    scenario: Scenario, recorded: Recorded, layout: Layout, played: replay.Replay
) -> Floats:
    """Estimates [K, M] of the jobs that are played, each made at its recorded submission.

    Where the memory knows nothing yet and the job does not say what it requests: as `request` has
    it. The whole file is gone through, so its window and the load change nothing.
    """
    whole = recorded.model_copy(update={"from_s": None, "to_s": None}).model_dump_json()
    kept = scenario.model_copy(update={"history": None, "load": 1.0, "jobs": 1})
    names = tuple(model.name for model in layout.models)
    edition = replay.edition(recorded)
    found = _foreseen(kept.model_dump_json(), whole, names, edition)[played.rows]
    speeds = capacity.type_speeds(scenario, layout)[played.jobs["type"]]
    return np.where(np.isnan(found), played.jobs["requested"][:, None] / speeds, found)
