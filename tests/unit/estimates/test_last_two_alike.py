"""The estimator `last-two-alike`: the last two by hand, its fallbacks, its file."""

import numpy as np
import pytest

from adlro.errors import TraceError
from adlro.estimates import job_table
from adlro.estimates.estimator import DEFAULTS, ends_only
from adlro.estimates.last_two import LastTwo
from adlro.estimates.last_two_alike import LastTwoAlike
from tests.histories import history

HEAD = "id,submit_time,run_s,user,requested_s,gpus\n"


def table(folder, *jobs):
    """Jobs (run_s, user, requested_s, gpus), one after the other."""
    rows = (f"j{i},{1000 * i},{','.join(str(x) for x in job)}\n" for i, job in enumerate(jobs))
    return job_table.table_of(history(folder, HEAD + "".join(rows)))


def test_only_jobs_of_the_same_user_request_and_size_count(tmp_path):
    jobs = table(
        tmp_path,
        (10, "ann", 60, 1), (30, "ann", 60, 1), (50, "ann", 60, 1),
        (700, "bob", 60, 1), (800, "ann", 90, 1), (900, "ann", 60, 2),
        (1, "ann", 60, 1), (1, "bob", 60, 1), (1, "ann", 90, 1), (1, "ann", 60, 2),
    )  # fmt: skip
    found = LastTwoAlike(DEFAULTS).follow(jobs)
    np.testing.assert_allclose(found.seconds[6:, 0], [40, 700, 800, 900])


def test_without_an_alike_job_it_is_the_user_then_the_request_then_the_median(tmp_path):
    jobs = table(
        tmp_path,
        (10, "ann", 60, 1), (30, "ann", 90, 1), (1, "ann", 77, 1), (1, "cat", 60, 1),
        (1, "dan", "", 1),
    )  # fmt: skip
    found, user = LastTwoAlike(DEFAULTS).follow(jobs), LastTwo(DEFAULTS).follow(jobs)
    np.testing.assert_allclose(found.seconds[2:4, 0], [20, 60])
    np.testing.assert_array_equal(found.seconds[1:], user.seconds[1:])
    assert found.seconds[4, 0] == pytest.approx(1, rel=0.05)  # 1, 1, 10 and 30 s have ended


def test_jobs_without_a_user_are_alike_by_request_and_size(tmp_path):
    jobs = table(tmp_path, (10, "", 60, 1), (90, "", 80, 1), (1, "", 60, 1), (1, "", 80, 1))
    found = LastTwoAlike(DEFAULTS).follow(jobs).seconds[:, 0]
    np.testing.assert_allclose(found[2:], [10, 90])


def test_an_explanation_names_the_fields_that_agree(tmp_path):
    jobs = table(tmp_path, (10, "ann", 60, 1), (1, "ann", 60, 1), (1, "ann", 90, 1), (1, "b", 5, 1))
    learned = LastTwoAlike(DEFAULTS)
    learned.learn(ends_only(jobs))
    assert learned.explain(jobs, 1).matched == "same user, request, shape"
    fresh = LastTwoAlike(DEFAULTS)
    fresh.learn(table(tmp_path, (10, "ann", 60, 1)))
    assert fresh.explain(jobs, 2).matched == "same user"
    assert fresh.explain(jobs, 3).matched == ""
    assert fresh.explain(jobs, 3).seconds == 5


@pytest.mark.parametrize("data", [b'{"users": 3}', b'{"alike": "{}", "user": "{}"}', b"\x00"])
def test_a_file_of_anything_else_is_refused(data):
    with pytest.raises(TraceError, match=r"m\.json: does not hold run times of"):
        LastTwoAlike.unpack(data, "m.json")
