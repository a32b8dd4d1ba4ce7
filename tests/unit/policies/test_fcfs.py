"""First come, first served."""

from tests.worlds import build, job, nodes, play


def test_the_oldest_job_takes_the_first_pool_that_fits_though_another_is_faster():
    # Job 0 takes 9 s on pool 0 and would take 1 s on pool 1. Job 1 finds pool 0 full.
    world = build([nodes("V100"), nodes("T4")], [job(0, 9, 1), job(1, 9, 4)])
    outcome = play(world, "fcfs").outcome
    assert outcome["pool"].tolist() == [0, 1]
    assert outcome["finish"].tolist() == [9, 5]


def test_everyone_waits_behind_the_oldest_job():
    # Job 1 needs both GPUs and waits for job 0 until 4; job 2 would fit but stands behind it.
    world = build([nodes("V100", 2)], [job(0, 4), job(1, 2, gpus=2), job(1, 1)])
    assert play(world, "fcfs").outcome["start"].tolist() == [0, 4, 6]


def test_a_pool_where_the_oldest_job_may_not_run_is_passed_over():
    world = build([nodes("V100"), nodes("T4")], [job(0, 3, 3, allowed=[1]), job(0, 3, 3)])
    assert play(world, "fcfs").outcome["pool"].tolist() == [1, 0]
