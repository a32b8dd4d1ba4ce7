"""Shortest feasible pair of job and pool first."""

from tests.worlds import build, job, nodes, play


def test_the_shortest_pair_that_can_start_goes_first():
    # Job 0 holds the V100 until 50. Job 1 takes 1 s there but 9 s here; job 2 takes 6 s here: the
    # shortest pair that can start is (2, T4), 1-7; then job 1.
    world = build([nodes("V100"), nodes("T4")], [job(0, 50, 99), job(1, 1, 9), job(1, 5, 6)])
    outcome = play(world, "pair-sjf").outcome
    assert outcome["start"].tolist() == [0, 7, 1]
    assert outcome["pool"].tolist() == [0, 1, 1]


def test_it_never_waits_for_a_faster_gpu():
    # The V100 is free again at 1, where job 1 would take 1 s; it takes 100 s on the T4 at once.
    world = build([nodes("V100"), nodes("T4")], [job(0, 1, 50), job(0, 1, 100)])
    outcome = play(world, "pair-sjf").outcome
    assert outcome["finish"].tolist() == [1, 100]


def test_estimates_decide_and_not_the_truth():
    # Estimates 5 and 2: job 1 goes first though it truly takes 9 s; job 0 runs 9-10.
    world = build([nodes()], [job(0, 1, est=(5,)), job(0, 9, est=(2,))])
    assert play(world, "pair-sjf").outcome["start"].tolist() == [9, 0]


def test_of_equals_the_older_job_and_then_the_lower_pool_goes_first():
    world = build([nodes("V100"), nodes("T4")], [job(0, 3, 3), job(0, 3, 3)])
    assert play(world, "pair-sjf").outcome["pool"].tolist() == [0, 1]
