"""What a policy is trained for: the cost of a choice, and the figure of a whole run.

Every objective has a guard against starvation: see `Objective.fitness` and selection.Look.is_safe.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.config.scenario import Scenario
from adlro.errors import ConfigError, suggestion
from adlro.evaluate.metrics import Metrics
from adlro.model.state import Floats
from adlro.train.expand_kernel import COSTS

_WATTS = 300.0  # joules count as the seconds in which one large GPU draws them
_HINT = 0.05  # share of JCT in costs that few choices change, so that the others have an order


class Objective(NamedTuple):
    """Something to be made small."""

    name: str
    about: str
    metric: str  # of evaluate.metrics
    sign: float  # -1 = the metric is to be made large
    columns: dict[str, float]  # weights of expand_kernel.COSTS
    idle: float = 0.0  # weight of "idle" in units of the scenario's idle_weight

    def weights(self, scenario: Scenario) -> Floats:
        """Weights of the columns of COSTS."""
        columns = {**self.columns}
        if self.idle:
            columns["idle"] = self.idle * scenario.idle_weight
        return np.array([columns.get(name, 0.0) for name in COSTS])

    def figure(self, metrics: Metrics) -> float:
        """What is to be made small, of a whole run."""
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
    """An objective by name.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in OBJECTIVES:
        raise ConfigError(f"--objective: unknown {name!r}; {suggestion(name, OBJECTIVES)}")
    return OBJECTIVES[name]


def fitness(ratio: Floats, p99_ratio: Floats, tail_weight: float) -> Floats:
    """Ratios to Min-Min on the same jobs, and a price for a p99 JCT above Min-Min's."""
    guarded: Floats = ratio + tail_weight * np.maximum(0.0, p99_ratio - 1.0)
    return guarded
