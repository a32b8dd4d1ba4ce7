"""Estimates of `memory` on a history."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.errors import ConfigError
from adlro.workloads.generate import generate, with_estimates
from adlro.workloads.setting import prepare
from tests.hidden import assert_hides_the_truth
from tests.unit.workloads.test_replay import TYPES, recorded, scenario

# ann's jobs take 100 s, bob's 1,000 s; one every 2,000 s; the last two are ann's and bob's.
ROWS = "id,submit_time,run_s,gpus,user\n" + "".join(
    f"{i},{1000 + 2000 * i},{1000 if i % 2 else 100},1,{'bob' if i % 2 else 'ann'}\n"
    for i in range(12)
)


def test_the_jobs_of_a_history_are_predicted_from_those_before_the_window_too(tmp_path):
    more = 'estimates = "memory"'
    whole = recorded(scenario(tmp_path, more=more, rows=ROWS, jobs=12))
    np.testing.assert_allclose(generate(whole, 0).est[-2:], [[100, 100], [1000, 1000]], rtol=1e-6)
    window = "from_s = 20000\n"
    part = recorded(scenario(tmp_path, window, more=more, rows=ROWS, jobs=2))
    np.testing.assert_array_equal(generate(part, 0).est, generate(whole, 0).est[-2:])


def test_a_seed_of_a_history_has_the_estimates_of_its_own_jobs(tmp_path):
    setting = recorded(scenario(tmp_path, more='estimates = "memory"', rows=ROWS, jobs=4))
    np.testing.assert_array_equal(generate(setting, 2).est, setting.played.est[8:12])
    assert_hides_the_truth(setting)


def test_estimates_of_another_origin_can_be_handed_in(tmp_path):
    setting = recorded(
        scenario(tmp_path, more='estimates = "memory"', rows=ROWS, jobs=12, types=TYPES)
    )
    handed = with_estimates(setting, np.arange(1.0, 13.0))
    workload = generate(handed, 0)
    np.testing.assert_allclose(workload.est[:, 0], np.arange(1, 13))  # a V100 has speed 1
    by_type = np.array([2.0, 4.0])[workload.jobs["type"]]
    np.testing.assert_allclose(workload.est[:, 1], np.arange(1, 13) * by_type)
    np.testing.assert_array_equal(workload.seconds, generate(setting, 0).seconds)
    for other in (
        prepare(adjusted(find_scenario("paper16"), estimates="memory", jobs=60)),
        recorded(scenario(tmp_path, more='estimates = "oracle"', rows=ROWS, jobs=12)),
    ):
        with pytest.raises(ConfigError, match="handed in only for a history"):
            with_estimates(other, np.ones(12))


def test_the_first_job_of_a_history_is_predicted_as_its_request(tmp_path):
    setting = recorded(scenario(tmp_path, more='estimates = "memory"', rows=ROWS, jobs=12))
    np.testing.assert_array_equal(generate(setting, 0).est[0], [1200, 1200])  # the longest run


def test_speeds_that_a_history_shows_are_learned(tmp_path):
    # The same job takes 100 s on a V100 and 300 s on a T4, where 200 s were assumed.
    rows = "id,submit_time,run_s,gpus,user,gpu_model,name\n" + "".join(
        f"{i},{1000 + 500 * i},{300 if i % 2 else 100},1,ann,{'T4' if i % 2 else 'V100'},ml\n"
        for i in range(60)
    )
    setting = recorded(
        scenario(tmp_path, more='estimates = "memory"', rows=rows, jobs=60, types=TYPES)
    )
    np.testing.assert_allclose(generate(setting, 0).est[-1], [100, 300], rtol=0.02)


def test_speeds_that_a_history_does_not_show_are_those_assumed(tmp_path):
    rows = ROWS.replace(",user\n", ",user,name\n").replace("ann\n", "ann,ml\n")
    rows = rows.replace("bob\n", "bob,other\n")
    setting = recorded(
        scenario(tmp_path, more='estimates = "memory"', rows=rows, jobs=12, types=TYPES)
    )
    est = generate(setting, 0).est
    np.testing.assert_allclose(est[-2:], [[100, 200], [1000, 4000]], rtol=1e-6)
