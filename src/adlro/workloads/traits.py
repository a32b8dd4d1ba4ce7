"""Properties of job types: slowdown by co-location, telemetry readings, demands for placement."""

from __future__ import annotations

import math

import numpy as np

from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.model import gpu
from adlro.model.cluster import Layout
from adlro.model.state import DEMAND, READING, Floats, Records
from adlro.workloads import capacity

_COVERED, _MOST_KINDS = 0.95, 64  # share of the jobs that placement looks ahead to; kinds of them
_MOST_POOLS = 63  # bits of DEMAND.pools
Mix = dict[tuple[int, ...], float]  # share of the jobs by all fields of DEMAND but the weight
_UNKNOWN = gpu.Demand(fp32=0.5, bandwidth=0.5)  # of a type that gives its speeds alone


def colocation(scenario: Scenario) -> Floats:
    """Return the slowdown [T, T] of each type (row) by a slice of another (column) on the same GPU.

    1 = no slowdown. Values come from the scenario; the default is the measured slowdown for two
    types of the same kind, and 1 for others.
    """
    kinds = [job_type.kind for job_type in scenario.types]
    slowed = np.array([[gpu.slowdown(own, other) for other in kinds] for own in kinds])
    names = [job_type.name for job_type in scenario.types]
    for entry in scenario.colocation:
        one, other = (names.index(name) for name in entry.types)
        slowed[one, other], slowed[other, one] = entry.slowdown
    return slowed


def readings(scenario: Scenario, speeds: Floats, layout: Layout) -> Records:
    """Return the telemetry READING [T + 1, M] of a GPU of each model under a job of each type.

    The last row is an idle GPU. Without telemetry the array is empty, [0, 0].
    """
    if not scenario.telemetry:
        return np.zeros((0, 0), READING)
    shown = np.zeros((len(scenario.types) + 1, len(layout.models)), READING)
    for m, model in enumerate(layout.models):
        for t, job_type in enumerate(scenario.types):
            demand = job_type.demand or gpu.DEMANDS.get(job_type.kind or "", _UNKNOWN)
            shown[t, m] = tuple(gpu.busy(demand, speeds[t, m], model))
        shown[-1, m] = tuple(gpu.idle(model))
    return shown


def placement(scenario: Scenario, layout: Layout, mix: Mix | None) -> Records:
    """Return DEMAND records [K] for placement by fragmentation; [0] if the scenario uses best fit.

    A single record with 0 GPUs stands for nodes in order.

    Args:
        scenario: with its placement.
        layout: the empty cluster.
        mix: share of the jobs with each demand; None = computed from the scenario's types.

    Raises:
        ConfigError: the cluster has more pools than DEMAND.pools has bits.
    """
    if scenario.placement != "fgd":
        return np.zeros(int(scenario.placement == "in-order"), DEMAND)
    if len(layout.pools) > _MOST_POOLS:
        raise ConfigError(
            f"scenario {scenario.name}: placement = 'fgd' can look at {_MOST_POOLS} pools, not "
            f"{len(layout.pools)}; use 'best-fit' or make more nodes alike"
        )
    return typical_demands(scenario, layout, mix)


def typical_demands(scenario: Scenario, layout: Layout, mix: Mix | None) -> Records:
    """Return DEMAND records [K] of the most frequent demands, which cover 95 % of the jobs.

    The most frequent comes first; there are at most 64, even if they cover less. The result is
    empty if the cluster has more pools than DEMAND.pools has bits.

    Args:
        scenario: its types give the demands if `mix` is None.
        layout: the empty cluster.
        mix: share of the jobs with each demand; None = computed from the scenario's types.
    """
    if len(layout.pools) > _MOST_POOLS:
        return np.zeros(0, DEMAND)
    weights = _drawn_mix(scenario, layout) if mix is None else mix
    ranked = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    covered = np.cumsum([weight for _, weight in ranked])
    count = min(int(np.searchsorted(covered, _COVERED - 1e-9)) + 1, _MOST_KINDS, len(ranked))
    kinds = np.array([(weight, *key) for key, weight in ranked[:count]], DEMAND)
    kinds["weight"] /= kinds["weight"].sum()
    return kinds


def _drawn_mix(scenario: Scenario, layout: Layout) -> Mix:
    """Return the share of the jobs with each demand that the scenario's types can draw."""
    pools = len(layout.pools)
    bits = 1 << np.arange(pools)
    lists = capacity.permitted(scenario, layout)
    total = math.fsum(job_type.share for job_type in scenario.types)
    weights: Mix = {}
    for t, job_type in enumerate(scenario.types):
        odds, job = capacity.drawable(job_type)
        allowed = capacity.may_run(job, np.broadcast_to(lists[t], (len(job), pools)), layout)
        fields = (allowed @ bits, job["gpus"], job["share"], job["cores"], job["memory"])
        for p, *key in zip(odds.tolist(), *(field.tolist() for field in fields), strict=True):
            weights[tuple(key)] = weights.get(tuple(key), 0.0) + p * job_type.share / total
    return weights
