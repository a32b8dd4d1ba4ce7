"""The loop in place of many items: each value is tried, and the one that fails is named."""

import inspect

import pytest

from tests.looped import every


def test_every_value_is_tried_with_the_other_arguments_kept():
    seen = []

    @every("seed", range(3))
    def looped(seed, policy):
        seen.append((seed, policy))

    assert list(inspect.signature(looped).parameters) == ["policy"]
    looped(policy="fcfs")
    assert seen == [(0, "fcfs"), (1, "fcfs"), (2, "fcfs")]


def test_a_failure_names_its_value():
    @every("seed", [4, 5])
    def looped(seed):
        assert seed < 5

    with pytest.raises(AssertionError) as caught:
        looped()
    assert caught.value.__notes__ == ["seed = 5"]


def test_no_values_at_all_are_a_mistake():
    with pytest.raises(AssertionError):
        every("seed", [])
