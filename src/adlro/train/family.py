"""The family of a scenario: random relatives to train on (domain randomisation).

A relative has its own load and arrivals. With some probability it also has its own mix of job
types, gangs and sizes, noise of the estimates, and cluster (number of nodes, GPU models). Each
speed change of the scenario is kept or dropped at random.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.workloads.setting import prepare

LOADS = (0.5, 1.1)
OVERLOADS = (1.1, 2.0)
MOST_SHARE = 0.6  # of the jobs that are of one type
SIGMAS = (0.05, 0.4)  # of noisy estimates
PEAKS = (1.5, 2.5)  # of bursts
BURSTS_S = (900.0, 7200.0)
MODELS = (
    "V100 32GB", "RTX 6000", "Radeon Pro VII", "P100", "A100 40GB", "A100 PCIe 80GB", "A10",
    "MI100", "MI60", "RTX 8000", "RTX 2080 Ti", "K80",
)  # fmt: skip
KEPT_CHANGES = 0.5  # probability of each wear, throttling or update of the scenario
_TRIES = 100


def _between(rng: np.random.Generator, ends: tuple[float, float]) -> float:
    return round(float(rng.uniform(*ends)), 3)


def _shares(rng: np.random.Generator, count: int) -> list[float]:
    """Return random shares of `count` job types, none above MOST_SHARE if there are several."""
    while True:
        shares = np.maximum(rng.dirichlet(np.full(count, 3.0)), 0.01)
        if count == 1 or shares.max() <= MOST_SHARE:
            return [float(share) for share in shares]


def _change_types(rng: np.random.Generator, types: list[dict[str, Any]]) -> None:
    is_single = rng.random() < 0.1
    for job_type, share in zip(types, _shares(rng, len(types)), strict=True):
        job_type["share"] = share
        size = job_type["size"]
        if size["law"] == "lognormal":
            size["sigma"] = round(size["sigma"] * _between(rng, (0.7, 1.4)), 3)
            size["median_s"] = round(size["median_s"] * _between(rng, (0.5, 2.0)), 3)
        gangs = job_type["gpus"]
        if is_single:
            job_type["gpus"] = {"values": (1,), "p": (1.0,)}
        elif len(gangs["values"]) > 1:
            odds = np.array(gangs["p"]) * rng.uniform(0.3, 2.0, len(gangs["p"]))
            odds = np.round(odds / odds.sum(), 6)
            odds[0] += 1.0 - odds.sum()
            job_type["gpus"] = {"values": gangs["values"], "p": tuple(odds.tolist())}


def _change_cluster(rng: np.random.Generator, cluster: dict[str, Any]) -> None:
    """Change the number of nodes of every group, and the GPU model of some groups."""
    for group in cluster["nodes"]:
        group["count"] = int(rng.integers(1, 2 * group["count"] + 2))
        group["hosts"] = ()  # the names of the hosts of another number of nodes
        if rng.random() < 0.5:
            group["gpu"] = str(rng.choice(MODELS))
            group["link_gb_s"] = None


def _arrivals(rng: np.random.Generator) -> dict[str, Any]:
    kind = rng.random()
    if kind < 0.2:
        peak = _between(rng, PEAKS)
        share = _between(rng, (0.1, 0.9 / peak))
        return {
            "process": "bursty", "peak": peak, "share": share, "length_s": _between(rng, BURSTS_S)
        }  # fmt: skip
    if kind < 0.3:
        return {
            "process": "diurnal", "amplitude": _between(rng, (0.2, 0.8)),
            "period_s": _between(rng, (7200.0, 86400.0)),
        }  # fmt: skip
    return {"process": "poisson"}


def _draw(base: Scenario, rng: np.random.Generator) -> Scenario:
    data = base.model_dump()
    data["load"] = _between(rng, LOADS if rng.random() < 0.9 else OVERLOADS)
    arrivals = _arrivals(rng)
    if data["history"] is None:
        data["arrivals"] = arrivals
    else:  # recorded arrivals stay; jobs that do not fit the drawn cluster are dropped
        data["history"]["unfit"] = "drop"
    if rng.random() < 0.3:
        data["estimates"] = {"source": "noisy", "sigma": _between(rng, SIGMAS)}
    if rng.random() < 0.6:
        _change_types(rng, data["types"])
    if rng.random() < 0.4:
        _change_cluster(rng, data["cluster"])
        data["affinity"] = {}
    data["changes"] = [one for one in data["changes"] if rng.random() < KEPT_CHANGES]
    return Scenario.model_validate(data)


def draw(base: Scenario, rng: np.random.Generator) -> Scenario:
    """Draw a random relative of a scenario, such that every job of the relative is feasible.

    Raises:
        ConfigError: no such relative was found in _TRIES tries.
    """
    problem = ""
    for _ in range(_TRIES):
        try:
            scenario = _draw(base, rng)
            prepare(scenario)
        except (ConfigError, ValueError) as exc:
            problem = str(exc)
            continue
        return scenario
    raise ConfigError(f"no relative of {base.name} in {_TRIES} tries: {problem}")


def with_restart_costs(
    scenario: Scenario, factors: tuple[float, float], rng: np.random.Generator
) -> Scenario:
    """Return the scenario with the costs of all checkpoints multiplied by one random factor.

    `factors` is the range of that factor.
    """
    factor = float(np.exp(rng.uniform(*np.log(factors))))
    data = scenario.model_dump()
    for job_type in data["types"]:
        if job_type["checkpoint_s"] is not None:
            job_type["checkpoint_s"] = round(job_type["checkpoint_s"] * factor, 3)
    return Scenario.model_validate(data)


def described(scenario: Scenario, loads: tuple[float, float]) -> str:
    """Describe the scenario and its random relatives in words, for the card of a policy."""
    low, high = min(loads[0], scenario.load), max(loads[1], scenario.load)
    return (
        f"{scenario.name} at load {low:g} to {high:g}, and random relatives of it: load "
        f"{LOADS[0]:g} to {OVERLOADS[1]:g}, other mixes, sizes and gangs, bursts, "
        f"waves, estimates with noise up to {SIGMAS[1]:g}, other numbers and models of nodes"
    )
