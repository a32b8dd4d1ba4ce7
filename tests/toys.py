"""Toy scenarios and hyperparameters that train in seconds."""

from __future__ import annotations

import itertools

import numpy as np

from adlro.config.scenario import Scenario
from adlro.train.adlro import AdlroPlan, AdlroRequest
from adlro.train.hyperparameters import (
    AdlroHyperparameters,
    FitSettings,
    LabelRound,
    SelectionSettings,
    TuningSettings,
)
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

FAST, SLOW = "V100 16GB", "T4"


def node(gpu: str, gpus: int) -> dict:
    return {
        "name": gpu.split()[0].lower(), "gpu": gpu, "gpus": gpus, "cores": 99, "memory_gb": 99
    }  # fmt: skip


def bound_and_free(jobs: int = 6) -> Scenario:
    """Two fast and two slow GPUs; half of the jobs can only use the fast ones, 60 s each.

    The others take 60 s on a fast GPU and 61.2 s on a slow one. Min-Min puts them on a fast GPU
    whenever one is free, and a bound job that arrives next waits for up to a minute; leaving the
    fast GPUs to bound jobs is better, but requires anticipating arrivals.
    """
    size = {"law": "constant", "seconds": 60}
    return Scenario.model_validate(
        {
            "name": "bound-and-free",
            "cluster": {"name": "toy", "nodes": [node(FAST, 2), node(SLOW, 2)]},
            "types": [
                {"name": "bound", "share": 1, "size": size, "speed": {FAST: 1, SLOW: 1},
                 "models": [FAST]},
                {"name": "free", "share": 1, "size": size, "speed": {FAST: 1, SLOW: 0.98}},
            ],
            "jobs": jobs,
            "load": 0.9,
        }
    )  # fmt: skip


def throttled(jobs: int = 6) -> Scenario:
    """The same with telemetry, and a fast GPU that is throttled for the first hour."""
    hot = {"kind": "throttling", "node": "v100", "to_h": 1, "speed": 0.5}
    data = bound_and_free(jobs).model_dump()
    return Scenario.model_validate({**data, "telemetry": True, "changes": [hot]})


def best_mean_jct(setting: Setting, workload: Workload) -> float:
    """Best mean JCT of all schedules without preemption, by exhaustive search.

    Tries every order of the jobs and every choice of pools; a job takes the GPU of its pool that is
    free first. This covers every schedule in which no job could start earlier.
    """
    arrival, pools = workload.jobs["arrival"], setting.pools
    seconds = workload.seconds[:, pools["model"]]
    open_to = [np.flatnonzero(row).tolist() for row in workload.allowed]
    best = np.inf
    for order in itertools.permutations(range(len(arrival))):
        for places in itertools.product(*(open_to[j] for j in order)):
            free = [[0.0] * int(count) for count in pools["gpus"]]
            total = 0.0
            for j, p in zip(order, places, strict=True):
                end = max(free[p][0], arrival[j]) + seconds[j, p]
                free[p] = sorted([*free[p][1:], end])
                total += end - arrival[j]
                if total >= best:
                    break
            best = min(best, total)
    return best / len(arrival)


def small(**changes) -> AdlroHyperparameters:
    """Hyperparameters with which a toy is trained in seconds."""
    usual = {
        "hidden": (8, 4),
        "rounds": (
            LabelRound(base="min-min", behaviours=("min-min", "drain-argmin"), states=600,
                       horizon=6, rate=1.0, stray=0.2, family_share=0.0),
        ),
        "loads": (0.9, 0.9),
        "fit": FitSettings(epochs=10, batch=64, rate=0.01),
        "tuning": TuningSettings(generations=6, pairs=8, episodes=6, sigma=0.1, rate=0.1,
                                 averaging=0.8, settling=3, family_share=0.0, evaluate_every=2),
        "selection": SelectionSettings(loads=(), seeds=20, final_seeds=20),
    }  # fmt: skip
    return AdlroHyperparameters(**{**usual, **changes})


def request(scenario: Scenario, used: AdlroHyperparameters, **changes) -> AdlroRequest:
    usual = {"algorithm": "adlro", "scenario": scenario, "hyperparameters": used}
    return AdlroRequest(**{**usual, **changes})


def plan(scenario: Scenario, used: AdlroHyperparameters, **changes) -> AdlroPlan:
    return AdlroPlan(request=request(scenario, used, **changes), hyperparameters=used)


def tiny() -> AdlroHyperparameters:
    """Hyperparameters of a second, for tests that need no good policy."""
    return small(
        rounds=(
            LabelRound(base="min-min", behaviours=("min-min", "pair-sjf"), states=20, horizon=6,
                  rate=1.0, stray=0.2, family_share=0.2),
            LabelRound(base="self", behaviours=("self", "drain-argmin"), states=20, horizon=6,
                  rate=1.0, stray=0.2, family_share=0.0),
        ),
        fit=FitSettings(epochs=3, batch=8),
        tuning=TuningSettings(
            generations=3, pairs=2, episodes=2, family_share=0.5, evaluate_every=2
        ),
        selection=SelectionSettings(loads=(), seeds=5, final_seeds=6),
    )  # fmt: skip


def mixed() -> Scenario:
    """Urgent and other jobs on two fast GPUs with high power and two slow ones with low power.

    A fast GPU draws 300 W and a slow one, at 0.6 times the speed, 70 W: a second of work costs
    300 J on a fast GPU and 117 J on a slow one.
    """
    size = {"median_s": 100, "sigma": 1.0}
    speed = {FAST: 1.0, SLOW: 0.6}
    low, high = {"low": 0.0, "high": 0.1}, {"low": 0.9, "high": 1.0}
    return Scenario.model_validate(
        {
            "name": "mixed",
            "cluster": {"name": "toy", "nodes": [node(FAST, 2), node(SLOW, 2)]},
            "types": [
                {"name": "urgent", "share": 0.25, "size": size, "speed": speed, "priority": high},
                {"name": "other", "share": 0.75, "size": size, "speed": speed, "priority": low},
            ],
            "jobs": 40,
            "load": 0.9,
            "idle_weight": 0.95,
        }
    )


def short_and_long(jobs: int = 20) -> Scenario:
    """One fast GPU and three slow ones; four of five jobs take 30 s there and 600 s elsewhere.

    The others take 600 s on the fast GPU and 610 s on a slow one. No job waits while a GPU is free:
    with a long job on the fast GPU, arriving short jobs take 600 s as well. That cost appears only
    after the next decision; until then it makes no difference where the long job runs.
    """
    short, long = ({"law": "constant", "seconds": s} for s in (30, 600))
    return Scenario.model_validate(
        {
            "name": "short-and-long",
            "cluster": {"name": "toy", "nodes": [node(FAST, 1), node(SLOW, 3)]},
            "types": [
                {"name": "short", "share": 0.8, "size": short, "speed": {FAST: 1, SLOW: 0.05}},
                {"name": "long", "share": 0.2, "size": long, "speed": {FAST: 1, SLOW: 600 / 610}},
            ],
            "jobs": jobs,
            "load": 0.2,
        }
    )  # fmt: skip
