"""Estimates by memory in a scenario: with a past of its own, and on a history."""

import numpy as np
import pytest
from adlro.workloads.remembered import Ran

from adlro.config.files import adjusted, find_scenario
from adlro.errors import ConfigError
from adlro.model.state import JOB
from adlro.workloads import remembered
from adlro.workloads.generate import generate, with_estimates
from adlro.workloads.setting import prepare
from tests.hidden import assert_hides_the_truth
from tests.unit.workloads.test_replay import TYPES, recorded, scenario

DAY = 86_400.0


def small(**changes):
    return prepare(adjusted(find_scenario("paper16"), estimates="memory", jobs=60, **changes))


def test_a_model_is_drawn_by_the_shares_among_pools_where_the_job_may_run():
    shares = np.array([[0.25, 0.75, 0.0]] * 4 + [[1.0, 0.0, 0.0]])
    allowed = np.array([[True] * 3, [True] * 3, [True, False, True], [False, True, True],
                        [False, True, True]])  # fmt: skip
    u = np.array([0.24, 0.26, 0.99, 0.0, 0.6])
    # 1 and 2: by the shares. 3: only pool 0 is left of them. 4: pool 1. 5: no share, pools 1 and 2.
    models = remembered.ran_on(shares, allowed, np.array([10, 11, 12]), u)
    assert models.tolist() == [10, 11, 10, 11, 12]


def ran(arrival, seconds, user=0, model=0):
    jobs = np.zeros(len(arrival), JOB)
    jobs["arrival"], jobs["gpus"], jobs["requested"] = arrival, 1, 7200.0
    jobs["user"] = user
    return Ran(jobs, np.full(len(arrival), model), np.array(seconds, np.float64))


def test_the_past_ends_at_time_0_on_a_whole_day():
    speeds = np.array([[1.0, 0.5]])
    # Came at 10 s, 100 s and half a day before the day is over; the last ends after time 0.
    before = remembered.past(ran([10.0, 100.0, DAY / 2], [60, 50, DAY]), speeds)
    assert before.memory.head[0]["learned"] == 2
    assert before.memory.head[0]["now"] == 100 + 50 - DAY
    # All that ended ran on the first model; the second is half as fast.
    found = remembered.of_jobs(before, ran([0.0], [1.0]), speeds)
    assert found.shape == (1, 2)
    np.testing.assert_allclose(found[0, 0], 50)  # the later one weighs more
    np.testing.assert_allclose(found[0, 1], 2 * found[0, 0])


def test_seconds_on_a_slow_model_are_learned_as_those_on_the_reference():
    speeds = np.array([[1.0, 0.5]])
    before = remembered.past(ran([10.0, 20.0], [60, 60], model=1), speeds)
    np.testing.assert_allclose(remembered.of_jobs(before, ran([0.0], [1.0]), speeds), [[30, 60]])


def chosen(log_s, user):
    """The weighing that a past of such run times chooses; a job every 100 s."""
    arrival = np.arange(len(log_s)) * 100.0
    return remembered.past(ran(arrival, np.exp(log_s), user), np.ones((1, 1))).weighing


def test_the_past_says_how_sharply_jobs_are_told_apart_and_how_soon_they_fade():
    rng = np.random.default_rng(0)
    user = rng.integers(0, 40, 1500)
    blunt = chosen(rng.normal(4, 1, 1500), user)  # users tell nothing, and nothing changes
    assert blunt.fading == 0
    assert blunt.nats < 1
    # Each user has a length of its own, and all drift together.
    drift = np.cumsum(rng.normal(0, 0.1, 1500))
    sharp = chosen(4 + user / 20 + drift - drift.mean(), user)
    assert sharp == remembered.CHOICES[0]


def test_a_past_too_short_to_choose_keeps_the_weighing_of_histories():
    before = remembered.past(ran([10.0], [60]), np.ones((1, 1)))
    assert before.weighing == remembered.CHOICES[0]


def test_of_jobs_leaves_the_past_as_it_was_and_learns_on_the_way():
    speeds = np.ones((1, 1))
    before = remembered.past(ran([10.0], [60]), speeds)
    first = remembered.of_jobs(before, ran([0.0, 5000.0], [900, 900]), speeds)
    again = remembered.of_jobs(before, ran([0.0, 5000.0], [900, 900]), speeds)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first[0], 60)
    assert first[1, 0] > 60  # the job of 900 s has ended by then
    assert before.memory.head[0]["learned"] == 1


@pytest.mark.parametrize("seed", range(3))
def test_run_times_that_are_not_over_leave_the_estimates_alone(seed):
    rng = np.random.default_rng(seed)
    speeds = np.ones((1, 1))
    arrival, seconds = np.sort(rng.random(200) * 9000), np.exp(rng.normal(6, 1, 200))
    user = rng.integers(0, 4, 200)
    before = remembered.past(ran(arrival, seconds, user), speeds)
    one = remembered.of_jobs(before, ran(arrival, seconds, user), speeds)
    now = arrival[120]
    later = arrival + seconds > now
    changed = np.where(later, seconds * 50, seconds)
    two = remembered.of_jobs(before, ran(arrival, changed, user), speeds)
    np.testing.assert_array_equal(two[:121], one[:121])
    assert (two[121:] != one[121:]).any()


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
    from adlro.workloads import synthetic

    past = synthetic._rng(None, synthetic._DEMANDS).random(4)
    for seed in (0, 1, 5, 6, 2**32, 6 * 2**32, 2**63 - 1):
        for purpose in range(7):
            assert not (past == synthetic._rng(seed, purpose).random(4)).any()


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
    seen, of_jobs = [], remembered.of_jobs

    def spy(before, ran, speeds):
        seen.append(ran)
        return of_jobs(before, ran, speeds)

    monkeypatch.setattr(remembered, "of_jobs", spy)
    workload = generate(small(limit="kill"), 0)
    (ran,) = seen
    true = workload.seconds[np.arange(len(ran.jobs)), ran.model]
    assert (true > ran.jobs["limit"]).any()  # slow GPUs are slower than users reckon with
    np.testing.assert_array_equal(ran.seconds, np.minimum(true, ran.jobs["limit"]))


# ann's jobs take 100 s, bob's 1,000 s; one every 2,000 s; the last two are ann's and bob's.
ROWS = "id,submit_time,run_s,gpus,user\n" + "".join(
    f"{i},{1000 + 2000 * i},{1000 if i % 2 else 100},1,{'bob' if i % 2 else 'ann'}\n"
    for i in range(12)
)


def test_the_jobs_of_a_history_are_foreseen_from_those_before_the_window_too(tmp_path):
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
    for other in (small(), recorded(scenario(tmp_path, rows=ROWS, jobs=12))):
        with pytest.raises(ConfigError, match="handed in only for a history"):
            with_estimates(other, np.ones(12))


def test_the_first_job_of_a_history_is_foreseen_as_its_request(tmp_path):
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
