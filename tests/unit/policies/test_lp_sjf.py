"""Shortest pair first within the pools that the capacity LP gives."""

import pytest

from tests.worlds import build, fails, is_repaired, job, nodes, play

SHARES = ((0.7, 0.3, 0.0), (0.0, 0.0, 1.0))  # type 0: pools 0 and 1; type 1: pool 2
GROUPS = [nodes("V100"), nodes("T4"), nodes("A100")]


def test_the_shortest_allowed_pair_starts_first():
    # The pairs are 5, 3 (job 0) and 4, 2 (job 1): job 1 starts on the T4, then job 0 on the V100.
    # Job 2 (6 s) takes what comes free first, the T4 at 2; the A100, 1 s, is not for its type.
    world = build(GROUPS, [job(0, 5, 3, 1), job(0, 4, 2, 1), job(0, 6, 6, 1)], shares=SHARES)
    outcome = play(world, "lp-sjf").outcome
    assert outcome["start"].tolist() == [0, 0, 2]
    assert outcome["pool"].tolist() == [0, 1, 1]


def test_a_job_waits_for_an_allowed_pool_while_another_is_free():
    # Job 0 holds the A100 until 4, which is the only pool of type 1: job 1 waits for it.
    jobs = [job(0, 9, 9, 4, type=1), job(1, 1, 1, 1, type=1)]
    outcome = play(build(GROUPS, jobs, shares=SHARES), "lp-sjf").outcome
    assert outcome["start"].tolist() == [0, 4]
    assert outcome["pool"].tolist() == [2, 2]


def test_an_old_job_that_waits_closes_nothing():
    # Job 1 (2 GPUs) waits for job 0's until 4; job 2 overtakes it, unlike in static-affinity-lp.
    jobs = [job(0, 4), job(1, 2, gpus=2), job(1, 3)]
    outcome = play(build([nodes("V100", 2)], jobs), "lp-sjf").outcome
    assert outcome["start"].tolist() == [0, 4, 1]


def test_a_job_that_may_use_none_of_them_goes_to_its_fastest_eligible_pool_alone():
    # Both are of type 1 but may not run on pool 2. The T4 is faster: job 1 waits for it until 3.
    jobs = [job(0, 5, 3, 1, type=1, allowed=[0, 1]), job(0, 6, 4, 1, type=1, allowed=[0, 1])]
    outcome = play(build(GROUPS, jobs, shares=SHARES), "lp-sjf").outcome
    assert outcome["start"].tolist() == [0, 3]
    assert outcome["pool"].tolist() == [1, 1]


@pytest.mark.parametrize(("fails_at", "pool", "start"), [(0.5, 1, 1), (9, 2, 1)])
def test_while_the_pools_of_the_lp_are_down_the_fastest_that_is_up_is_used(fails_at, pool, start):
    # Node 2 is the A100's. Type 1 belongs there; without it, the T4 (3 s) is faster than the V100.
    events = [fails(fails_at, 2), is_repaired(20, 2)]
    jobs = [job(0, 1, 0.1, 0.1), job(1, 5, 3, 1, type=1)]
    outcome = play(build(GROUPS, jobs, shares=SHARES, events=events), "lp-sjf").outcome
    assert (outcome["pool"][1], outcome["start"][1]) == (pool, start)


def test_of_equals_the_older_job_and_then_the_lower_pool_goes_first():
    world = build(GROUPS, [job(0, 3, 3, 1), job(0, 3, 3, 1), job(0, 3, 3, 1)], shares=SHARES)
    outcome = play(world, "lp-sjf").outcome
    assert outcome["start"].tolist() == [0, 0, 3]
    assert outcome["pool"].tolist() == [0, 1, 0]
