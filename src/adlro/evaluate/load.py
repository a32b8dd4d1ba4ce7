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
    """Return the run time [J, P] in seconds of each job on each pool.

    It includes the span penalty where a job needs more GPUs than a node of the pool has.
    """
    jobs, pools = workload.jobs, layout.pools
    must_span = jobs["gpus"][:, None] > pools["node_gpus"]
    factor = 1 + must_span * jobs["communication"][:, None] * pools["span_cost"]
    seconds: Floats = workload.seconds[:, pools["model"]] * factor
    return seconds


def width(jobs: Records) -> Floats:
    """Return the number of GPUs [J] that each job occupies; a slice counts as its share."""
    size: Floats = jobs["gpus"] * (jobs["share"] / WHOLE)
    return size


def _spread(shares: Floats, allowed: Mask) -> Floats:
    """Return the fraction [K, P] of the work of each of K jobs (or job classes) on each pool.

    These are the capacity LP's `shares` [K, P] of the job's type, restricted to the `allowed` pools
    [K, P]; equal shares if the LP uses none of the allowed pools.
    """
    usable = shares * allowed
    usable = np.where(usable.any(axis=1, keepdims=True), usable, allowed)
    spread: Floats = usable / usable.sum(axis=1, keepdims=True)
    return spread


@functools.lru_cache(maxsize=32)
def _expected(text: str, _: tuple[int, ...]) -> float:
    """Return the expected GPU-seconds of a job of a scenario, on the pools the capacity LP uses.

    The arguments are the cache's key: the scenario as JSON, and the edition of its history file.
    """
    setting = prepare(Scenario.model_validate_json(text))
    if setting.played is None:
        grouped = capacity.classes(setting.scenario, setting.layout)
    else:
        grouped = replay.classes(setting.played, setting.layout, setting.speeds)
    spread = _spread(setting.type_shares[grouped.type], grouped.allowed)
    return float(grouped.weight @ (spread * grouped.gpu_seconds).sum(axis=1))


def offered_load(setting: Setting, workload: Workload) -> float:
    """Return the work that arrived per second / the capacity; close to the scenario's load.

    The work of a job is its GPU-seconds on the pools where the capacity LP places its type. The
    time is that from 0 to the last arrival. NaN if all jobs arrive at time 0.
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
