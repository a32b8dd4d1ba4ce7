"""Errors of estimates, by hand."""

import numpy as np

from adlro.estimates.errors import coverage, errors, later_part, reliability
from tests.histories import history

NAN = np.nan


def test_errors_by_hand():
    log_s = np.log([100.0, 100.0, 100.0, 100.0, 100.0])
    estimate = np.log([100.0, 200.0, 25.0, NAN, 1e9])
    counted = np.array([True, True, True, True, False])
    found = errors(estimate, log_s, counted)
    # Off by 0, log 2 and log 4: the mean is log 2; two of three within 2x; one too short.
    assert found.jobs == 3
    np.testing.assert_allclose(found[1:], [np.log(2), 2 / 3, 1 / 3])
    assert errors(estimate, log_s, ~counted & False).jobs == 0


def test_rounding_makes_no_estimate_too_short():
    log_s = np.full(3, np.log(50.0))
    found = errors(np.log([50.0, 100.0, 50.0]) - 1e-15, log_s, np.ones(3, np.bool_))
    assert (found.under, found.within_2) == (0.0, 1.0)


def test_coverage_by_hand():
    low, high = np.array([1.0, 1.0, 1.0, NAN, 1.0]), np.array([2.0, 2.0, 2.0, NAN, 2.0])
    log_s = np.array([1.0, 2.5, NAN, 1.5, 9.0])
    counted = np.array([True, True, True, True, False])
    assert coverage(low, high, log_s, counted) == 0.5  # of two: at its end, and above
    assert np.isnan(coverage(low, high, log_s, ~counted & False))


def test_a_reliability_table_by_hand():
    confidence = np.array([0.31, 0.39, 0.95, 1.0, 0.5, 0.5, 0.5])
    off = np.array([0.0, 2.0, 0.5, -0.5, NAN, 0.0, 0.0])
    counted = np.array([True] * 5 + [False, True])
    rows = reliability(confidence, 5.0 + off, np.array([5.0] * 6 + [NAN]), counted)
    assert [row[:3] for row in rows] == [(0.3, 0.4, 2), (0.9, 1.0, 2)]
    np.testing.assert_allclose([row[3:] for row in rows], [(0.35, 0.5), (0.975, 1.0)])


def test_the_later_part_goes_by_submission_and_leaves_out_what_has_none(tmp_path):
    rows = "id,submit_time,run_s\na,40,1\nb,10,1\nc,0,1\nd,20,1\ne,30,1\n"
    found = history(tmp_path, rows)
    found.submit_s[2] = NAN
    assert later_part(found, 0.5).tolist() == [True, False, False, False, True]
    assert later_part(found, 0.0).tolist() == [True, True, False, True, True]
