"""Shortest job first, by its best pool."""

from tests.worlds import build, job, nodes, play


def test_the_shortest_job_goes_first():
    # One GPU: job 0 runs 0-4, then the shortest of those that wait: 3 (1 s), 1 (2 s), 2 (6 s).
    world = build([nodes()], [job(0, 4), job(1, 2), job(1, 6), job(2, 1)])
    assert play(world, "sjf").outcome["start"].tolist() == [0, 5, 7, 4]


def test_a_job_is_as_short_as_on_its_best_pool_even_if_that_is_full():
    # Job 0 holds the V100 until 50. Job 1 takes 1 s there and 9 s here, job 2 takes 5 and 6:
    # job 1 is the shorter and starts here, 1-10; job 2 follows.
    world = build([nodes("V100"), nodes("T4")], [job(0, 50, 99), job(1, 1, 9), job(1, 5, 6)])
    outcome = play(world, "sjf").outcome
    assert outcome["start"].tolist() == [0, 1, 10]
    assert outcome["pool"].tolist() == [0, 1, 1]


def test_a_pool_where_a_job_may_not_run_does_not_make_it_short():
    # Job 1 would take 1 s on the V100 but may use only the T4, for 9 s: job 2 goes first.
    jobs = [job(0, 50, 99), job(1, 1, 9, allowed=[1]), job(1, 5, 6)]
    world = build([nodes("V100"), nodes("T4")], jobs)
    assert play(world, "sjf").outcome["start"].tolist() == [0, 7, 1]


def test_a_job_starts_on_the_fastest_of_its_free_pools():
    world = build([nodes("V100"), nodes("T4"), nodes("A100")], [job(0, 5, 2, 3), job(0, 6, 4, 5)])
    assert play(world, "sjf").outcome["pool"].tolist() == [1, 2]


def test_the_shortest_job_that_fits_goes_when_a_shorter_one_does_not():
    # Two GPUs, one of them busy until 9: job 1 (1 s, both GPUs) cannot start, job 2 (3 s) can.
    world = build([nodes("V100", 2)], [job(0, 9), job(1, 1, gpus=2), job(1, 3)])
    assert play(world, "sjf").outcome["start"].tolist() == [0, 9, 1]


def test_of_equals_the_older_goes_first():
    world = build([nodes()], [job(0, 2), job(1, 3), job(1, 3)])
    assert play(world, "sjf").outcome["start"].tolist() == [0, 2, 5]
