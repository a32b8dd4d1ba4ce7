"""Estimators by user: statistics by hand, fallbacks, GPU models, files."""

import numpy as np
import pytest

from adlro.errors import TraceError
from adlro.estimates import job_table
from adlro.estimates.by_user import ByUser
from adlro.estimates.by_user_kernel import LAST_TWO, MEDIAN, USER_MEAN
from adlro.estimates.estimator import DEFAULTS, Settings
from adlro.estimates.last_two import LastTwo
from adlro.estimates.request import Request
from adlro.estimates.running_median_kernel import BINS_PER_LOG
from adlro.estimates.user_mean import UserMean
from tests.histories import history
from tests.unit.estimates.test_job_table import JOBS

NAN = np.nan


def statistics(folder, rows):
    return ByUser(DEFAULTS).statistics(job_table.table_of(history(folder, rows)))


def test_the_last_two_and_the_mean_are_those_of_the_user_that_had_ended(tmp_path):
    found = statistics(tmp_path, JOBS)
    # ann: at d only a (100 s) had ended; at e a, b and d, the last two 400 and 370; at f also e.
    expected = [NAN, NAN, NAN, 100, 385, (370 + 1) / 2, NAN]
    np.testing.assert_allclose(np.exp(found[:, LAST_TWO]), expected)
    mean = [NAN, NAN, NAN, 100, np.cbrt(100 * 400 * 370), (100 * 400 * 370 * 1) ** 0.25, NAN]
    np.testing.assert_allclose(np.exp(found[:, USER_MEAN]), mean)


def test_jobs_without_a_user_are_those_of_one_user(tmp_path):
    rows = "id,submit_time,run_s,user\na,0,10,\nb,1,90,ann\nc,200,5,\n"
    found = statistics(tmp_path, rows)
    np.testing.assert_allclose(np.exp(found[:, LAST_TWO]), [NAN, NAN, 10])


def test_the_median_is_that_of_all_that_had_ended_to_a_bin(tmp_path):
    found = statistics(tmp_path, JOBS)
    assert np.isnan(found[:3, MEDIAN]).all()
    # At e: 100, 200, 370, 400 have ended. Half of them are done where the bin of 200 ends.
    np.testing.assert_allclose(found[4, MEDIAN], np.log(200), atol=1 / BINS_PER_LOG)
    np.testing.assert_allclose(found[3, MEDIAN], np.log(100), atol=1 / BINS_PER_LOG)


def test_without_a_job_of_the_user_it_is_the_request_and_without_one_the_median(tmp_path):
    rows = "id,submit_time,run_s,user,requested_s\n" + "".join(
        f"{name},{submit},{run},{user},{asked}\n"
        for name, submit, run, user, asked in (
            ("a", 0, 7, "ann", ""), ("b", 100, 5, "ann", 60), ("c", 200, 1, "bob", 60),
            ("d", 201, 1, "cat", ""), ("e", 202, 1, "dan", 0),
        )
    )  # fmt: skip
    jobs = job_table.table_of(history(tmp_path, rows))
    own = LastTwo(DEFAULTS).follow(jobs)
    np.testing.assert_allclose(
        own.seconds[:4, 0], [NAN, 7, 60, 5], rtol=0.05
    )  # 1, 5 and 7 s have ended
    assert own.confidence[0] == 0  # no estimate at all
    assert ((own.confidence[1:] > 0.1) & (own.confidence[1:] < 0.6)).all()  # hardly anything known
    asked = Request(DEFAULTS).follow(jobs).seconds[:, 0]
    np.testing.assert_allclose(asked, [NAN, 60, 60, 5, 1], rtol=0.05)
    assert asked[1] == 60  # to the bit


def test_run_times_are_moved_between_gpu_models_by_the_assumed_speeds(tmp_path):
    jobs = job_table.table_of(history(tmp_path, "id,submit_time,run_s,user\na,0,80,x\nb,99,1,x\n"))
    jobs = jobs._replace(model=np.array([1, -1]), prior=np.log([[2.0, 0.5]]))
    found = UserMean(Settings(("A100", "T4"))).follow(jobs)
    assert found.per_model
    np.testing.assert_allclose(found.seconds[1], [20, 80])  # 80 s at half the speed are 40


def test_a_file_of_anything_else_is_refused():
    with pytest.raises(TraceError, match=r"m\.json: does not hold run times of users"):
        LastTwo.unpack(b'{"users": 3}', "m.json")
