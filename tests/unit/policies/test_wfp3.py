"""WFP3: largest (wait / p)^3 * n."""

import pytest

from tests.worlds import build, fails, is_repaired, job, nodes, play


def test_the_job_that_has_waited_longest_for_its_length_goes_first():
    # At 10: job 1 has (9 / 6)^3 = 3.4, job 2 (6 / 3)^3 = 8.
    world = build([nodes()], [job(0, 10), job(1, 6), job(4, 3)])
    assert play(world, "wfp3").outcome["start"].tolist() == [0, 13, 10]


@pytest.mark.parametrize(("gpus", "starts"), [(2, [0, 13, 10]), (3, [0, 10, 16])])
def test_a_wide_job_goes_before_a_narrow_one(gpus, starts):
    # The same, but job 1 needs all GPUs: 6.75 for two, 10.1 for three.
    world = build([nodes("V100", gpus)], [job(0, 10, gpus=gpus), job(1, 6, gpus=gpus), job(4, 3)])
    assert play(world, "wfp3").outcome["start"].tolist() == starts


@pytest.mark.parametrize(("share", "starts"), [(400, [0, 10, 16]), (500, [0, 14, 10])])
def test_a_slice_counts_as_its_share(share, starts):
    # At 10: job 2 has (8 / 4)^3 = 8 times its share: 3.2, or 4; job 1 has (9 / 6)^3 = 3.4.
    world = build([nodes()], [job(0, 10), job(1, 6), job(2, 4, share=share)])
    assert play(world, "wfp3").outcome["start"].tolist() == starts


def test_jobs_that_have_not_waited_go_by_age():
    world = build([nodes()], [job(0, 4), job(4, 9), job(4, 1)])
    assert play(world, "wfp3").outcome["start"].tolist() == [0, 4, 13]


def test_a_job_that_was_lost_has_waited_since_it_came():
    # Lost at 10, and the node is back at 12: job 0 has (12 / 20)^3, job 1 only (3 / 6)^3.
    events = [fails(10, 0), is_repaired(12, 0)]
    world = build([nodes()], [job(0, 20), job(9, 6)], events=events)
    outcome = play(world, "wfp3").outcome
    assert outcome["finish"].tolist() == [32, 38]


def test_a_job_that_does_not_fit_is_passed_by():
    world = build([nodes("V100", 2)], [job(0, 9), job(1, 1, gpus=2), job(2, 3)])
    assert play(world, "wfp3").outcome["start"].tolist() == [0, 9, 2]


def test_an_estimate_of_nothing_counts_as_very_short():
    world = build([nodes()], [job(0, 5), job(1, 1), job(2, 3, est=(0,))])
    assert play(world, "wfp3").outcome["start"].tolist() == [0, 8, 5]
