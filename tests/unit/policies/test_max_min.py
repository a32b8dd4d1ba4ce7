"""Max-Min, planned anew at each event."""

from tests.worlds import build, fails, is_repaired, job, nodes, play


def test_the_job_that_would_be_done_last_is_planned_first():
    # One GPU: longest first, 0 (5 s), 2 (3 s), 1 (2 s).
    world = build([nodes()], [job(0, 5), job(0, 2), job(0, 3)])
    assert play(world, "max-min").outcome["start"].tolist() == [0, 8, 5]


def test_the_long_job_gets_the_fast_gpu_and_the_short_ones_the_other():
    # c is 2, 2 and 6 on the V100: job 2 starts there, 0-6. Then c is 4 and 4 on the T4 (V100: 8):
    # job 0 starts there, 0-4. Job 1 would end at 4 + 4 on the T4 and at 6 + 2 on the V100: of two
    # equals the lower pool, so it waits for the V100.
    jobs = [job(0, 2, 4), job(0, 2, 4), job(0, 6, 12)]
    outcome = play(build([nodes("V100"), nodes("T4")], jobs), "max-min").outcome
    assert outcome["start"].tolist() == [0, 6, 0]
    assert outcome["pool"].tolist() == [1, 0, 0]


def test_completions_are_computed_anew_after_each_job_planned():
    # Job 0 holds the V100 until 4. c at 1: job 1 10 (V100), job 2 9 (V100; T4 21), job 3 8 (T4).
    # Job 1 is planned 4-10, so that job 2 would end at 15 and is next, 10-15, though waiting. Job 3
    # is still at 8 and starts on the T4.
    jobs = [job(0, 4, 99), job(1, 6, 99), job(1, 5, 20), job(1, 30, 7)]
    outcome = play(build([nodes("V100"), nodes("T4")], jobs), "max-min").outcome
    assert outcome["start"].tolist() == [0, 4, 10, 1]
    assert outcome["pool"].tolist() == [0, 0, 0, 1]


def test_a_gang_holds_its_place_in_the_plan():
    # Two GPUs; job 0 holds one until 3. Job 1 (both, 4 s) would end at 7, job 2 (1 s) at 2: job 1
    # is planned 3-7 first, and job 2 waits until then though a GPU is free.
    world = build([nodes("V100", 2)], [job(0, 3), job(1, 4, gpus=2), job(1, 1)])
    assert play(world, "max-min").outcome["start"].tolist() == [0, 3, 7]


def test_a_job_that_no_pool_can_take_is_passed_by():
    # Node 1 is down from 0.5 to 20: job 1 (2 GPUs) waits for it; job 2 does not.
    events = [fails(0.5, 1), is_repaired(20, 1)]
    jobs = [job(0, 1), job(1, 4, gpus=2), job(1, 3)]
    world = build([nodes("V100", 1, 2)], jobs, events=events)
    assert play(world, "max-min").outcome["start"].tolist() == [0, 20, 1]


def test_of_equals_the_older_job_and_then_the_lower_pool_goes_first():
    world = build([nodes("V100"), nodes("T4")], [job(0, 3, 3), job(0, 3, 3), job(0, 3, 3)])
    outcome = play(world, "max-min").outcome
    assert outcome["pool"].tolist() == [0, 1, 0]
    assert outcome["start"].tolist() == [0, 0, 3]
