"""Estimates of `memory` in a scenario without a history."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.estimates import past
from adlro.seeds import WorkloadStream
from adlro.workloads import draw
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare


def small(**changes):
    return prepare(adjusted(find_scenario("paper16"), estimates="memory", jobs=60, **changes))


def test_a_scenario_has_the_same_estimates_each_time_and_they_are_better_than_requests():
    setting = small()
    workload, again = generate(setting, 3), generate(setting, 3)
    np.testing.assert_array_equal(workload.est, again.est)
    assert workload.est.shape == workload.seconds.shape
    off = np.abs(np.log(workload.est / workload.seconds)).mean()
    asked = generate(prepare(adjusted(setting.scenario, estimates="request")), 3)
    np.testing.assert_array_equal(asked.seconds, workload.seconds)  # the truth is as ever
    assert off < 0.6 * np.abs(np.log(asked.est / asked.seconds)).mean()
    assert off > 0.1  # and no oracle


def test_no_seed_draws_the_jobs_of_the_past():
    drawn = draw.rng_of(None, WorkloadStream.DEMANDS).random(4)
    for seed in (0, 1, 5, 6, 2**32, 6 * 2**32, 2**63 - 1):
        for purpose in range(7):
            assert not (drawn == draw.rng_of(seed, purpose).random(4)).any()


@pytest.mark.parametrize("name", ["rough64", "hetero64", "gavel16"])
def test_other_scenarios_run_with_it(name):
    wanted = adjusted(find_scenario(name), estimates="memory", jobs=20)
    workload = generate(prepare(wanted), 0)
    assert np.isfinite(workload.est).all()
    assert (workload.est > 0).all()


def test_an_estimate_is_never_above_the_limit_that_ends_a_job():
    workload = generate(small(limit="kill"), 0)
    assert (workload.est <= workload.jobs["limit"][:, None]).all()


def test_a_job_that_its_limit_ends_is_learned_as_it_ended(monkeypatch):
    seen, predict_arrivals = [], past.predict_arrivals

    def spy(before, runs, speeds, probability):
        seen.append(runs)
        return predict_arrivals(before, runs, speeds, probability)

    monkeypatch.setattr(past, "predict_arrivals", spy)
    workload = generate(small(limit="kill"), 0)
    (runs,) = seen
    true = workload.seconds[np.arange(len(runs.jobs)), runs.model]
    assert (true > runs.jobs["limit"]).any()  # slow GPUs are slower than users reckon with
    np.testing.assert_array_equal(runs.seconds, np.minimum(true, runs.jobs["limit"]))
