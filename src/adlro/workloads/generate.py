"""Generate workloads: the same scenario and seed always give the same workload, byte by byte."""

from __future__ import annotations

import functools

import numpy as np

from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.estimates import job_table, past
from adlro.estimates.estimator import DEFAULTS, Estimator, Settings
from adlro.estimates.past import Runs
from adlro.estimates.registry import ESTIMATORS
from adlro.model.state import Floats
from adlro.seeds import WorkloadStream
from adlro.workloads import capacity, draw, events, replay
from adlro.workloads.setting import Setting, prepare
from adlro.workloads.workload import Workload


def _runs(setting: Setting, coming: replay.Replay, seconds: Floats, seed: int | None) -> Runs:
    """Return how each job ran, as estimators learn it: on a drawn GPU model, at most to its limit.

    estimates/past.py says why this does not depend on a policy.
    """
    jobs, layout = coming.jobs, setting.layout
    allowed = capacity.may_run(jobs, coming.allowed, layout)
    u = draw.rng_of(seed, WorkloadStream.RAN_ON).random(len(jobs))
    shares = setting.type_shares[jobs["type"]]
    model = past.draw_models(shares, allowed, layout.pools["model"], u)
    return Runs(jobs, model, np.minimum(seconds[np.arange(len(jobs)), model], jobs["limit"]))


@functools.lru_cache(maxsize=8)
def _learned(text: str) -> Estimator:
    """Return the estimator of a scenario without a history, trained on generated past jobs.

    text: the scenario as JSON.
    """
    setting = prepare(Scenario.model_validate_json(text))
    longer = setting.scenario.model_copy(update={"jobs": past.PAST_JOBS})
    coming = draw.draw_jobs(setting._replace(scenario=longer), None)
    seconds = draw.true_seconds(setting, coming, None)
    found = ESTIMATORS[setting.scenario.estimates.source].create(DEFAULTS)
    past.learn_past(found, _runs(setting, coming, seconds, None), setting.speeds)
    return found


def _estimates(setting: Setting, coming: replay.Replay, seconds: Floats, seed: int) -> Floats:
    """Return the run times that policies see, in seconds [J jobs, M GPU models], within limits.

    seconds [J, M]: true run times.
    """
    jobs, wanted = coming.jobs, setting.scenario.estimates
    kind = ESTIMATORS[wanted.source]
    if not kind.needs_past:
        settings = Settings(sigma=wanted.sigma, rng=draw.rng_of(seed, WorkloadStream.ESTIMATES))
        found = kind.create(settings).predict(job_table.requests(jobs["requested"], seconds))
        est = found.on_models(setting.speeds[jobs["type"]])
    elif setting.played is not None:
        est = coming.est
    else:
        before = _learned(setting.scenario.model_dump_json())
        runs = _runs(setting, coming, seconds, seed)
        est = past.predict_arrivals(before, runs, setting.speeds, wanted.quantile)
    capped: Floats = np.minimum(est, jobs["limit"][:, None])
    return capped


def with_estimates(setting: Setting, reference_s: Floats) -> Setting:
    """Return a setting in which the estimates of a history's jobs are replaced by given ones.

    Args:
        setting: of a scenario with a history and an estimator that learns, such as `memory`.
        reference_s: [J] estimated seconds on the reference GPU, for every row of the file.

    Raises:
        ConfigError: the scenario has no history, or its estimator does not learn.
    """
    source = setting.scenario.estimates.source
    if setting.played is None or not ESTIMATORS[source].needs_past:
        raise ConfigError(
            f"scenario {setting.scenario.name}: estimates can be handed in only for a history "
            "with an estimator that learns, such as estimates = 'memory'"
        )
    jobs, rows = setting.played.jobs, setting.played.rows
    est = reference_s[rows][:, None] / setting.speeds[jobs["type"]]
    return setting._replace(played=setting.played._replace(est=est))


def stretch_of(setting: Setting) -> float:
    """Return the factor on the recorded times between arrivals of a history; 1 = as recorded.

    Also 1 without a history, and if all jobs were submitted at the same time.
    """
    played = setting.played
    return 1.0 if played is None or played.rate <= 0 else played.rate / setting.rate


def jobs_of(setting: Setting, seed: int) -> replay.Replay:
    """Return the jobs of one seed: its window of the history, or drawn without a history."""
    if setting.played is None:
        return draw.draw_jobs(setting, seed)
    return replay.part(setting.played, setting.scenario.jobs, stretch_of(setting), seed)


def generate(setting: Setting, seed: int) -> Workload:
    """Return the workload of one seed: its jobs with estimates and true run times, and its events.

    The jobs are drawn from the seed; with a history, the seed selects the window that is played.
    """
    scenario, layout = setting.scenario, setting.layout
    coming = jobs_of(setting, seed)
    jobs, seconds = coming.jobs, draw.true_seconds(setting, coming, seed)
    jobs["id"] = np.arange(len(jobs))
    allowed = capacity.may_run(jobs, coming.allowed, layout)
    capacity.fill_partitions(jobs, allowed, layout)
    rules = setting.rules
    return Workload(
        jobs,
        _estimates(setting, coming, seconds, seed),
        allowed,
        seconds,
        events.merged(
            events.draw(scenario, layout, jobs["arrival"], (seed, WorkloadStream.EVENTS)),
            coming.holds.events(),
        ),
        setting.colocation,
        setting.placement,
        setting.readings,
        rules.holders(jobs),
        rules.quotas,
        rules.caps,
        rules.ageing,
        np.full(int(scenario.tick_s > 0), scenario.tick_s),
        coming.lost,
    )
