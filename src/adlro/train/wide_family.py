"""Clusters and jobs of many kinds, drawn from scratch: what the shipped policy is trained on.

Relatives of a scenario (family.py) teach a policy its own cluster. A policy for clusters that
nobody has seen needs more: sizes over three decades, one GPU model or eight, all alike or not,
partitions, large gangs, run times of every spread, calm and crowded hours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from adlro.config.files import adjusted
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.workloads.setting import prepare

LEAST_GPUS = 8  # of a cluster
LOADS = (0.3, 4.0)
POOLS = 8
MOST_GANG = 128
SIGMAS = (0.8, 3.0)  # of lognormal run times
ALPHAS = (0.5, 1.6)  # of Pareto run times
LEAST_JOBS = 300  # of an episode
_SMALL = 1.8  # the larger, the smaller most clusters are
_PER_GPU = 3.0  # at least so many jobs of an episode for each GPU
_POOL_ODDS = (0.22, 0.2, 0.2, 0.14, 0.1, 0.07, 0.04, 0.03)
_NODE_SIZES, _NODE_ODDS = (1, 2, 4, 8), (0.05, 0.1, 0.35, 0.5)
_MODELS = (
    "V100 32GB", "P100", "K80", "T4", "A100 40GB", "A100 80GB", "H100", "A10", "L4", "RTX 6000",
    "RTX 2080 Ti", "MI100", "MI210", "L40S", "RTX 3090", "A40",
)  # fmt: skip
_TRIES = 100


class Most(NamedTuple):
    """The largest clusters and the longest episodes that are drawn."""

    gpus: int
    jobs: int


WHOLE = Most(2048, 3000)
SMALL = Most(96, 600)  # of which tuning can play thousands


def _cluster(rng: np.random.Generator, most: int) -> dict[str, Any]:
    low, high = np.log(LEAST_GPUS), np.log(most)
    total = float(np.exp(low + (high - low) * rng.random() ** _SMALL))
    pools = 1 + int(rng.choice(POOLS, p=_POOL_ODDS))
    shares = rng.dirichlet(np.full(pools, 1.5))
    models = rng.choice(_MODELS, pools, replace=False)
    nodes = []
    for p in range(pools):
        size = int(rng.choice(_NODE_SIZES, p=_NODE_ODDS))
        nodes.append({
            "name": f"pool{p}", "count": max(round(total * shares[p] / size), 1),
            "gpu": str(models[p]), "gpus": size, "cores": 16 * size, "memory_gb": 128 * size,
        })  # fmt: skip
    return {"name": "wide", "nodes": nodes}


def _size(rng: np.random.Generator, median_s: float) -> dict[str, Any]:
    """Draw a law of run times with about this median."""
    kind = rng.random()
    if kind < 0.6:
        cap = round(float(10 ** rng.uniform(1.3, 4.0)), 1)
        return {"median_s": median_s, "sigma": round(float(rng.uniform(*SIGMAS)), 3), "cap": cap}
    if kind < 0.85:
        alpha, cap = rng.uniform(*ALPHAS), 10 ** rng.uniform(1.5, 4.0)
        return {
            "law": "pareto", "minimum_s": max(round(median_s / 2 ** (1 / alpha), 3), 0.01),
            "alpha": round(float(alpha), 3), "cap": round(float(cap), 1),
        }  # fmt: skip
    borders = [round(median_s * f, 3) for f in (0.05, 1.0, float(rng.uniform(5, 60)))]
    return {"law": "log-uniform", "borders_s": borders, "p": [0.5, 0.5]}


def _gangs(rng: np.random.Generator, most: int) -> dict[str, Any]:
    """Draw a distribution of gang sizes: powers of two up to `most`."""
    sizes = [2**k for k in range(int(np.log2(most)) + 1)]
    if rng.random() < 0.25:
        sizes = sizes[:1]
    odds = float(rng.uniform(0.1, 0.75)) ** np.arange(len(sizes))
    if rng.random() < 0.3:  # some sites ask for whole nodes far more often than for two GPUs
        odds *= rng.uniform(0.1, 2.0, len(sizes))
    odds = np.round(odds / odds.sum(), 6)
    odds[0] += 1.0 - odds.sum()
    return {"values": sizes, "p": [float(one) for one in odds]}


def _type(
    rng: np.random.Generator, number: int, cluster: dict[str, Any], base: dict[str, Any]
) -> dict[str, Any]:
    nodes = cluster["nodes"]
    allowed = nodes
    if len(nodes) > 1 and rng.random() < 0.2:
        kept = rng.random(len(nodes)) < 0.6
        kept[rng.integers(len(nodes))] = True
        allowed = [one for one, is_kept in zip(nodes, kept, strict=True) if is_kept]
    one_node = bool(rng.random() < 0.25)
    room = [one["gpus"] * (1 if one_node else one["count"]) for one in allowed]
    most = max(min(max(room), MOST_GANG, int(2 ** rng.integers(0, 8))), 1)
    alike = 0.0 if base["are_alike"] else float(rng.choice((0.1, 0.3, 0.6)))
    speed = {
        one["gpu"]: round(float(base["speeds"][p] * np.exp(alike * rng.standard_normal())), 4)
        for p, one in enumerate(nodes)
    }
    median = float(base["median_s"] * np.exp(0.8 * rng.standard_normal()))
    return {
        "name": f"type{number}",
        "share": round(float(rng.uniform(0.05, 1.0)), 3),
        "size": _size(rng, round(max(median, 1.0), 3)),
        "speed": speed,
        "gpus": _gangs(rng, most),
        "one_node": one_node,
        "models": [one["gpu"] for one in allowed] if len(allowed) < len(nodes) else [],
        "cores": {"values": [1, 8, 16], "p": [0.5, 0.3, 0.2]} if rng.random() < 0.2 else 1,
        "communication": 0.0 if rng.random() < 0.4 else round(float(rng.uniform(0.02, 0.3)), 3),
    }


def _load(rng: np.random.Generator) -> float:
    kind, (low, high) = rng.random(), LOADS
    ends = (0.6, 1.3) if kind < 0.65 else (low, 0.6) if kind < 0.8 else (1.3, high)
    return round(float(np.exp(rng.uniform(*np.log(ends)))), 3)


def _arrivals(rng: np.random.Generator, span_s: float) -> dict[str, Any]:
    """Draw an arrival process for jobs that come over about `span_s` seconds."""
    kind = rng.random()
    if kind < 0.35:
        peak = float(rng.uniform(1.5, 6.0))
        return {
            "process": "bursty", "peak": round(peak, 3),
            "share": round(float(rng.uniform(0.1, 0.9)) / peak, 3),
            "length_s": round(max(span_s * float(rng.uniform(0.01, 0.15)), 1.0), 3),
        }  # fmt: skip
    if kind < 0.55:
        return {
            "process": "diurnal", "amplitude": round(float(rng.uniform(0.3, 1.0)), 3),
            "period_s": round(max(span_s * float(rng.uniform(0.1, 0.6)), 60.0), 3),
        }  # fmt: skip
    return {"process": "poisson"}


def _draw(rng: np.random.Generator, most: Most) -> Scenario:
    cluster = _cluster(rng, most.gpus)
    gpus = sum(one["count"] * one["gpus"] for one in cluster["nodes"])
    are_alike = bool(rng.random() < 0.3)
    spread = 0.0 if are_alike else 0.6
    base = {
        "are_alike": are_alike,
        "speeds": np.exp(spread * rng.standard_normal(len(cluster["nodes"]))),
        "median_s": 10 ** rng.uniform(1.5, 4.0),
    }
    types = [_type(rng, k, cluster, base) for k in range(int(rng.integers(1, 5)))]
    jobs = np.exp(rng.uniform(np.log(LEAST_JOBS), np.log(most.jobs)))
    scenario = Scenario.model_validate({
        "name": "wide",
        "cluster": cluster,
        "types": types,
        "jobs": int(min(max(gpus * _PER_GPU, jobs), most.jobs)),
        "load": _load(rng),
        "noise": 0.0 if rng.random() < 0.5 else round(float(rng.uniform(0.05, 0.4)), 3),
        "users": int(rng.integers(1, 40)),
    })  # fmt: skip
    span_s = scenario.jobs / prepare(scenario).rate
    return adjusted(scenario, arrivals=_arrivals(rng, span_s))


def draw(rng: np.random.Generator, most: Most = WHOLE) -> Scenario:
    """Draw a scenario in which every job is feasible.

    Raises:
        ConfigError: none was found in _TRIES tries.
    """
    problem = ""
    for _ in range(_TRIES):
        try:
            scenario = _draw(rng, most)
            prepare(scenario)
        except (ConfigError, ValueError) as exc:
            problem = str(exc)
            continue
        return scenario
    raise ConfigError(f"no wide scenario in {_TRIES} tries: {problem}")
