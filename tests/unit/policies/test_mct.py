"""Minimum completion time, planned in queue order anew at each event."""

from tests.worlds import build, job, nodes, play


def test_jobs_are_planned_in_queue_order_and_not_by_length():
    # One GPU: 0 (5 s), 1 (2 s), 2 (3 s), where Min-Min would begin with job 1.
    world = build([nodes()], [job(0, 5), job(0, 2), job(0, 3)])
    assert play(world, "mct").outcome["start"].tolist() == [0, 5, 7]


def test_a_job_waits_for_the_faster_gpu_and_a_younger_one_takes_the_free_one():
    # Job 0 holds the V100 0-4. Job 1 would end at 4 + 4 there and at 1 + 20 on the T4: it waits.
    # Job 2 would end at 8 + 2 (after job 1) or at 1 + 8: it starts on the T4.
    jobs = [job(0, 4, 20), job(1, 4, 20), job(1, 2, 8)]
    outcome = play(build([nodes("V100"), nodes("T4")], jobs), "mct").outcome
    assert outcome["start"].tolist() == [0, 4, 1]
    assert outcome["pool"].tolist() == [0, 0, 1]


def test_a_job_is_planned_behind_all_older_ones():
    # Job 0 holds the V100 until 4; job 1 is planned there 4-10. Job 2 would end behind it at 10 + 1
    # or on the T4 at 1 + 9 = 10: it starts there. Min-Min has it wait for the V100 (4 + 1 = 5).
    jobs = [job(0, 4, 50), job(1, 6, 50), job(1, 1, 9)]
    outcome = play(build([nodes("V100"), nodes("T4")], jobs), "mct").outcome
    assert outcome["start"].tolist() == [0, 4, 1]
    assert outcome["pool"].tolist() == [0, 0, 1]


def test_a_gang_holds_its_place_in_the_plan():
    # Two GPUs; job 0 holds one until 3. Job 1 (both) takes them from 3 to 7, so that job 2 waits
    # until 7 though it would be done at 2.
    world = build([nodes("V100", 2)], [job(0, 3), job(1, 4, gpus=2), job(1, 1)])
    assert play(world, "mct").outcome["start"].tolist() == [0, 3, 7]


def test_a_slice_starts_beside_another_though_no_gpu_is_free_in_the_plan():
    # Job 0 holds half of the GPU until 9, job 1 (whole) is planned from 9 on; job 2 is a slice that
    # fits beside job 0.
    world = build([nodes()], [job(0, 9, share=500), job(1, 1), job(1, 5, share=500)])
    assert play(world, "mct").outcome["start"].tolist() == [0, 9, 1]


def test_of_equal_completions_the_lower_pool_is_taken():
    world = build([nodes("V100"), nodes("T4")], [job(0, 3, 3), job(0, 3, 3), job(0, 3, 3)])
    outcome = play(world, "mct").outcome
    assert outcome["pool"].tolist() == [0, 1, 0]
    assert outcome["start"].tolist() == [0, 0, 3]
