"""Affinity from the capacity LP: a job type may use the pools that the LP gives it."""

from tests.worlds import build, job, nodes, play

SHARES = ((0.7, 0.3, 0.0), (0.0, 0.0, 1.0))  # type 0: pools 0 and 1; type 1: pool 2
GROUPS = [nodes("V100", 2), nodes("T4", 2), nodes("A100")]


def test_a_job_starts_on_the_fastest_pool_of_its_type_that_fits():
    # Type 0 takes 5 s on the V100, 3 s on the T4 and would take 1 s on the A100, which is not its.
    world = build(GROUPS, [job(0, 5, 3, 1), job(0, 5, 3, 1, gpus=2)], shares=SHARES)
    outcome = play(world, "static-affinity-lp").outcome
    assert outcome["pool"].tolist() == [1, 0]  # one T4 is left, which is too little for job 1


def test_a_waiting_job_closes_every_pool_that_it_may_use():
    # Jobs 0 and 1 leave one GPU free on each of pools 0 and 1. Job 2 (2 GPUs, pools 0 and 1) waits
    # until 4 and closes both for job 3; job 4 is of type 1 and starts on pool 2.
    jobs = [job(0, 4, 9, 9, allowed=[0]), job(0, 9, 8, 9, allowed=[1]), job(1, 3, 4, 9, gpus=2)]
    world = build(GROUPS, [*jobs, job(1, 1, 1, 1), job(1, 1, 1, 1, type=1)], shares=SHARES)
    outcome = play(world, "static-affinity-lp").outcome
    assert outcome["start"].tolist() == [0, 0, 4, 4, 1]
    assert outcome["pool"].tolist() == [0, 1, 0, 1, 2]


def test_a_job_that_may_use_none_of_them_goes_to_its_fastest_eligible_pool():
    # Type 1 belongs to pool 2, where this job may not run; it is faster on pool 1 than on pool 0.
    world = build(GROUPS, [job(0, 5, 3, 1, type=1, allowed=[0, 1])], shares=SHARES)
    assert play(world, "static-affinity-lp").outcome["pool"].tolist() == [1]


def test_a_share_that_is_nothing_but_rounding_gives_no_pool():
    shares = ((1.0, 1e-12, 0.0), (0.0, 0.0, 1.0))
    world = build(GROUPS, [job(0, 5, 3, 1)], shares=shares)
    assert play(world, "static-affinity-lp").outcome["pool"].tolist() == [0]
