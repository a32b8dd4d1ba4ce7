"""A prepared scenario: affinity, rate and LP shares."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.workloads.setting import prepare


@pytest.mark.parametrize(
    ("changes", "models"),
    [
        ({}, (0, 1, 2)),  # the paper's map: Volta, Turing, Radeon
        ({"affinity": {}}, (0, 0, 0)),  # else where the type is fastest
        ({"affinity": {"ml": "Radeon Pro VII"}}, (0, 2, 0)),
    ],
)
def test_each_type_has_the_gpu_model_of_the_map_or_else_its_fastest(changes, models):
    scenario = adjusted(find_scenario("paper16"), **changes)
    assert prepare(scenario).affinity == models


def test_the_rate_is_the_load_times_the_capacity():
    setting = prepare(adjusted(find_scenario("paper16"), load=0.5))
    assert setting.rate == 0.5 * setting.capacity_per_s


def test_the_lp_gives_every_type_some_pool_that_it_may_use():
    setting = prepare(find_scenario("hetero64"))
    assert setting.type_shares.sum(axis=1) == pytest.approx(np.ones(4))
    assert (setting.type_shares[~setting.lists] == 0).all()
