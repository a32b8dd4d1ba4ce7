"""Speeds between GPU models: by hand, by way of a third, by class."""

import math

import numpy as np
import pytest

from adlro.features.hypervectors.memory import Size
from adlro.features.hypervectors.speeds_kernel import learn_speeds
from tests.remembered import PLAIN, mind

MODELS = ("V100", "T4", "MI100")
SIZE = Size(slots=64, classes=2, half_jobs=math.inf)


def run(one, user, log_seconds, model, kind=-1, prior=None):
    """A job ends: compare it, then learn it. Returns how many it was compared with."""
    query = one.query(user, "x", kind=kind, prior=prior)
    place = one.models.index(model)
    pairs = learn_speeds(one.space, one.memory, query, PLAIN, one.work, log_seconds, place)
    one.learn(log_seconds, user, "x", model=model)
    return pairs


def test_one_pair_of_equal_jobs_moves_speeds_a_little():
    # The T4 took exp(1) times as long; against one job the weight is 1/2, that of the prior 3:
    # speed V = (3 * 0 + (speed T + 1) / 2) / 3.5, speed T = -speed V: 0.125 and -0.125.
    one = mind(SIZE, MODELS)
    assert run(one, "ada", 5.0, "V100") == 0
    assert run(one, "ada", 6.0, "T4") == 1
    assert one.memory.speeds[-1] == pytest.approx([0.125, -0.125, 0.0], abs=1e-4)
    got, _ = one.recall(one.query("lin", "y"), model="V100")
    assert 5.0 <= got["log_seconds"] <= 6.0


def test_many_pairs_give_the_ratio_and_what_the_prior_says_is_not_learned_again():
    one, told = mind(SIZE, MODELS), mind(SIZE, MODELS)
    for i in range(40):
        for model, seconds in (("V100", 5.0), ("T4", 6.0)):
            run(one, f"user {i}", seconds, model)
            run(told, f"user {i}", seconds, model, prior=[1.0, 0.0, 0.0])
    speeds = one.memory.speeds[-1]
    # 40 users, each a pair of weight 1/2, against a prior of 3 for each of the two: 40 / (40 + 3)
    assert speeds[0] - speeds[1] == pytest.approx(40 / 43, abs=0.01)
    assert told.memory.speeds[-1] == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)


def test_models_that_never_ran_alike_jobs_compare_by_way_of_a_third():
    one = mind(SIZE, MODELS)
    for i in range(40):
        run(one, f"a {i}", 5.0, "V100")
        run(one, f"a {i}", 6.0, "T4")
        run(one, f"b {i}", 3.0, "T4")
        run(one, f"b {i}", 2.5, "MI100")
    speeds = one.memory.speeds[-1]
    assert speeds[0] - speeds[2] == pytest.approx(0.5, abs=0.1)
    one.learn(7.0, "new", "z", model="MI100")
    sharp = PLAIN._replace(nats=8.0)  # only the one job like it counts
    got, _ = one.recall(one.query("new", "z"), sharp, "V100")
    assert got["log_seconds"] == pytest.approx(7.0 - (speeds[0] - speeds[2]))


def test_a_class_has_speeds_of_its_own_and_starts_from_those_of_all():
    one = mind(SIZE, MODELS)
    for i in range(40):
        run(one, f"a {i}", 5.0, "V100", kind=0)
        run(one, f"a {i}", 7.0, "T4", kind=0)
    first, second, all_of_them = (row[0] - row[1] for row in one.memory.speeds)
    assert first == pytest.approx(2.0, abs=0.1)
    assert all_of_them == pytest.approx(2 * 40 / 43, abs=0.01)
    assert second == 0.0  # nobody of the second class has run yet
    run(one, "b", 5.0, "V100", kind=1)
    run(one, "b", 5.0, "T4", kind=1)
    second = np.diff(one.memory.speeds[1][[1, 0]])[0]
    assert 0.9 < second < 1.9  # half a pair of 0 against three of 1.86


def test_a_class_that_nobody_has_run_in_goes_by_the_speeds_of_all():
    one = mind(SIZE, MODELS)
    for i in range(40):
        run(one, f"a {i}", 5.0, "V100", kind=0)
        run(one, f"a {i}", 7.0, "T4", kind=0)
    one.learn(4.0, "new", "z", model="V100")
    sharp = PLAIN._replace(nats=8.0)  # only the one job like it counts
    got, _ = one.recall(one.query("new", "z", kind=1), sharp, "T4")
    assert got["log_seconds"] == pytest.approx(4.0 + 2 * 40 / 43, abs=0.01)


@pytest.mark.parametrize(("noise", "least", "most"), [(0.01, 1.95, 2.0), (3.0, 0.0, 1.7)])
def test_speeds_follow_few_jobs_where_jobs_hardly_differ_and_many_where_they_do(noise, least, most):
    one, weighing = mind(SIZE, MODELS), PLAIN._replace(apart=0.25)
    for i in range(12):
        for model, log_s in (("V100", 5.0), ("T4", 7.0)):
            query, off = one.query("ada", "x", kind=0), noise * (-1.0) ** i
            place = MODELS.index(model)
            learn_speeds(one.space, one.memory, query, weighing, one.work, log_s + off, place)
            one.learn(log_s + off, "ada", "x", model=model)
    assert least <= one.memory.speeds[0, 0] - one.memory.speeds[0, 1] <= most


def test_jobs_of_which_little_is_known_teach_speeds_little():
    known, little = mind(SIZE, MODELS), mind(SIZE, MODELS)
    weighing = PLAIN._replace(known=6.0)  # user and name: 4 + 2 nats
    for one, name in ((known, "x"), (little, "")):
        for model, log_s in (("V100", 5.0), ("T4", 7.0)):
            query, place = one.query("ada", name), MODELS.index(model)
            learn_speeds(one.space, one.memory, query, weighing, one.work, log_s, place)
            one.learn(log_s, "ada", name, model=model)
    gain = [one.memory.pair_weights[-1, 0, 1] for one in (known, little)]
    assert gain == pytest.approx([0.5, 0.5 * math.exp(-2)], rel=0.01)


def test_unlike_jobs_are_not_compared():
    one = mind(SIZE, MODELS)
    run(one, "ada", 5.0, "V100")
    assert run(one, "lin", 9.0, "T4") == 0  # 4 nats of the user are more than 1.5
    assert not one.memory.speeds.any()
