"""Sufferage, planned anew at each event."""

import pytest

from tests.worlds import build, job, nodes, play

TWO = [nodes("V100"), nodes("T4")]


def test_the_job_that_loses_most_gets_the_pool_that_both_want():
    # Losses 5 - 3 = 2 and 9 - 4 = 5: job 1 takes the V100. Job 0 would then end at 4 + 3 = 7 there
    # and at 5 on the T4. Min-Min would give the V100 to job 0.
    outcome = play(build(TWO, [job(0, 3, 5), job(0, 4, 9)]), "sufferage").outcome
    assert outcome["pool"].tolist() == [1, 0]
    assert outcome["start"].tolist() == [0, 0]


def test_a_job_with_a_single_pool_goes_first():
    # Job 0 loses 96 without the V100, but job 1 may use nothing else: it starts there; job 0 ends
    # at 7 + 4 on the V100 and at 100 on the T4: it waits.
    outcome = play(build(TWO, [job(0, 4, 100), job(0, 7, 9, allowed=[0])]), "sufferage").outcome
    assert outcome["pool"].tolist() == [0, 0]
    assert outcome["start"].tolist() == [7, 0]


@pytest.mark.parametrize(("seconds", "start"), [((4, 2), [2, 0]), ((2, 4), [0, 2])])
def test_of_equal_losses_the_smaller_completion_goes_first(seconds, start):
    # One pool: all losses are infinite.
    world = build([nodes()], [job(0, length) for length in seconds])
    assert play(world, "sufferage").outcome["start"].tolist() == start


def test_losses_that_differ_only_by_rounding_are_equal():
    # Two pools of one model; job 0 holds the first until 0.3. At 0.1 a job loses 0.2 without the
    # second, whatever its length: (0.3 + 0.7) - (0.1 + 0.7) and (0.3 + 0.4) - (0.1 + 0.4) differ in
    # the last digit. The shorter job, 2, starts; job 1 ends at 0.3 + 0.7 or at 0.5 + 0.7.
    pools = [nodes(), nodes(cores=99)]
    world = build(pools, [job(0, 0.3), job(0.1, 0.7), job(0.1, 0.4)])
    outcome = play(world, "sufferage").outcome
    assert outcome["start"].tolist() == [0, 0.3, 0.1]
    assert outcome["pool"].tolist() == [0, 0, 1]


def test_losses_are_computed_anew_after_each_job_planned():
    # Losses at 0: job 0 10 - 2 = 8, job 1 12 - 5 = 7, job 2 6 - 3 = 3. Job 0 starts on the V100,
    # 0-2. Job 1 would then end at 2 + 5 = 7 or 12 (loss 5), job 2 at 2 + 3 = 5 or 6 (loss 1): job 1
    # is planned 2-7 on the V100, and job 2, at 7 + 3 = 10 or 6, starts on the T4.
    outcome = play(build(TWO, [job(0, 2, 10), job(0, 5, 12), job(0, 3, 6)]), "sufferage").outcome
    assert outcome["start"].tolist() == [0, 2, 0]
    assert outcome["pool"].tolist() == [0, 0, 1]


def test_a_gang_holds_its_place_in_the_plan():
    # Two V100s; job 0 holds one until 3. Job 1 (both, or nothing) has but one pool that is large
    # enough: it is planned 3-7. Job 2 would end at 7 + 1 there, at 1 + 5 on the T4: it starts.
    jobs = [job(0, 3, 9), job(1, 4, 9, gpus=2), job(1, 1, 5)]
    outcome = play(build([nodes("V100", 2), nodes("T4")], jobs), "sufferage").outcome
    assert outcome["start"].tolist() == [0, 3, 1]
    assert outcome["pool"].tolist() == [0, 0, 1]


def test_of_equals_the_older_job_and_then_the_lower_pool_goes_first():
    outcome = play(build(TWO, [job(0, 3, 3), job(0, 3, 3), job(0, 3, 3)]), "sufferage").outcome
    assert outcome["pool"].tolist() == [0, 1, 0]
    assert outcome["start"].tolist() == [0, 0, 3]
