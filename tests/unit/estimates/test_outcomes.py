"""What is known when: by hand."""

import numpy as np

from adlro.estimates import outcomes
from tests.histories import history

NAN = np.nan
# Submitted, started, ended, ran, user. d ends at the very moment when e comes.
JOBS = """id,submit_time,start_s,end_s,run_s,user
a,0,10,110,100,ann
b,20,,,400,ann
c,30,50,,200,bob
d,120,130,500,370,ann
e,500,500,500,0,ann
f,510,,,,ann
g,520,,,50,
"""


def followed(folder):
    found = history(folder, JOBS)
    line = outcomes.timeline_of(found)
    return found, line, outcomes.simple_of(found, line)


def test_an_end_is_as_recorded_else_start_or_submission_plus_run(tmp_path):
    found = history(tmp_path, JOBS)
    # As recorded of a, d and e; b 20 + 400, c 50 + 200, f never, g 520 + 50.
    np.testing.assert_array_equal(outcomes.ends(found), [110, 420, 250, 500, 500, NAN, 570])


def test_ends_and_submissions_come_in_the_order_of_time(tmp_path):
    _, line, _ = followed(tmp_path)
    # a, b, c come; a ends at 110; d comes at 120; c 250, b 420; d ends and e comes at 500; e ends.
    assert line.order.tolist() == [-1, -2, -3, 0, -4, 2, 1, 3, -5, 4, -6, -7, 6]
    assert line.time[[3, 7, 8]].tolist() == [110, 500, 500]


def test_a_job_that_ends_at_once_is_not_known_at_its_own_submission(tmp_path):
    _, line, _ = followed(tmp_path)
    order = line.order.tolist()
    assert order.index(4) == order.index(-5) + 1
    assert line.log_s[4] == 0.0  # 0 s count as 1 s


def test_the_last_two_and_the_mean_are_those_of_the_user_that_had_ended(tmp_path):
    _, _, simple = followed(tmp_path)
    # ann: at d only a (100 s) had ended; at e a, b and d, the last two 400 and 370; at f also e.
    expected = [NAN, NAN, NAN, 100, 385, (370 + 1) / 2, NAN]
    np.testing.assert_allclose(np.exp(simple.last_two), expected)
    mean = [NAN, NAN, NAN, 100, np.cbrt(100 * 400 * 370), (100 * 400 * 370 * 1) ** 0.25, NAN]
    np.testing.assert_allclose(np.exp(simple.user_mean), mean)


def test_jobs_without_a_user_are_those_of_one_user(tmp_path):
    rows = "id,submit_time,run_s,user\na,0,10,\nb,1,90,ann\nc,200,5,\n"
    found = history(tmp_path, rows)
    simple = outcomes.simple_of(found, outcomes.timeline_of(found))
    np.testing.assert_allclose(np.exp(simple.last_two), [NAN, NAN, 10])


def test_the_median_is_that_of_all_that_had_ended_to_a_bin(tmp_path):
    _, _, simple = followed(tmp_path)
    assert np.isnan(simple.median[:3]).all()
    # At e: 100, 200, 370, 400 have ended. Half of them are done where the bin of 200 ends.
    np.testing.assert_allclose(simple.median[4], np.log(200), atol=1 / outcomes.BINS_PER_LOG)
    np.testing.assert_allclose(simple.median[3], np.log(100), atol=1 / outcomes.BINS_PER_LOG)


def test_the_histogram_takes_run_times_of_any_length():
    histogram = np.zeros(outcomes.BINS)
    for log_s in (-5.0, 100.0, 100.0):
        outcomes.count_in(histogram, log_s)
    assert histogram[0] == 1
    assert histogram[-1] == 2
    assert outcomes.median_of(histogram) > 23


def test_what_is_not_known_is_the_request_and_without_one_the_median():
    log = np.log
    estimate = np.array([log(5), NAN, NAN, NAN, NAN])
    asked = np.array([60.0, 60.0, NAN, 0.0, NAN])
    median = np.array([log(7), log(7), log(7), log(7), NAN])
    found = outcomes.filled(estimate, asked, median)
    np.testing.assert_allclose(np.exp(found), [5, 60, 7, 7, NAN])


def test_errors_by_hand():
    log_s = np.log([100.0, 100.0, 100.0, 100.0, 100.0])
    line = outcomes.Timeline(log_s, np.zeros(0, np.int64), np.zeros(0))
    estimate = np.log([100.0, 200.0, 25.0, NAN, 1e9])
    counted = np.array([True, True, True, True, False])
    found = outcomes.errors(estimate, line, counted)
    # Off by 0, log 2 and log 4: the mean is log 2; two of three within 2x; one too short.
    assert found.jobs == 3
    np.testing.assert_allclose(found[1:], [np.log(2), 2 / 3, 1 / 3])
    assert outcomes.errors(estimate, line, ~counted & False).jobs == 0


def test_the_later_part_goes_by_submission_and_leaves_out_what_has_none(tmp_path):
    rows = "id,submit_time,run_s\na,40,1\nb,10,1\nc,0,1\nd,20,1\ne,30,1\n"
    found = history(tmp_path, rows)
    found.submit_s[2] = NAN
    assert outcomes.later_part(found, 0.5).tolist() == [True, False, False, False, True]
    assert outcomes.later_part(found, 0.0).tolist() == [True, True, False, True, True]
