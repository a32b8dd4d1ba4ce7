from types import SimpleNamespace

import numpy as np
import pytest

from adlro.errors import ConfigError
from adlro.train.expand_kernel import COSTS
from adlro.train.objective import OBJECTIVES, find, fitness

RUN = SimpleNamespace(
    mean_jct_s=10.0, weighted_jct_s=20.0, reward=-30.0, makespan_s=40.0, energy_kwh=50.0
)
SCENARIO = SimpleNamespace(idle_weight=0.25)


@pytest.mark.parametrize(
    ("name", "figure"),
    [("jct", 10), ("weighted-jct", 20), ("reward", 30), ("throughput", 40), ("energy", 50)],
)
def test_each_objective_has_its_figure_and_lower_is_better(name, figure):
    assert find(name).figure(RUN) == figure


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("jct", {"jct": 1}),
        ("weighted-jct", {"weighted_jct": 1}),
        ("reward", {"jct": 1, "idle": 0.25}),  # lambda is the scenario's
        ("throughput", {"span": 1, "jct": 0.05}),
        ("energy", {"energy": 1 / 300, "jct": 0.05}),
    ],
)
def test_each_objective_weighs_the_costs_of_a_choice(name, weights):
    found = dict(zip(COSTS, find(name).weights(SCENARIO).tolist(), strict=True))
    assert {key: value for key, value in found.items() if value} == weights


def test_there_are_no_other_objectives():
    assert set(OBJECTIVES) == {"jct", "weighted-jct", "reward", "throughput", "energy"}
    with pytest.raises(ConfigError, match=r"^--objective: unknown 'jtc'; did you mean 'jct'"):
        find("jtc")


def test_a_longer_tail_than_min_mins_costs_and_a_shorter_one_gains_nothing():
    # 0.9 + 0.5 * (1.2 - 1) = 1.0; 0.9 + 0 for a p99 that is half of Min-Min's.
    found = fitness(np.array([0.9, 0.9]), np.array([1.2, 0.5]), tail_weight=0.5)
    np.testing.assert_allclose(found, [1.0, 0.9])
