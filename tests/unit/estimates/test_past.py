"""The generated past of a scenario: drawn models, whole days, the weighing of `memory`."""

import numpy as np
import pytest

from adlro.estimates.memory import CHOICES, Memory
from adlro.estimates.past import Runs, draw_models, learn_past, predict_arrivals
from adlro.model.state import JOB

DAY = 86_400.0


def test_a_model_is_drawn_by_the_shares_among_pools_where_the_job_may_run():
    shares = np.array([[0.25, 0.75, 0.0]] * 4 + [[1.0, 0.0, 0.0]])
    allowed = np.array([[True] * 3, [True] * 3, [True, False, True], [False, True, True],
                        [False, True, True]])  # fmt: skip
    u = np.array([0.24, 0.26, 0.99, 0.0, 0.6])
    # 1 and 2: by the shares. 3: only pool 0 is left of them. 4: pool 1. 5: no share, pools 1 and 2.
    models = draw_models(shares, allowed, np.array([10, 11, 12]), u)
    assert models.tolist() == [10, 11, 10, 11, 12]


def ran(arrival, seconds, user=0, model=0):
    jobs = np.zeros(len(arrival), JOB)
    jobs["arrival"], jobs["gpus"], jobs["requested"] = arrival, 1, 7200.0
    jobs["user"] = user
    return Runs(jobs, np.full(len(arrival), model), np.array(seconds, np.float64))


def learned(runs, speeds):
    found = Memory()
    learn_past(found, runs, speeds)
    return found


def test_the_past_ends_at_time_0_on_a_whole_day():
    speeds = np.array([[1.0, 0.5]])
    # Came at 10 s, 100 s and half a day before the day is over; the last ends after time 0.
    before = learned(ran([10.0, 100.0, DAY / 2], [60, 50, DAY]), speeds)
    assert before.state.memory.head[0]["learned"] == 2
    assert before.state.memory.head[0]["now"] == 100 + 50 - DAY
    # All that ended ran on the first model; the second is half as fast.
    found = predict_arrivals(before, ran([0.0], [1.0]), speeds)
    assert found.shape == (1, 2)
    np.testing.assert_allclose(found[0, 0], 50)  # the later one weighs more
    np.testing.assert_allclose(found[0, 1], 2 * found[0, 0])


def test_seconds_on_a_slow_model_are_learned_as_those_on_the_reference():
    speeds = np.array([[1.0, 0.5]])
    before = learned(ran([10.0, 20.0], [60, 60], model=1), speeds)
    np.testing.assert_allclose(predict_arrivals(before, ran([0.0], [1.0]), speeds), [[30, 60]])


def chosen(log_s, user):
    """The weighing that a past of such run times chooses; a job every 100 s."""
    arrival = np.arange(len(log_s)) * 100.0
    return learned(ran(arrival, np.exp(log_s), user), np.ones((1, 1))).state.weighing


def test_the_past_says_how_sharply_jobs_are_told_apart_and_how_soon_they_fade():
    rng = np.random.default_rng(0)
    user = rng.integers(0, 40, 1500)
    blunt = chosen(rng.normal(4, 1, 1500), user)  # users tell nothing, and nothing changes
    assert blunt.fading == 0
    assert blunt.nats < 1
    # Each user has a length of its own, and all drift together.
    drift = np.cumsum(rng.normal(0, 0.1, 1500))
    sharp = chosen(4 + user / 20 + drift - drift.mean(), user)
    assert sharp == CHOICES[0]


def test_a_past_too_short_to_choose_keeps_the_weighing_of_histories():
    before = learned(ran([10.0], [60]), np.ones((1, 1)))
    assert before.state.weighing == CHOICES[0]


def test_of_jobs_leaves_the_past_as_it_was_and_learns_on_the_way():
    speeds = np.ones((1, 1))
    before = learned(ran([10.0], [60]), speeds)
    first = predict_arrivals(before, ran([0.0, 5000.0], [900, 900]), speeds)
    again = predict_arrivals(before, ran([0.0, 5000.0], [900, 900]), speeds)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first[0], 60)
    assert first[1, 0] > 60  # the job of 900 s has ended by then
    assert before.state.memory.head[0]["learned"] == 1


@pytest.mark.parametrize("seed", range(3))
def test_run_times_that_are_not_over_leave_the_estimates_alone(seed):
    rng = np.random.default_rng(seed)
    speeds = np.ones((1, 1))
    arrival, seconds = np.sort(rng.random(200) * 9000), np.exp(rng.normal(6, 1, 200))
    user = rng.integers(0, 4, 200)
    before = learned(ran(arrival, seconds, user), speeds)
    one = predict_arrivals(before, ran(arrival, seconds, user), speeds)
    now = arrival[120]
    later = arrival + seconds > now
    changed = np.where(later, seconds * 50, seconds)
    two = predict_arrivals(before, ran(arrival, changed, user), speeds)
    np.testing.assert_array_equal(two[:121], one[:121])
    assert (two[121:] != one[121:]).any()
