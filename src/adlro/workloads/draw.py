"""Draw the jobs of a scenario without a history, and the true run times of any scenario's jobs.

Arrivals, demands, speed noise, estimates and events each have their own random stream. A change of
one of them therefore leaves the others as they were, and a higher load draws the same jobs closer
together.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from adlro.config.scenario import Scenario
from adlro.model.cluster import MB_PER_GB
from adlro.model.job import Constant, Exponential, Lognormal, LogUniform, Size
from adlro.model.state import JOB, WHOLE, Floats, Records
from adlro.seeds import WorkloadStream
from adlro.workloads import arrivals, cpu_jobs, replay
from adlro.workloads.setting import Setting

_REQUEST_STEP = 300.0  # users request whole multiples of five minutes


def rng_of(seed: int | None, purpose: WorkloadStream) -> np.random.Generator:
    """Return the random stream of a seed for one purpose.

    seed None = the streams of the past jobs that estimators learn from; no seed shares them.
    """
    if seed is None:
        return np.random.default_rng(
            np.random.SeedSequence(purpose, spawn_key=(WorkloadStream.PAST,))
        )
    return np.random.default_rng((seed, purpose))


def _from_law(size: Size, u: Floats) -> Floats:
    """Draw job sizes [J], in seconds at speed 1, by inverse transform of uniform numbers u [J]."""
    if isinstance(size, Constant):
        return np.full(len(u), size.seconds)
    if isinstance(size, Exponential):
        return -size.mean_s * np.log1p(-u)
    if isinstance(size, LogUniform):
        return np.exp(np.interp(u, np.cumsum((0.0, *size.p)), np.log(size.borders_s)))
    if isinstance(size, Lognormal):
        drawn = size.median_s * np.exp(size.sigma * ndtri(u))
        return np.minimum(drawn, size.cap * size.median_s)
    return np.minimum(size.minimum_s * (1 - u) ** (-1 / size.alpha), size.cap * size.minimum_s)


def _pick(table: tuple[Floats, Floats], types: NDArray[np.int64], u: Floats) -> Floats:
    values, odds = table
    if values.shape[1] == 1:
        constant: Floats = values[types, 0]
        return constant
    column = (u[:, None] >= odds[types]).sum(axis=1)
    picked: Floats = values[types, column]
    return picked


def _by_type(values: list[float], types: NDArray[np.int64]) -> Floats:
    return np.array(values)[types]


def _types(scenario: Scenario, u: Floats, forced: NDArray[np.int64]) -> NDArray[np.int64]:
    share = np.cumsum([job_type.share for job_type in scenario.types])
    drawn = np.searchsorted(share / share[-1], u, side="right")
    return np.where(forced >= 0, forced, np.minimum(drawn, len(share) - 1))


def _users(scenario: Scenario, u: Floats) -> NDArray[np.int64]:
    share = np.cumsum(np.arange(1.0, scenario.users + 1) ** -scenario.user_skew)
    drawn = np.searchsorted(share / share[-1], u, side="right")
    return np.minimum(drawn, scenario.users - 1)


def _sizes(scenario: Scenario, types: NDArray[np.int64], u: Floats) -> Floats:
    """Draw the size [J] of each job, in seconds at speed 1, from uniform numbers u [J]."""
    sizes = np.empty(len(u))
    for t, job_type in enumerate(scenario.types):
        sizes[types == t] = _from_law(job_type.size, u[types == t])
    return sizes


def _of_types(scenario: Scenario, jobs: Records) -> None:
    """Write the fields of JOB records that are the same for all jobs of a type."""
    types, kinds = jobs["type"], scenario.types
    jobs["communication"] = _by_type([t.communication for t in kinds], types)
    cost = [-1.0 if t.checkpoint_s is None else t.checkpoint_s for t in kinds]
    every = [math.inf if t.checkpoint_every_s is None else t.checkpoint_every_s for t in kinds]
    jobs["checkpoint"], jobs["interval"] = _by_type(cost, types), _by_type(every, types)
    jobs["one_node"] = _by_type([float(t.one_node) for t in kinds], types)
    jobs["least_run"], jobs["start_delay"] = scenario.least_run_s, scenario.start_delay_s


def _jobs(setting: Setting, types: NDArray[np.int64], sizes: Floats, u: Floats) -> Records:
    """Return JOB records [J], all fields filled in but arrival and id.

    u [11, J]: uniform random numbers, one row for each drawn field (rows 0 and 1 are used
    elsewhere).
    """
    scenario, tables = setting.scenario, setting.tables
    low = _by_type([t.priority.low for t in scenario.types], types)
    high = _by_type([t.priority.high for t in scenario.types], types)
    jobs = np.zeros(scenario.jobs, JOB)
    jobs["type"] = types
    jobs["gpus"] = _pick(tables["gpus"], types, u[2])
    jobs["cores"] = _pick(tables["cores"], types, u[3])
    jobs["memory"] = np.rint(_pick(tables["memory_gb"], types, u[4]) * MB_PER_GB)
    jobs["gpu_memory"] = np.rint(_pick(tables["gpu_memory_gb"], types, u[5]) * MB_PER_GB)
    jobs["share"] = np.rint(_pick(tables["gpu_share"], types, u[10]) * WHOLE)
    jobs["priority"] = low + (high - low) * u[6]
    jobs["requested"] = np.ceil(sizes * (1 + 4 * u[7]) / _REQUEST_STEP) * _REQUEST_STEP
    jobs["limit"] = jobs["requested"] if scenario.limit == "kill" else math.inf
    jobs["user"] = _users(scenario, u[8])
    jobs["account"] = np.floor(u[9] * len(scenario.accounts))
    _of_types(scenario, jobs)
    return jobs


def draw_jobs(setting: Setting, seed: int | None) -> replay.Replay:
    """Draw and return the jobs of a scenario without a history.

    seed None = the past jobs that estimators learn from.
    """
    scenario = setting.scenario
    u = rng_of(seed, WorkloadStream.DEMANDS).random((11, scenario.jobs))
    times, forced = arrivals.draw(scenario, setting.rate, rng_of(seed, WorkloadStream.ARRIVALS))
    types = _types(scenario, u[0], forced)
    sizes = _sizes(scenario, types, u[1])
    jobs = _jobs(setting, types, sizes, u)
    jobs["arrival"] = times
    nothing = replay.no_estimates(setting.layout)
    rows, holds = np.empty(0, np.int64), cpu_jobs.no_holds()
    lost = np.zeros(len(jobs), np.bool_)
    return replay.Replay(jobs, sizes, setting.lists[types], (), rows, holds, nothing, lost)


def true_seconds(setting: Setting, coming: replay.Replay, seed: int | None) -> Floats:
    """Draw the true run time [J, M] in seconds of each job on each GPU model.

    It is the job's size / the speed of its type on the model, with lognormal noise on the speed.
    """
    jobs, noise = coming.jobs, setting.scenario.noise
    drawn = rng_of(seed, WorkloadStream.NOISE).standard_normal(
        (len(jobs), len(setting.layout.models))
    )
    seconds: Floats = coming.sizes[:, None] / (setting.speeds[jobs["type"]] * np.exp(noise * drawn))
    return seconds
