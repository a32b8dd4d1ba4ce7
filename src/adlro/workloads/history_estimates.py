"""Run-time estimates of a history's jobs, each made at the job's recorded submission.

The estimator learns from all jobs of the history in time order, also from those not played. It
does not learn from runs that requeued jobs lost, but estimates them.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from adlro.config.history import Recorded
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.estimates import job_table
from adlro.estimates.estimator import DEFAULTS, Settings
from adlro.estimates.registry import ESTIMATORS
from adlro.model import gpu
from adlro.model.cluster import Layout
from adlro.model.job import JobType
from adlro.model.state import Floats
from adlro.workloads import capacity, history_file, replay


def _log_speed(job_type: JobType, model: gpu.GpuModel) -> float:
    """Return the log of a type's assumed speed on a GPU model; 0, as on the V100, if unknown."""
    try:
        return math.log(capacity.speed_on(job_type, model))
    except ConfigError:
        return 0.0


@functools.lru_cache(maxsize=4)
def _whole_file(text: str, source: str, names: tuple[str, ...], _: tuple[int, ...]) -> Floats:
    """Return the estimated seconds [J, M] of all jobs of a history on the GPU models `names` [M].

    Args:
        text: the scenario as JSON.
        source: the scenario's history as JSON.
        names: GPU models of the cluster.
        _: edition of the file, a part of the cache key only.
    """
    scenario, recorded = Scenario.model_validate_json(text), Recorded.model_validate_json(source)
    estimator, quantile = ESTIMATORS[scenario.estimates.source], scenario.estimates.quantile
    history = history_file.history_of(recorded)
    jobs = job_table.table_of(history)
    types = history_file.types_of(scenario, recorded, history, np.arange(history.rows))
    known = history_file.ran_on(history, recorded, scenario.cluster)
    named = tuple(model.name for model in known.models)
    models = tuple(dict.fromkeys((*named, *names))) if named else names
    columns = [scenario.cluster.model_of(name) for name in models]
    prior = np.array([[_log_speed(one, model) for model in columns] for one in scenario.types])
    if not named:
        found = estimator.create(DEFAULTS).follow(jobs)
        return found.on_models(np.exp(prior[types]), quantile)
    jobs = jobs._replace(model=known.of_job, kind=types, prior=prior)
    settings = Settings(models=models)
    found = estimator.create(settings).follow(jobs)
    seconds = found.on_models(np.exp(prior[types]), quantile)
    return seconds[:, [models.index(name) for name in names]]


def of_history(
    scenario: Scenario, recorded: Recorded, layout: Layout, played: replay.Replay
) -> Floats:
    """Return the estimated seconds [K, M] of the jobs that are played, on each GPU model.

    Where the estimator has nothing to predict from, the estimate is the job's requested time / the
    speed of its type on the model. Estimates are made over the whole file, so they do not depend on
    the scenario's window or load.
    """
    whole = recorded.model_copy(update={"from_s": None, "to_s": None}).model_dump_json()
    same = scenario.model_copy(update={"history": None, "load": 1.0, "jobs": 1})
    names = tuple(model.name for model in layout.models)
    edition = history_file.edition(recorded)
    found = _whole_file(same.model_dump_json(), whole, names, edition)[played.rows]
    speeds = capacity.type_speeds(scenario, layout)[played.jobs["type"]]
    return np.where(np.isnan(found), played.jobs["requested"][:, None] / speeds, found)
