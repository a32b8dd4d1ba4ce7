"""The order of ends and submissions, by hand."""

import numpy as np

from adlro.estimates import job_table
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


def test_an_end_is_as_recorded_else_start_or_submission_plus_run(tmp_path):
    found = history(tmp_path, JOBS)
    # As recorded of a, d and e; b 20 + 400, c 50 + 200, f never, g 520 + 50.
    np.testing.assert_array_equal(job_table.end_times(found), [110, 420, 250, 500, 500, NAN, 570])


def test_ends_and_submissions_come_in_the_order_of_time(tmp_path):
    events = job_table.event_order_of(history(tmp_path, JOBS))
    # a, b, c come; a ends at 110; d comes at 120; c 250, b 420; d ends and e comes at 500; e ends.
    assert events.order.tolist() == [-1, -2, -3, 0, -4, 2, 1, 3, -5, 4, -6, -7, 6]
    assert events.time[[3, 7, 8]].tolist() == [110, 500, 500]


def test_lost_runs_are_predicted_but_teach_nothing(tmp_path):
    rows = "id,submit_time,end_s,run_s,lost\na,0,100,100,1\na,100,300,200,\n"
    events = job_table.event_order_of(history(tmp_path, rows))
    assert events.order.tolist() == [-1, -2, 1]
    assert np.isnan(events.log_s[0])


def test_a_job_that_ends_at_once_is_not_known_at_its_own_submission(tmp_path):
    events = job_table.event_order_of(history(tmp_path, JOBS))
    order = events.order.tolist()
    assert order.index(4) == order.index(-5) + 1
    assert events.log_s[4] == 0.0  # 0 s count as 1 s
