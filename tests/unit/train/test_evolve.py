import numpy as np
import pytest

from adlro.train import evolve
from adlro.train.hyperparameters import TuningSettings

TUNING = TuningSettings(generations=150, pairs=10, sigma=0.1, rate=0.1, averaging=0.9, settling=5)
GOAL = np.array([1.0, -2.0, 0.5])


def away(points):
    """Squared distance from GOAL in units of (1, 10, 1)."""
    return (((points - GOAL) / (1, 10, 1)) ** 2).sum(axis=1)


def searched(fitness, tuning=TUNING, generations=150):
    search = evolve.begin(np.zeros(3), np.array([1.0, 10.0, 1.0]))
    for g in range(generations):
        search = evolve.step(search, fitness, tuning, np.random.default_rng((7, g)))
    return search


def test_the_minimum_of_a_quadratic_is_found():
    search = searched(away)
    assert search.generation == 150
    assert away(search.averaged()[None])[0] < 0.01 < away(np.zeros((1, 3)))[0]


def test_only_the_order_of_the_values_matters():
    plain, bent = searched(away, generations=9), searched(lambda x: away(x) ** 3 - 5, generations=9)
    assert plain.averaged().tolist() == bent.averaged().tolist()


def test_a_flat_function_leaves_ties_to_chance_but_noise_is_mirrored():
    seen = []

    def flat(points):
        seen.append(points)
        return np.zeros(len(points))

    search = evolve.begin(np.full(3, 5.0), np.array([1.0, 2.0, 0.0]))
    evolve.step(search, flat, TUNING, np.random.default_rng(0))
    points = seen[0]
    assert points.shape == (20, 3)
    np.testing.assert_allclose((points[0::2] + points[1::2]) / 2, np.full((10, 3), 5.0))
    assert (points[:, 2] == 5.0).all()  # what has no scale does not move


def test_the_rate_falls_to_its_last_share():
    # Adam's first step is the rate itself, whatever the gradient. With the generation set to the
    # last but one of 10 and last_rate 0.3, the rate is 1 - 0.7 * 9 / 10 = 0.37 of the first.
    tuning = TuningSettings(generations=10, pairs=4, sigma=0.1, rate=0.1, last_rate=0.3)
    start = evolve.begin(np.zeros(1), np.ones(1))
    first = evolve.step(start, lambda x: x[:, 0], tuning, np.random.default_rng(0))
    assert first.at[0] == pytest.approx(-0.1, rel=1e-6)
    late = start._replace(generation=9)
    last = evolve.step(late, lambda x: x[:, 0], tuning, np.random.default_rng(0))
    scale = (0.1 / (1 - 0.9**10)) / np.sqrt(0.01 / (1 - 0.99**10))  # of Adam's means of one step
    assert last.at[0] == pytest.approx(-0.1 * 0.37 * scale, rel=1e-6)


def test_averaging_begins_with_halves():
    tuning = TUNING.model_copy(update={"settling": 0, "averaging": 0.9})
    start = evolve.begin(np.zeros(1), np.ones(1))
    one = evolve.step(start, lambda x: x[:, 0], tuning, np.random.default_rng(0))
    assert one.average[0] == pytest.approx(0.5 * one.at[0])
    two = evolve.step(one, lambda x: x[:, 0], tuning, np.random.default_rng(1))
    assert two.average[0] == pytest.approx(0.9 * one.average[0] + 0.1 * two.at[0])
