"""The offered load of one seed: arriving work relative to the capacity of the cluster."""

from __future__ import annotations

import functools
import math

import numpy as np

from adlro.config.scenario import Scenario
from adlro.model.cluster import Layout
from adlro.model.state import WHOLE, Floats, Mask, Records
from adlro.workloads import capacity, history_file, replay
from adlro.workloads.setting import Setting, prepare
from adlro.workloads.workload import Workload


def pool_seconds(workload: Workload, layout: Layout) -> Floats:
    """Run time [J, P] of each job on each pool in seconds, with the span penalty if it applies."""
    jobs, pools = workload.jobs, layout.pools
    must_span = jobs["gpus"][:, None] > pools["node_gpus"]
    factor = 1 + must_span * jobs["communication"][:, None] * pools["span_cost"]
    seconds: Floats = workload.seconds[:, pools["model"]] * factor
    return seconds


def width(jobs: Records) -> Floats:
    """Width [J] of each job in GPUs; a slice counts as its share."""
    size: Floats = jobs["gpus"] * (jobs["share"] / WHOLE)
    return size


def _spread(shares: Floats, allowed: Mask) -> Floats:
    """Return the fraction of each row's work that goes to each pool, [K, P].

    The capacity LP's shares of the job type, restricted to the allowed pools; equal shares if the
    LP uses none of these.
    """
    usable = shares * allowed
    usable = np.where(usable.any(axis=1, keepdims=True), usable, allowed)
    spread: Floats = usable / usable.sum(axis=1, keepdims=True)
    return spread


@functools.lru_cache(maxsize=32)
def _expected(text: str, _: tuple[int, ...]) -> float:
    """Expected GPU-seconds of a job of a scenario (as JSON), placed as the capacity LP does."""
    setting = prepare(Scenario.model_validate_json(text))
    if setting.played is None:
        grouped = capacity.classes(setting.scenario, setting.layout)
    else:
        grouped = replay.classes(setting.played, setting.layout, setting.speeds)
    spread = _spread(setting.type_shares[grouped.type], grouped.allowed)
    return float(grouped.weight @ (spread * grouped.gpu_seconds).sum(axis=1))


def offered_load(setting: Setting, workload: Workload) -> float:
    """Return the work that arrived per second relative to the capacity: about the scenario's load.

    Work is counted in GPU-seconds of each job where the capacity LP places its type, over the time
    from 0 to the last arrival. NaN if all jobs arrive at time 0.
    """
    jobs = workload.jobs
    last = float(jobs["arrival"][-1])
    if last <= 0:
        return math.nan
    spread = _spread(setting.type_shares[jobs["type"]], workload.allowed)
    seconds = (spread * pool_seconds(workload, setting.layout)).sum(axis=1)
    arrived = float((seconds * width(jobs)).sum()) / last
    scenario = setting.scenario
    average = _expected(scenario.model_dump_json(), history_file.edition(scenario.history))
    return arrived / (setting.capacity_per_s * average)
