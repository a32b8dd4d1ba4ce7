import numpy as np
import pytest

from adlro.evaluate.stats import estimate, percent_difference


def test_the_interval_of_a_mean_is_students():
    # mean 2, sd 1, n 3: t(0.975, 2) = 4.3027, half = 4.3027 / sqrt(3) = 2.4841
    figure = estimate(np.array([1.0, 2.0, 3.0]))
    assert figure.mean == 2.0
    assert figure.sd == pytest.approx(1.0)
    assert figure.ci95 == pytest.approx((2 - 2.48414, 2 + 2.48414), abs=1e-4)


def test_one_seed_has_no_interval():
    assert estimate(np.array([5.0])).ci95 is None
    assert percent_difference(np.array([5.0]), np.array([4.0])).mean == pytest.approx(25.0)


def test_a_constant_ratio_has_an_interval_of_no_width():
    theirs = np.array([100.0, 400.0, 250.0])
    figure = percent_difference(0.9 * theirs, theirs)
    assert figure.mean == pytest.approx(-10.0)
    assert figure.ci95 == pytest.approx((-10.0, -10.0))


def test_pairing_narrows_the_interval_of_seeds_that_vary_together():
    rng = np.random.default_rng(1)
    seeds = rng.lognormal(6, 1, 50)
    paired = percent_difference(seeds * rng.normal(0.95, 0.01, 50), seeds)
    apart = percent_difference(rng.permutation(seeds) * 0.95, seeds)
    assert paired.ci95[1] - paired.ci95[0] < (apart.ci95[1] - apart.ci95[0]) / 10


def test_the_interval_covers_the_true_difference_as_often_as_it_says():
    rng = np.random.default_rng(7)
    inside = 0
    for _ in range(1000):
        theirs = rng.gamma(20, 5, 30)
        ours = 0.9 * theirs * rng.normal(1, 0.05, 30)
        low, high = percent_difference(ours, theirs).ci95
        inside += low <= -10 <= high
    assert 0.92 < inside / 1000 < 0.98
