"""How much work the jobs of one seed brought, relative to what the cluster can carry."""

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
    """Seconds [J, P] of each job on each pool, with the span penalty if it must span nodes."""
    jobs, pools = workload.jobs, layout.pools
    must_span = jobs["gpus"][:, None] > pools["node_gpus"]
    factor = 1 + must_span * jobs["communication"][:, None] * pools["span_cost"]
    seconds: Floats = workload.seconds[:, pools["model"]] * factor
    return seconds


def width(jobs: Records) -> Floats:
    """GPUs [J] that each job takes up, a slice as its share."""
    size: Floats = jobs["gpus"] * (jobs["share"] / WHOLE)
    return size


def _spread(shares: Floats, allowed: Mask) -> Floats:
    """How much of each row's work goes to each pool, [K, P].

    As the capacity LP spreads its type, kept to the pools that it may use; all alike if the LP
    uses none of these.
    """
    kept = shares * allowed
    kept = np.where(kept.any(axis=1, keepdims=True), kept, allowed)
    spread: Floats = kept / kept.sum(axis=1, keepdims=True)
    return spread


@functools.lru_cache(maxsize=32)
def _expected(text: str, _: tuple[int, ...]) -> float:
    """GPU-seconds of an average job of a scenario (as JSON), each where the capacity LP puts it."""
    setting = prepare(Scenario.model_validate_json(text))
    if setting.played is None:
        grouped = capacity.classes(setting.scenario, setting.layout)
    else:
        grouped = replay.classes(setting.played, setting.layout, setting.speeds)
    spread = _spread(setting.type_shares[grouped.type], grouped.allowed)
    return float(grouped.weight @ (spread * grouped.gpu_seconds).sum(axis=1))


def offered_load(setting: Setting, workload: Workload) -> float:
    """Work that arrived a second, relative to the capacity: about the scenario's load.

    Work is GPU-seconds of each job where the capacity LP puts its type; the time is that from the
    start of the clock to the last arrival. NaN when all jobs are there from the start.
    """
    jobs = workload.jobs
    last = float(jobs["arrival"][-1])
    if last <= 0:
        return math.nan
    spread = _spread(setting.type_shares[jobs["type"]], workload.allowed)
    seconds = (spread * pool_seconds(workload, setting.layout)).sum(axis=1)
    brought = float((seconds * width(jobs)).sum()) / last
    scenario = setting.scenario
    average = _expected(scenario.model_dump_json(), history_file.edition(scenario.history))
    return brought / (setting.capacity_per_s * average)
