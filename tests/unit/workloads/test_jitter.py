"""Repetitions of a workload with slightly changed estimates."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.workloads.generate import generate
from adlro.workloads.jitter import jittered
from adlro.workloads.setting import prepare

SETTING = prepare(adjusted(find_scenario("paper16"), jobs=400))
PLAIN = generate(SETTING, 3)


def factors(workload):
    return np.log(workload.est / PLAIN.est)


def test_each_job_has_one_factor_of_about_one_percent_on_all_models():
    found = factors(jittered(PLAIN, 0.01, 3, 0))
    assert found == pytest.approx(np.repeat(found[:, :1], found.shape[1], axis=1), abs=1e-12)
    assert found[:, 0].std() == pytest.approx(0.01, rel=0.15)
    assert abs(found[:, 0].mean()) < 0.002


def test_requested_times_move_with_the_estimates_and_nothing_else_does():
    moved = jittered(PLAIN, 0.01, 3, 0)
    asked = np.log(moved.jobs["requested"] / PLAIN.jobs["requested"])
    assert asked == pytest.approx(factors(moved)[:, 0], abs=1e-6)
    assert moved.seconds is PLAIN.seconds
    for name in set(PLAIN.jobs.dtype.names) - {"requested"}:
        assert np.array_equal(moved.jobs[name], PLAIN.jobs[name]), name


def test_repetitions_and_seeds_differ_and_the_same_repetition_is_the_same():
    first, again = (jittered(PLAIN, 0.01, 3, 0) for _ in range(2))
    assert first.est.tobytes() == again.est.tobytes()
    assert (jittered(PLAIN, 0.01, 3, 1).est != first.est).any()
    assert (jittered(PLAIN, 0.01, 4, 0).est != first.est).any()


def test_no_estimate_exceeds_the_time_limit_of_its_job():
    jobs = PLAIN.jobs.copy()
    jobs["limit"] = PLAIN.est[:, 0]
    capped = PLAIN._replace(jobs=jobs, est=np.minimum(PLAIN.est, jobs["limit"][:, None]))
    moved = jittered(capped, 0.5, 3, 0)
    assert (moved.est <= jobs["limit"][:, None]).all()
    assert (moved.est < capped.est).any()
