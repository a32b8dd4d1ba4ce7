"""UNICEP: largest wait / (max(1, log2(n)) * p)."""

import pytest

from tests.worlds import build, fails, is_repaired, job, nodes, play


def test_the_job_that_has_waited_longest_for_its_length_goes_first():
    # At 10: job 1 has 9 / 6 = 1.5, job 2 has 6 / 3 = 2.
    world = build([nodes()], [job(0, 10), job(1, 6), job(4, 3)])
    assert play(world, "unicep").outcome["start"].tolist() == [0, 13, 10]


@pytest.mark.parametrize(("gpus", "starts"), [(4, [0, 10, 13]), (8, [0, 15, 10])])
def test_a_narrow_job_goes_before_a_wide_one(gpus, starts):
    # At 10: job 1 has 9 / (2 * 3) = 1.5 with 4 GPUs and 9 / (3 * 3) = 1 with 8; job 2 6 / 5 = 1.2.
    world = build([nodes("V100", gpus)], [job(0, 10, gpus=gpus), job(1, 3, gpus=gpus), job(4, 5)])
    assert play(world, "unicep").outcome["start"].tolist() == starts


@pytest.mark.parametrize("more", [{}, {"gpus": 2}, {"share": 500}])
@pytest.mark.parametrize(("seconds", "starts"), [(4, [0, 10, 14]), (6, [0, 13, 10])])
def test_a_slice_one_gpu_and_two_count_alike(more, seconds, starts):
    # At 10: job 1 has 9 / 4 = 2.25, or 9 / 6 = 1.5; job 2, with both GPUs, 6 / 3 = 2.
    jobs = [job(0, 10, gpus=2), job(1, seconds, **more), job(4, 3, gpus=2)]
    world = build([nodes("V100", 2)], jobs)
    assert play(world, "unicep").outcome["start"].tolist() == starts


def test_jobs_that_have_not_waited_go_by_age():
    world = build([nodes()], [job(0, 4), job(4, 9), job(4, 1)])
    assert play(world, "unicep").outcome["start"].tolist() == [0, 4, 13]


def test_a_job_that_was_lost_has_waited_since_it_came():
    # Lost at 10, and the node is back at 12: job 0 has 12 / 20 = 0.6, job 1 only 3 / 6 = 0.5.
    events = [fails(10, 0), is_repaired(12, 0)]
    world = build([nodes()], [job(0, 20), job(9, 6)], events=events)
    assert play(world, "unicep").outcome["finish"].tolist() == [32, 38]


def test_a_job_that_does_not_fit_is_passed_by():
    world = build([nodes("V100", 2)], [job(0, 9), job(1, 1, gpus=2), job(2, 3)])
    assert play(world, "unicep").outcome["start"].tolist() == [0, 9, 2]


def test_an_estimate_of_nothing_counts_as_very_short():
    world = build([nodes()], [job(0, 5), job(1, 1), job(2, 3, est=(0,))])
    assert play(world, "unicep").outcome["start"].tolist() == [0, 8, 5]
