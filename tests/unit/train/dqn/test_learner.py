"""One batch: what the values should be, by hand, and what an action may be."""

import numpy as np
import pytest
import torch

from adlro.features.observation_kernel import Sizes
from adlro.train.dqn.hyperparameters import PaperDqnHyperparameters
from adlro.train.dqn.learner import Learner
from adlro.train.dqn.replay import Batch

SIZES = Sizes(1, 3, 1, 1, 3)  # O = 3 + 1 + 2 = 6, A = 3
ONLINE, TARGET = (1.0, 5.0, 3.0), (10.0, 20.0, 40.0)


def made(online=ONLINE, target=TARGET, **changes):
    """A learner whose networks give the same values in every state."""
    learner = Learner(
        SIZES, PaperDqnHyperparameters(backbone="mlp", **{"discount": 0.5, **changes}), 0
    )
    with torch.no_grad():
        for network, values in ((learner._online, online), (learner._target, target)):
            network.values.weight.zero_()
            network.values.bias.copy_(torch.tensor(values))
    return learner


def batch(rewards, lasting, forbidden, actions=None):
    count = len(rewards)
    return Batch(
        torch.rand(count, 6),
        torch.tensor(actions or [0] * count)[:, None],
        torch.tensor(rewards, dtype=torch.float32)[:, None],
        torch.tensor(lasting, dtype=torch.float32)[:, None],
        torch.rand(count, 6),
        torch.tensor(forbidden),
    )


FREE, NOT_1, ONLY_0 = [False] * 3, [False, True, False], [False, True, True]
STEPS = batch([-1, -1, -1, -1], [1, 1, 1, 0], [FREE, NOT_1, ONLY_0, FREE])


def test_double_the_online_network_names_the_next_action_and_the_target_network_values_it():
    # online's best: 1, then 2 and 0 of those allowed; -1 + 0.5 * (20, 40, 10); the end: -1
    assert made()._goal(STEPS).ravel().tolist() == [9, 19, 4, -1]


def test_single_the_target_network_does_both_among_what_is_allowed():
    # the target's best: 2, 2, and 0 where nothing else is allowed; -1 + 0.5 * (40, 40, 10)
    assert made(is_double=False)._goal(STEPS).ravel().tolist() == [19, 19, 4, -1]


def test_only_the_value_of_the_action_taken_moves_and_towards_its_goal():
    learner = made(rate=0.01)
    learner.learn(batch([-1, -1], [0, 0], [FREE, FREE], actions=[1, 1]))
    moved = learner.network().arrays["values_bias"] - np.array(ONLINE, np.float32)
    assert moved.tolist() == pytest.approx([0, -0.01, 0], abs=1e-6)  # Adam's first step: the rate


def test_the_target_network_is_copied_every_so_many_batches():
    learner = made(target_every=3, rate=0.01)
    after = []
    for _ in range(4):
        learner.learn(STEPS)
        same = torch.equal(learner._target.values.bias, learner._online.values.bias)
        after.append(same)
    assert after == [False, False, True, False]


def test_the_loss_is_the_mean_of_hubers_since_it_was_last_taken():
    learner = made(rate=1e-9)
    # action 0 is worth 1: errors 1 - (-1) = 2 and 1 - 1.5 = -0.5: (2 - 0.5 + 0.125) / 2 = 0.8125
    learner.learn(batch([-1, 1.5], [0, 0], [FREE, FREE]))
    learner.learn(batch([-1, 1.5], [0, 0], [FREE, FREE]))
    assert learner.take_loss() == pytest.approx(0.8125)
    assert learner.take_loss() == 0.0


def test_greedy_actions_are_the_best_of_those_allowed():
    x, masks = np.zeros((3, 6), np.float32), np.array([[1, 1, 1], [1, 0, 1], [1, 0, 0]], np.bool_)
    assert made().choose(x, masks, 0.0, np.random.default_rng(0)).tolist() == [1, 2, 0]


def test_random_actions_are_allowed_ones_with_equal_odds():
    x, masks = np.zeros((3000, 6), np.float32), np.tile(np.array([True, False, True]), (3000, 1))
    chosen = made().choose(x, masks, 1.0, np.random.default_rng(0))
    assert np.bincount(chosen, minlength=3).tolist() == pytest.approx([1500, 0, 1500], abs=100)


def test_epsilon_is_the_share_of_random_actions():
    x, masks = np.zeros((3000, 6), np.float32), np.ones((3000, 3), np.bool_)
    chosen = made().choose(x, masks, 0.3, np.random.default_rng(0))
    # a third of the random ones is the best one all the same: 0.7 + 0.3 / 3 = 0.8
    assert (chosen == 1).mean() == pytest.approx(0.8, abs=0.03)


def test_epsilon_falls_in_a_line_and_then_stays():
    recipe = PaperDqnHyperparameters(epsilon=(1.0, 0.1), fading=0.5)
    assert [recipe.exploration(done) for done in (0, 0.25, 0.5, 1)] == pytest.approx(
        [1, 0.55, 0.1, 0.1]
    )
