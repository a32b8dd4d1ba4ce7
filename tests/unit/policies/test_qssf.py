"""Quasi-shortest service first: by GPU-time."""

import pytest

from tests.worlds import build, job, nodes, play


@pytest.mark.parametrize(("seconds", "starts"), [(11, [0, 21, 10]), (13, [0, 10, 13])])
def test_the_job_with_the_least_gpu_time_goes_first(seconds, starts):
    # Job 1 needs 3 s on 4 GPUs: 12 GPU-seconds. Job 2 on one GPU: 11, or 13.
    world = build([nodes("V100", 4)], [job(0, 10, gpus=4), job(1, 3, gpus=4), job(1, seconds)])
    assert play(world, "qssf").outcome["start"].tolist() == starts


@pytest.mark.parametrize(("share", "starts"), [(250, [0, 10, 30]), (350, [0, 16, 10])])
def test_a_slice_counts_as_its_share(share, starts):
    # Job 1 needs 20 s on a quarter of the GPU: 5 GPU-seconds, or 7; job 2 needs 6.
    world = build([nodes()], [job(0, 10), job(1, 20, share=share), job(1, 6)])
    assert play(world, "qssf").outcome["start"].tolist() == starts


def test_a_job_is_as_short_as_on_its_best_pool_even_if_that_is_full():
    # Job 0 holds the V100 until 50. Job 1 takes 1 s there and 9 s here, job 2 takes 5 and 6:
    # job 1 goes first and starts here, 1-10; job 2 follows.
    world = build([nodes("V100"), nodes("T4")], [job(0, 50, 99), job(1, 1, 9), job(1, 5, 6)])
    outcome = play(world, "qssf").outcome
    assert outcome["start"].tolist() == [0, 1, 10]
    assert outcome["pool"].tolist() == [0, 1, 1]


def test_a_pool_where_a_job_may_not_run_does_not_make_it_short():
    # Job 1 would take 1 s on the V100 but may use only the T4, for 9 s: job 2 goes first.
    jobs = [job(0, 50, 99), job(1, 1, 9, allowed=[1]), job(1, 5, 6)]
    world = build([nodes("V100"), nodes("T4")], jobs)
    assert play(world, "qssf").outcome["start"].tolist() == [0, 7, 1]


def test_a_job_starts_on_the_fastest_of_its_free_pools():
    world = build([nodes("V100"), nodes("T4"), nodes("A100")], [job(0, 5, 2, 3), job(0, 6, 4, 5)])
    assert play(world, "qssf").outcome["pool"].tolist() == [1, 2]


def test_the_best_job_that_fits_goes_when_a_better_one_does_not():
    # Two GPUs, one of them busy until 9: job 1 (2 GPU-seconds, both GPUs) cannot start, job 2 can.
    world = build([nodes("V100", 2)], [job(0, 9), job(1, 1, gpus=2), job(1, 3)])
    assert play(world, "qssf").outcome["start"].tolist() == [0, 9, 1]


def test_of_equals_the_older_goes_first():
    world = build([nodes("V100", 2)], [job(0, 2, gpus=2), job(1, 3, gpus=2), job(1, 6)])
    assert play(world, "qssf").outcome["start"].tolist() == [0, 2, 5]


def test_the_estimate_counts_and_not_the_truth():
    world = build([nodes()], [job(0, 2), job(1, 3, est=(8,)), job(1, 9, est=(7,))])
    assert play(world, "qssf").outcome["start"].tolist() == [0, 11, 2]
