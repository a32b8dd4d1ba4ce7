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
    """Slowdown [T, T] of each type by a slice of another on the same GPU; 1 = none.

    From the scenario, else as measured for two types of the same kind.
    """
    kinds = [job_type.kind for job_type in scenario.types]
    slowed = np.array([[gpu.slowdown(own, other) for other in kinds] for own in kinds])
    names = [job_type.name for job_type in scenario.types]
    for entry in scenario.colocation:
        one, other = (names.index(name) for name in entry.types)
        slowed[one, other], slowed[other, one] = entry.slowdown
    return slowed


def readings(scenario: Scenario, speeds: Floats, layout: Layout) -> Records:
    """READING [T + 1, M] of each type on each model, the last row idle; [0, 0] = no telemetry."""
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
    """DEMAND [K] for placement by fragmentation; none for `best-fit`.

    Args:
        scenario: with its placement.
        layout: the empty cluster.
        mix: demands of the jobs, if not those of the scenario's types.

    Raises:
        ConfigError: the cluster has more pools than a mask of them has bits.
    """
    if scenario.placement != "fgd":
        return np.zeros(0, DEMAND)
    if len(layout.pools) > _MOST_POOLS:
        raise ConfigError(
            f"scenario {scenario.name}: placement = 'fgd' can look at {_MOST_POOLS} pools, not "
            f"{len(layout.pools)}; use 'best-fit' or make more nodes alike"
        )
    return typical_demands(scenario, layout, mix)


def typical_demands(scenario: Scenario, layout: Layout, mix: Mix | None) -> Records:
    """DEMAND [K] of the demands that make up most of the jobs, the most frequent first.

    None where the cluster has more pools than a mask of them has bits.

    Args:
        scenario: its types have the demands, unless `mix` is given.
        layout: the empty cluster.
        mix: demands of the jobs, if not those of the scenario's types.
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
    """Demands of the jobs of the scenario's types."""
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
