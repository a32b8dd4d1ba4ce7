"""EASY backfilling: younger jobs may go first, but never delay the oldest."""

import pytest

from tests.worlds import build, job, nodes, play


def test_a_short_job_goes_through_but_not_one_that_would_delay_the_oldest():
    # 2 GPUs. Job 0 holds one until 10, so job 1 (both) is reserved at 10 with nothing to spare.
    # Job 2 would run 1-11 and must wait; job 3 runs 1-10. Job 1 runs 10-15, then job 2.
    jobs = [job(0, 10), job(1, 5, gpus=2), job(1, 10), job(1, 9)]
    outcome = play(build([nodes("V100", 2)], jobs), "easy-backfill").outcome
    assert outcome["start"].tolist() == [0, 10, 15, 1]


def test_a_long_job_may_use_the_gpus_that_the_reservation_spares():
    # 3 GPUs. Job 0 holds two until 10; job 1 needs two then, which leaves one for job 2, not for 3.
    jobs = [job(0, 10, gpus=2), job(1, 5, gpus=2), job(1, 100), job(1, 100)]
    outcome = play(build([nodes("V100", 3)], jobs), "easy-backfill").outcome
    assert outcome["start"].tolist() == [0, 10, 1, 15]


@pytest.mark.parametrize(
    ("head", "start", "pools"),
    [
        ((20, 10), 12, [1, 0]),  # it would end at 10 + 20 or 12 + 10: the T4s are reserved
        ((5, 28), 10, [0, 1]),  # at 10 + 5 or 12 + 28: the V100s
    ],
)
def test_the_reservation_is_where_the_oldest_would_end_first(head, start, pools):
    # Jobs 0 and 1 hold one of the two GPUs of each pool, until 10 and 12. Job 2 needs two of a
    # pool. Job 3 is too long for a GPU of the reserved pool and takes the free one of the other.
    jobs = [job(0, 10, 99), job(0, 99, 12), job(1, *head, gpus=2), job(1, 20, 20)]
    outcome = play(build([nodes("V100", 2), nodes("T4", 2)], jobs), "easy-backfill").outcome
    assert outcome["start"].tolist() == [0, 0, start, 1]
    assert outcome["pool"].tolist() == [0, 1, *pools]


def test_the_oldest_job_starts_on_its_fastest_free_pool():
    world = build([nodes("V100"), nodes("T4")], [job(0, 9, 4)])
    assert play(world, "easy-backfill").outcome["pool"].tolist() == [1]


def test_a_job_goes_through_on_the_fastest_of_the_pools_where_it_is_harmless():
    # Jobs 0 and 1 hold one GPU of each pool until 10; job 2 needs two V100s and is reserved there.
    # Job 3 would take 20 s on the V100 (harmful), 9 s on the T4 and 8 s on the A100.
    groups = [nodes("V100", 2), nodes("T4", 1), nodes("A100", 1)]
    jobs = [job(0, 10, 99, 99), job(1, 5, 9, 9, gpus=2), job(1, 20, 9, 8)]
    outcome = play(build(groups, jobs), "easy-backfill").outcome
    assert outcome["pool"].tolist() == [0, 0, 2]
    assert outcome["start"].tolist() == [0, 10, 1]


def test_an_overdue_job_moves_the_reservation_on():
    # Job 0 (estimate 2, truth 20) is overdue at 10: expected at 10 + max(1, 1) = 11. Job 1 (both
    # GPUs) is reserved at 11: job 2 (1 s, from 10 on) goes through, job 3 (1.5 s) does not.
    jobs = [job(0, 20, est=(2,)), job(10, 5, gpus=2), job(10, 1), job(10, 1.5)]
    outcome = play(build([nodes("V100", 2)], jobs), "easy-backfill").outcome
    # At 11 job 0 is expected at 11 + 1.1 = 12.1, not before 12.5; at 20 it ends and job 1 starts.
    assert outcome["start"].tolist() == [0, 20, 10, 25]
