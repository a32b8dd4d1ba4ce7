"""Ratios to the fixed rivals, pooled over windows."""

import numpy as np
import pytest

from adlro.evaluate.pooled import pool, pooled_against_rivals


def test_the_pooled_figure_is_the_geometric_mean_of_the_ratios():
    found = pool(np.log(np.array([0.5, 2.0, 1.0])))
    assert found.mean_pct == pytest.approx(0.0, abs=1e-12)
    assert found.worst_pct == pytest.approx(100.0)
    assert found.windows == 3
    assert not found.is_settled


def test_a_window_twice_as_long_counts_no_more_than_another():
    ours = np.array([[90.0, 9_000.0], [100.0, 10_000.0]])
    found = pooled_against_rivals(["mine", "min-min"], ours)[0]["min-min"]
    assert found.mean_pct == pytest.approx(-10.0)
    assert found.is_settled


def test_the_interval_is_students_t_of_the_logs():
    found = pool(np.array([0.1, 0.2, 0.3]))
    half = 4.302653 * 0.1 / np.sqrt(3)
    assert np.log1p(np.array(found.ci95) / 100) == pytest.approx([0.2 - half, 0.2 + half], abs=1e-6)


def test_one_window_has_no_interval_and_settles_nothing():
    found = pool(np.array([0.2]))
    assert found.ci95 is None
    assert not found.is_settled


def test_only_the_rivals_that_were_fixed_beforehand_are_pooled_against():
    jct = np.array([[1.0, 2.0], [2.0, 2.0], [3.0, 1.0]])
    found = pooled_against_rivals(["fcfs", "drain-argmin", "sjf"], jct)
    assert [list(row) for row in found] == [["drain-argmin"], [], ["drain-argmin"]]


def test_without_windows_nothing_is_pooled():
    assert pooled_against_rivals(["fcfs", "min-min"], np.zeros((2, 0))) == [{}, {}]


def test_intervals_cover_the_truth_in_about_95_percent_of_samples():
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(2_000):
        low, high = pool(rng.normal(0.05, 0.1, 8)).ci95
        hits += low <= 100 * np.expm1(0.05) <= high
    assert 0.93 <= hits / 2_000 <= 0.97
