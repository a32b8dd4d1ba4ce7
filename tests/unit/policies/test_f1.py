"""F1: smallest log10(p) * n + 870 * log10(submit + 1)."""

import pytest

from tests.worlds import build, job, nodes, play


def test_of_jobs_that_came_together_the_shorter_goes_first():
    world = build([nodes()], [job(0, 10), job(1, 1000), job(1, 100)])
    assert play(world, "f1").outcome["start"].tolist() == [0, 110, 10]


def test_of_narrow_jobs_the_older_goes_first_even_if_it_is_much_longer():
    # log10(1e6) + 870 * log10(2) = 267.9; log10(1) + 870 * log10(3) = 415.1.
    world = build([nodes()], [job(0, 10), job(1, 1e6), job(2, 1)])
    assert play(world, "f1").outcome["start"].tolist() == [0, 10, 1e6 + 10]


@pytest.mark.parametrize(("seconds", "starts"), [(100, [0, 10, 110]), (1000, [0, 11, 10])])
def test_length_counts_once_for_each_gpu(seconds, starts):
    # Job 1: 64 * 2 + 261.9 = 389.9, or 64 * 3 + 261.9 = 453.9; job 2: 0 + 870 * log10(3) = 415.1.
    jobs = [job(0, 10, gpus=64), job(1, seconds, gpus=64), job(2, 1)]
    world = build([nodes("V100", 8, 8)], jobs)
    assert play(world, "f1").outcome["start"].tolist() == starts


@pytest.mark.parametrize(("share", "starts"), [(100, [0, 5, 1005]), (500, [0, 15, 5])])
def test_a_slice_counts_as_its_share(share, starts):
    # Beside what both have, job 1 has 3 * 0.1 or 3 * 0.5 and job 2 has 1.
    world = build([nodes()], [job(0, 5), job(1, 1000, share=share), job(1, 10)])
    assert play(world, "f1").outcome["start"].tolist() == starts


def test_the_time_on_the_best_eligible_pool_counts_even_if_that_is_full():
    # Job 0 holds the V100 until 50: job 1 takes 2 s there and 9 s here, job 2 takes 5 and 6.
    world = build([nodes("V100"), nodes("T4")], [job(0, 50, 99), job(1, 2, 9), job(1, 5, 6)])
    assert play(world, "f1").outcome["start"].tolist() == [0, 1, 10]


def test_a_job_that_does_not_fit_is_passed_by():
    world = build([nodes("V100", 2)], [job(0, 9), job(1, 1, gpus=2), job(2, 3)])
    assert play(world, "f1").outcome["start"].tolist() == [0, 9, 2]


def test_an_estimate_of_nothing_counts_as_very_short():
    world = build([nodes()], [job(0, 5), job(1, 1), job(1, 3, est=(0,)), job(1, 3, est=(0,))])
    assert play(world, "f1").outcome["start"].tolist() == [0, 11, 5, 8]
