"""Run-time estimates of a history's jobs, each made at the job's recorded submission.

The estimator learns from all jobs of the history in time order, also from those not played.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adlro.config.history import Recorded
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.estimates import job_table
from adlro.estimates.estimator import DEFAULTS, Settings
from adlro.estimates.registry import ESTIMATORS
from adlro.model import gpu
from adlro.model.cluster import Layout
from adlro.model.history import History
from adlro.model.job import JobType
from adlro.model.state import Counts, Floats
from adlro.workloads import capacity, history_file, replay


class _NamedModels(NamedTuple):
    """GPU models that a history names, and the model that each of its jobs ran on."""

    names: tuple[str, ...]  # [M] names in the catalogue
    of_job: Counts  # [J] index of the job's model in `names`; -1 = unknown


def _named_models(
    history: History, recorded: Recorded, own: Sequence[gpu.GpuModel]
) -> _NamedModels:
    found = history_file.models_of(history, recorded, "gpu_model", own)
    names = tuple(dict.fromkeys(model.name for model in found if model is not None))
    of_word = [-1 if model is None else names.index(model.name) for model in found]
    return _NamedModels(names, np.array([*of_word, -1])[history.gpu_model])


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
    estimator = ESTIMATORS[scenario.estimates.source]
    history = history_file.history_of(recorded)
    jobs = job_table.table_of(history)
    types = history_file.types_of(scenario, recorded, history, np.arange(history.jobs))
    own = scenario.cluster.gpu
    named = _named_models(history, recorded, own)
    models = tuple(dict.fromkeys((*named.names, *names))) if named.names else names
    columns = [gpu.find(name, own) for name in models]
    prior = np.array([[_log_speed(one, model) for model in columns] for one in scenario.types])
    if not named.names:
        found = estimator.create(DEFAULTS).follow(jobs)
        alike: Floats = np.exp(found.log_s - prior[types])
        return alike
    jobs = jobs._replace(model=named.of_job, kind=types, prior=prior)
    settings = Settings(models=models, classes=len(scenario.types))
    found = estimator.create(settings).follow(jobs)
    return found.seconds[:, [models.index(name) for name in names]]


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
