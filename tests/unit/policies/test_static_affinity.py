"""Static affinity: one GPU model for each job type."""

from tests.worlds import build, job, nodes, play

MAP = (0, 1)  # type 0 belongs to the V100, type 1 to the T4


def test_a_type_waits_for_its_model_though_another_is_free():
    # Both jobs of type 0 share the V100: 0-4 and 4-8. The T4 stays idle.
    world = build([nodes("V100"), nodes("T4")], [job(0, 4, 4), job(0, 4, 4)], MAP)
    outcome = play(world, "static-affinity").outcome
    assert outcome["start"].tolist() == [0, 4]
    assert outcome["pool"].tolist() == [0, 0]


def test_the_first_waiting_job_closes_its_pool_and_no_other():
    # Job 1 (both V100s) waits for job 0 until 4; job 2 (one V100) would fit but stands behind it
    # until 6; job 3 is of type 1 and starts on the T4 at once.
    jobs = [job(0, 4, 9), job(1, 2, 9, gpus=2), job(1, 1, 9), job(1, 9, 3, type=1)]
    world = build([nodes("V100", 2), nodes("T4")], jobs, MAP)
    assert play(world, "static-affinity").outcome["start"].tolist() == [0, 4, 6, 1]


def test_a_job_that_cannot_run_on_its_model_belongs_to_its_fastest_pool():
    # Job 0 needs 20 GB and does not fit the 16 GB of its T4. Of V100 and A100 the latter is faster;
    # there it runs 0-2. Job 1 is of the same kind and waits for the A100, though the V100 is free.
    groups = [nodes("V100"), nodes("T4"), nodes("A100")]
    jobs = [job(0, 5, 1, 2, type=1, gpu_memory=20_000, allowed=[0, 2])] * 2
    outcome = play(build(groups, jobs, MAP), "static-affinity").outcome
    assert outcome["pool"].tolist() == [2, 2]
    assert outcome["start"].tolist() == [0, 2]


def test_of_several_pools_of_a_model_a_job_belongs_to_the_first_it_may_use():
    # Pools 0 and 2 are V100s of other shapes. Job 0 takes pool 0; job 1 may not use that one.
    groups = [nodes("V100"), nodes("T4"), nodes("V100", 2)]
    jobs = [job(0, 5, 5), job(0, 5, 5), job(0, 5, 5, allowed=[1, 2])]
    outcome = play(build(groups, jobs, MAP), "static-affinity").outcome
    assert outcome["pool"].tolist() == [0, 0, 2]
    assert outcome["start"].tolist() == [0, 5, 0]
