"""Least squares on data with known coefficients."""

import numpy as np
import pytest
from scipy import stats

from adlro.evaluate.regression import REGRESSORS, regress, regressions


def line(n=7):
    """y = 10 + 2 u - 3 v + 0.5 w exactly."""
    rng = np.random.default_rng(0)
    x = rng.normal(5, 2, (n, 3))
    return 10 + x @ np.array([2, -3, 0.5]), x


def test_an_exact_line_is_found():
    y, x = line()
    found = regress(y, x, np.arange(7))
    assert [term.name for term in found.coefficients] == ["constant", *REGRESSORS]
    assert [term.value for term in found.coefficients] == pytest.approx([10, 2, -3, 0.5])
    assert found.r2 == pytest.approx(1)
    assert (found.n, found.intervals, found.problem) == (7, "classical", None)
    shares = x.std(axis=0) / y.std() * (2, -3, 0.5)
    assert [t.standardised for t in found.coefficients[1:]] == pytest.approx(shares)
    assert found.coefficients[0].standardised is None


def test_a_line_by_hand():
    # x 0 1 2 3, y 1 3 2 6: slope 7 / 5, constant 0.9, residuals .1 .7 -1.7 .9, squares 4.2;
    # R² = 1 - 4.2 / 14; se of the slope = sqrt(4.2 / 2 / 5), t(0.975, 2) = 4.30265
    x = np.arange(4.0)[:, None]
    found = regress(np.array([1.0, 3, 2, 6]), x, np.arange(4), ["x"])
    constant, slope = found.coefficients
    assert (constant.value, slope.value) == (pytest.approx(0.9), pytest.approx(1.4))
    assert found.r2 == pytest.approx(0.7)
    half = 4.30265 * np.sqrt(0.42)
    assert slope.ci95 == pytest.approx((1.4 - half, 1.4 + half), rel=1e-5)
    theirs = stats.linregress(x[:, 0], [1, 3, 2, 6])
    half = 4.30265 * theirs.intercept_stderr
    assert constant.ci95 == pytest.approx((0.9 - half, 0.9 + half), rel=1e-5)


def test_coefficients_are_those_of_numpy():
    rng = np.random.default_rng(3)
    x, y = rng.lognormal(3, 1, (40, 3)), rng.lognormal(7, 1, 40)
    ours = regress(y, x, np.arange(40))
    theirs = np.linalg.lstsq(np.column_stack((np.ones(40), x)), y, rcond=None)[0]
    assert [term.value for term in ours.coefficients] == pytest.approx(theirs)


def test_intervals_of_independent_runs_cover_the_truth():
    rng, inside = np.random.default_rng(9), 0
    for _ in range(400):
        x = rng.normal(size=(20, 3))
        y = x @ np.array([1, 2, 3]) + rng.normal(size=20)
        low, high = regress(y, x, np.arange(20)).coefficients[2].ci95
        inside += low <= 2 <= high
    assert 0.92 < inside / 400 < 0.98


def test_runs_of_one_seed_count_as_one_in_the_interval():
    # six copies of each run: as if there were six times the data, unless clustered by seed
    rng = np.random.default_rng(9)
    x = rng.normal(size=(20, 3))
    y = x @ np.array([1.0, 2, 3]) + rng.normal(size=20)
    once, seeds = regress(y, x, np.arange(20)), np.tile(np.arange(20), 6)
    copied = regress(np.tile(y, 6), np.tile(x, (6, 1)), seeds)
    naive = regress(np.tile(y, 6), np.tile(x, (6, 1)), np.arange(120))
    widths = [np.diff(found.coefficients[1].ci95)[0] for found in (once, copied, naive)]
    assert copied.intervals == "clustered by seed"
    assert 0.6 < widths[1] / widths[0] < 1.7
    assert widths[2] / widths[0] < 0.45


def test_clustered_covariance_is_the_sandwich_written_out():
    rng = np.random.default_rng(2)
    x, y, seeds = rng.normal(size=(12, 1)), rng.normal(size=12), np.repeat(np.arange(4), 3)
    design = np.column_stack((np.ones(12), x))
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    meat = np.zeros((2, 2))
    for seed in range(4):
        score = design[seeds == seed].T @ left[seeds == seed]
        meat += np.outer(score, score)
    bread = np.linalg.inv(design.T @ design)
    error = np.sqrt((4 / 3 * 11 / 10 * bread @ meat @ bread)[1, 1])
    slope = regress(y, x, seeds, ["x"]).coefficients[1]
    half = stats.t.ppf(0.975, 3) * error
    assert slope.ci95 == pytest.approx((slope.value - half, slope.value + half))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda y, x: (y[:4], x[:4]), "4 seeds are too few for 4 coefficients; 5 would do"),
        (lambda y, x: (y, x * [1, 0, 1] + [0, 4, 0]), "offered_load is the same in all runs"),
        (lambda y, x: (y * 0 + 3, x), "mean_jct_s is the same in all runs"),
        (lambda y, x: (y, x[:, [0, 1, 0]]), "depend on one another linearly"),
        (lambda y, x: (y, x * [1, np.nan, 1]), "offered_load is not a number in every run"),
    ],
)
def test_an_impossible_fit_is_explained_in_one_sentence(change, said):
    y, x = change(*line())
    found = regress(y, x, np.arange(len(y)))
    assert said in found.problem
    assert (found.r2, found.coefficients, found.n) == (None, [], len(y))


def test_five_seeds_of_a_line_are_enough():
    y, x = line(5)
    assert regress(y, x, np.arange(5)).problem is None


def test_all_runs_and_each_policy_have_their_own_fit():
    y, x = line(14)
    figures = {name: x[:, i].reshape(2, 7) for i, name in enumerate(REGRESSORS)}
    figures["mean_jct_s"] = np.add(y.reshape(2, 7), [[0], [100]])
    found = regressions(figures, ["a", "b"], range(30, 37))
    seeds = [30, 31, 32, 33, 34, 35, 36] * 2
    assert found.pooled == regress(figures["mean_jct_s"].ravel(), x, np.array(seeds))
    assert found.pooled.intervals == "clustered by seed"
    constants = [found.by_policy[name].coefficients[0].value for name in ("a", "b")]
    assert constants == pytest.approx([10, 110])
    assert found.pooled.r2 < 0.5
