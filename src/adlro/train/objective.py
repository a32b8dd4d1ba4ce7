"""Objectives of training: each defines the cost of a choice, and the figure of a whole run.

Every objective has a guard against starvation: see `fitness` and `Evaluation.is_safe`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.config.scenario import Scenario
from adlro.errors import ConfigError, suggestion
from adlro.evaluate.metrics import Metrics
from adlro.model.state import Floats
from adlro.train.expand_kernel import COSTS

_WATTS = 300.0  # of a large GPU: converts joules to seconds
_HINT = 0.05  # weight of JCT in costs that few choices change: it orders the others


class Objective(NamedTuple):
    """What training minimises: a metric of a whole run, and weights for the cost of a choice."""

    name: str
    about: str
    metric: str  # of evaluate.metrics
    sign: float  # -1 = the metric is maximised
    columns: dict[str, float]  # weights of expand_kernel.COSTS
    idle: float = 0.0  # weight of "idle" in units of the scenario's idle_weight

    def weights(self, scenario: Scenario) -> Floats:
        """Return the weight [5] of each of the five columns of COSTS in the cost of a choice."""
        columns = {**self.columns}
        if self.idle:
            columns["idle"] = self.idle * scenario.idle_weight
        return np.array([columns.get(name, 0.0) for name in COSTS])

    def figure(self, metrics: Metrics) -> float:
        """Return the figure of a whole run that training minimises."""
        value: float = getattr(metrics, self.metric)
        return self.sign * value


OBJECTIVES = {
    each.name: each
    for each in (
        Objective("jct", "mean JCT", "mean_jct_s", 1, {"jct": 1}),
        Objective(
            "weighted-jct", "JCT weighted by priority", "weighted_jct_s", 1, {"weighted_jct": 1}
        ),
        Objective("reward", "the paper's R: JCT and idle GPUs", "reward", -1, {"jct": 1}, idle=1),
        Objective(
            "throughput", "jobs an hour", "makespan_s", 1, {"span": 1, "jct": _HINT}
        ),
        Objective(
            "energy", "energy of all GPUs", "energy_kwh", 1, {"energy": 1 / _WATTS, "jct": _HINT}
        ),
    )
}  # fmt: skip


def find(name: str) -> Objective:
    """Return the objective with this name.

    Raises:
        ConfigError: there is no such objective.
    """
    if name not in OBJECTIVES:
        raise ConfigError(f"--objective: unknown {name!r}; {suggestion(name, OBJECTIVES)}")
    return OBJECTIVES[name]


def fitness(ratio: Floats, p99_ratio: Floats, tail_weight: float) -> Floats:
    """Return `ratio` plus a penalty for a p99 JCT above the baseline's; lower is better.

    Both ratios are figures divided by the baseline's on the same jobs.
    """
    guarded: Floats = ratio + tail_weight * np.maximum(0.0, p99_ratio - 1.0)
    return guarded
