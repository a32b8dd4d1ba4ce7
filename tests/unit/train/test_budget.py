"""Plans by hand from round speeds; what a machine measures is only checked for sense."""

import pytest

from adlro.train import budget
from adlro.train.budget import Speeds, scaled_to_episodes, scaled_to_time
from adlro.train.hyperparameters import AdlroHyperparameters, SelectionSettings, TuningSettings
from tests import toys

# 1 ms a state in the first round and 2 ms in the second, 10 µs an epoch, 10 ms an episode.
SPEEDS = Speeds((0.001, 0.002), 1e-5, 0.010, 0.002, 0.008)


def request(**changes):
    used = AdlroHyperparameters(
        tuning=TuningSettings(pairs=10, episodes=5, evaluate_every=10),
        selection=SelectionSettings(loads=(), seeds=20, final_seeds=100),
    )
    return toys.request(toys.bound_and_free(), used, **changes)


def test_a_budget_is_split_into_labels_fit_and_tuning():
    # 0.9 * 1000 s - 100 s = 800 s. Labels: 45 % = 360 s, 180 s a round: 180,000 and 90,000 states.
    # Fit: 80 s; it goes over 180,000 and then over 270,000 states, 4.5 s an epoch: 15 of 17.
    # Tuning: 360 s. A generation: 5 * (20 * 0.01 + 0.002) = 1.01 s. Last look: 100 seeds *
    # (2 * 0.01 + 0.002 + 0.008) = 3 s; a look 20 * 0.01 = 0.2 s, four before it and one in ten
    # generations: (360 - 3 - 0.8) / (1.01 + 0.02) = 345.8.
    plan = scaled_to_time(request(), 100.0, 1000.0, SPEEDS)
    assert [each.states for each in plan.rounds] == [180_000, 90_000]
    assert plan.fit.epochs == 15
    assert plan.tuning.generations == 345
    assert (plan.selection.seeds, plan.selection.final_seeds) == (20, 100)


def test_fewer_epochs_where_the_fit_would_take_too_long():
    plan = scaled_to_time(request(), 100.0, 1000.0, SPEEDS._replace(epoch=2e-5))
    assert plan.fit.epochs == 8  # 80 s / 9 s


def test_a_small_budget_has_one_round_and_small_generations():
    # 0.9 * 100 = 90 s: 40.5 s of labels in one round.
    plan = scaled_to_time(request(), 0.0, 100.0, SPEEDS)
    assert [each.states for each in plan.rounds] == [40_500]
    assert (plan.tuning.pairs, plan.tuning.episodes) == (10, 5)
    assert plan.tuning.generations > 20


def test_a_budget_that_is_spent_already_still_makes_a_policy():
    plan = scaled_to_time(request(), 5.0, 1.0, SPEEDS)
    assert [each.states for each in plan.rounds] == [300]
    assert (plan.fit.epochs, plan.tuning.generations) == (2, 0)


def test_episodes_are_counted_out():
    # 41,000 / 41 = 1,000 labelled, 500 a round; 40,000 more make 40,000 / (5 * 21) generations.
    plan = scaled_to_episodes(request().hyperparameters, 41_000)
    assert [each.episodes for each in plan.rounds] == [500, 500]
    assert plan.tuning.generations == 380
    assert (plan.selection.seeds, plan.selection.final_seeds) == (20, 100)


@pytest.mark.parametrize("episodes", [1, 2, 40])
def test_few_episodes_are_labelled_and_not_tuned(episodes):
    plan = scaled_to_episodes(request().hyperparameters, episodes)
    assert [each.episodes for each in plan.rounds] == [1]
    assert plan.tuning.generations == 0
    assert (plan.selection.seeds, plan.selection.final_seeds) == (10, 10)


def test_speeds_are_measured():
    used = toys.tiny()
    wanted = toys.request(toys.bound_and_free(), used)
    budget.measure(wanted, used)  # compiles or loads all that is measured, as warm_up does
    speeds = budget.measure(wanted, used)
    assert len(speeds.states) == 2
    assert min(*speeds.states, *speeds[1:5]) > 0
    assert max(*speeds.states, *speeds[1:5]) < 1
