"""Slurm's multifactor priority: age, size, importance and fair share, 1000 points each."""

import numpy as np
import pytest

from tests.worlds import build, job, made_ready, nodes, play

DAY = 86_400.0
FOUR = [nodes("V100", 4)]


def test_the_more_important_job_goes_first():
    world = build([nodes()], [job(0, 10), job(1, 2, priority=0.2), job(1, 3, priority=0.7)])
    assert play(world, "multifactor").outcome["start"].tolist() == [0, 13, 10]


@pytest.mark.parametrize(("priority", "starts"), [(0.1, [0, 12, 10]), (0.3, [0, 10, 12])])
def test_a_wide_job_goes_before_a_narrow_one(priority, starts):
    # Job 1 takes 3 of 4 GPUs, job 2 all four: 250 points more, against 100 or 300 of importance.
    jobs = [job(0, 10, gpus=4), job(1, 2, gpus=3, priority=priority), job(1, 2, gpus=4)]
    assert play(build(FOUR, jobs), "multifactor").outcome["start"].tolist() == starts


@pytest.mark.parametrize(("priority", "starts"), [(0.4, [0, 10, 12]), (0.6, [0, 12, 10])])
def test_a_slice_counts_as_its_share(priority, starts):
    # Job 1 takes all of the one GPU, job 2 half of it: 500 points, against 400 or 600.
    jobs = [job(0, 10), job(1, 2), job(1, 2, share=500, priority=priority)]
    assert play(build([nodes()], jobs), "multifactor").outcome["start"].tolist() == starts


@pytest.mark.parametrize(("priority", "first"), [(0.1, 1), (0.2, 2)])
def test_a_day_of_age_is_a_seventh_of_the_points(priority, first):
    # Job 1 is a day older, 142.9 points, against 100 or 200 of importance.
    jobs = [job(0, 3 * DAY), job(DAY, 9), job(2 * DAY, 9, priority=priority)]
    start = play(build([nodes()], jobs), "multifactor").outcome["start"]
    assert start[first] == 3 * DAY


def test_after_seven_days_nobody_grows_older():
    jobs = [job(0, 20 * DAY), job(DAY, 9), job(10 * DAY, 9, priority=0.001)]
    start = play(build([nodes()], jobs), "multifactor").outcome["start"]
    assert start.tolist() == [0, 20 * DAY + 9, 20 * DAY]


@pytest.mark.parametrize(("priority", "starts"), [(0.7, [15, 10]), (0.8, [10, 15])])
def test_a_user_who_holds_more_than_a_share_comes_later(priority, starts):
    # At 10 only user 7 holds GPUs: 2^(-1 / 0.5) = 0.25, 250 points; user 3 has 2^0 = 1, 1000.
    jobs = [job(0, 100, user=7), job(0, 10, user=3)]
    jobs += [job(1, 5, user=7, priority=priority), job(1, 5, user=3)]
    world = build([nodes("V100", 2)], jobs)
    assert play(world, "multifactor").outcome["start"][2:].tolist() == starts


@pytest.mark.parametrize(("priority", "starts"), [(0.37, [15, 10]), (0.4, [10, 15])])
def test_usage_is_gpu_seconds_of_what_runs_and_all_users_here_share_alike(priority, starts):
    # At 10 user 0 holds 3 GPUs and user 1 one, each since 0; user 2 only waits, for all five. A
    # share is a third: 2^(-0.75 * 3) = 0.210 and 2^(-0.25 * 3) = 0.595, 384 points apart.
    jobs = [job(0, 100, gpus=3, user=0), job(0, 100, user=1), job(0, 10, user=1)]
    jobs += [job(1, 5, user=0, priority=priority), job(1, 5, user=1), job(1, 5, gpus=5, user=2)]
    world = build([nodes("V100", 5)], jobs)
    assert play(world, "multifactor").outcome["start"][3:].tolist() == [*starts, 100]


def test_users_may_have_any_number():
    jobs = [job(0, 10, user=-1), job(1, 2, user=5), job(1, 3, user=-1)]
    assert play(build([nodes()], jobs), "multifactor").outcome["start"].tolist() == [0, 10, 12]


def test_the_weights_are_params():
    # Importance alone: the wide job no longer goes first.
    jobs = [job(0, 10, gpus=4), job(1, 2, gpus=1, priority=0.1), job(1, 2, gpus=4)]
    world = build(FOUR, jobs)
    policy = made_ready("multifactor", world)._replace(params=np.array([0.0, 0, 1000, 0, DAY]))
    assert play(world, policy).outcome["start"].tolist() == [0, 10, 12]


def test_a_job_that_does_not_fit_is_passed_by_and_of_equals_the_older_goes_first():
    jobs = [job(0, 9), job(1, 1, gpus=2), job(1, 3), job(1, 3)]
    world = build([nodes("V100", 2)], jobs)
    assert play(world, "multifactor").outcome["start"].tolist() == [0, 9, 1, 4]


def test_a_job_starts_on_the_fastest_of_its_free_pools():
    world = build([nodes("V100"), nodes("T4"), nodes("A100")], [job(0, 5, 2, 3), job(0, 6, 4, 5)])
    assert play(world, "multifactor").outcome["pool"].tolist() == [1, 2]
