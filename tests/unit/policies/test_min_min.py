"""Min-Min, planned anew at each event."""

import pytest

from tests.worlds import build, job, nodes, play


def test_a_job_waits_for_the_faster_gpu():
    # Job 0 holds the V100 0-4. Job 1 would end at 4 + 4 there and at 1 + 20 on the T4: it waits.
    # Job 2 would end at 8 + 30 (after job 1) or at 1 + 8: it starts on the T4.
    jobs = [job(0, 4, 20), job(1, 4, 20), job(1, 30, 8)]
    outcome = play(build([nodes("V100"), nodes("T4")], jobs), "min-min").outcome
    assert outcome["start"].tolist() == [0, 4, 1]
    assert outcome["pool"].tolist() == [0, 0, 1]


@pytest.mark.parametrize(("slow", "pool", "start"), [(6.9, 1, 1), (7.1, 0, 4)])
def test_it_waits_exactly_as_long_as_that_ends_the_job_sooner(slow, pool, start):
    # The V100 is free at 4 and would end job 1 at 4 + 4 = 8, the T4 at 1 + slow.
    world = build([nodes("V100"), nodes("T4")], [job(0, 4, 20), job(1, 4, slow)])
    outcome = play(world, "min-min").outcome
    assert (outcome["pool"][1], outcome["start"][1]) == (pool, start)


def test_the_job_that_would_be_done_first_is_planned_first():
    # One GPU: shortest first, 1 (2 s), 2 (3 s), 0 (5 s).
    world = build([nodes()], [job(0, 5), job(0, 2), job(0, 3)])
    assert play(world, "min-min").outcome["start"].tolist() == [5, 0, 2]


def test_a_job_is_planned_behind_those_that_are_done_before_it():
    # Job 0 holds the V100 until 4. Job 1 would end there at 4 + 2 = 6, job 2 at 4 + 3 = 7; behind
    # job 1 at 6 + 3 = 9, but on the T4 at 1 + 7 = 8: it starts there.
    jobs = [job(0, 4, 50), job(1, 2, 50), job(1, 3, 7)]
    outcome = play(build([nodes("V100"), nodes("T4")], jobs), "min-min").outcome
    assert outcome["start"].tolist() == [0, 4, 1]
    assert outcome["pool"].tolist() == [0, 0, 1]


def test_a_gang_holds_its_place_in_the_plan():
    # Two V100s for all; job 0 holds one until 3. Job 1 (both, 4 s) would end at 7, job 2 (one, 6.5
    # s) at 1 + 6.5 = 7.5: job 1 is planned first and takes both from 3 on, so job 2 waits until 7
    # though a V100 is free. Job 3 (1 s) would end at 2, before both: it starts. The T4 idles.
    times = [(0, 3, 1), (1, 4, 2), (1, 6.5, 1), (1, 1, 1)]
    jobs = [job(at, length, 1, gpus=gpus, allowed=[0]) for at, length, gpus in times]
    outcome = play(build([nodes("V100", 2), nodes("T4")], jobs), "min-min").outcome
    assert outcome["start"].tolist() == [0, 3, 7, 1]


def test_a_job_that_has_gpus_but_no_cores_is_planned_as_if_it_started():
    # 3 GPUs and 2 cores, which job 0 holds until 10 on one GPU. Job 1 (a core) cannot start; the
    # plan gives it one of the two free GPUs all the same, and the other to job 2.
    jobs = [job(0, 10, cores=2), job(1, 1, cores=1), job(1, 2)]
    world = build([nodes("V100", 3, cores=2)], jobs)
    assert play(world, "min-min").outcome["start"].tolist() == [0, 10, 1]


@pytest.mark.parametrize(("slow", "start"), [(4.5, 5), (5.5, 10)])
def test_an_overdue_job_is_expected_to_end_a_second_or_a_tenth_of_its_age_later(slow, start):
    # Job 0 (estimate 2, truth 10) is overdue at 5: expected at 5 + max(0.5, 1) = 6, so that job 1
    # would end at 6 + 4 = 10 on the V100: it waits only if the T4 ends it later than that. Job 0
    # truly ends at 10.
    world = build([nodes("V100"), nodes("T4")], [job(0, 10, 99, est=(2, 99)), job(5, 4, slow)])
    assert play(world, "min-min").outcome["start"][1] == start


def test_of_equals_the_older_job_and_then_the_lower_pool_goes_first():
    world = build([nodes("V100"), nodes("T4")], [job(0, 3, 3), job(0, 3, 3), job(0, 3, 3)])
    outcome = play(world, "min-min").outcome
    assert outcome["pool"].tolist() == [0, 1, 0]
    assert outcome["start"].tolist() == [0, 0, 3]
