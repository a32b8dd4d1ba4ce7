"""Best fit over the whole cluster, oldest job first."""

from tests.worlds import build, gpus_of, job, nodes, play


def test_a_job_goes_to_the_fullest_node_even_if_it_is_slower_there():
    # C = 16 cores, N = 4 GPUs. With the job: 0.5 + 0.5 * 3/4 = 0.875 on the V100s, 0.5 + 0.5 * 1/4
    # = 0.625 on the T4s.
    world = build([nodes("V100", 4, cores=16), nodes("T4", 2, cores=16)], [job(0, 1, 9)])
    assert play(world, "best-fit").outcome["pool"].tolist() == [1]


def test_cores_are_measured_by_the_largest_node_of_the_cluster():
    # C = 32: 0.5 * 32/32 + 0.375 against 0.5 * 16/32 + 0.375. By each node's own cores it would be
    # a tie, and go to pool 0.
    world = build([nodes("V100", 4, cores=32), nodes("T4", 4, cores=16)], [job(0, 1, 1)])
    assert play(world, "best-fit").outcome["pool"].tolist() == [1]


def test_gpus_are_measured_by_the_largest_node_of_the_cluster():
    # C = 40, N = 8. With the job: 0.5 * 30/40 + 0.5 * 1/8 = 0.4375 on the V100s and 0.5 * 4/40 +
    # 0.5 * 7/8 = 0.4875 on the T4s. By each node's own GPUs: 0.375 + 0.25 and 0.05 + 0.4375.
    groups = [nodes("V100", 2, cores=30), nodes("T4", 8, cores=4), nodes("L4", 1, cores=40)]
    world = build(groups, [job(0, 1, 1, 1, allowed=[0, 1])])
    assert play(world, "best-fit").outcome["pool"].tolist() == [0]


def test_cores_taken_by_others_make_a_node_fuller():
    # Job 0 takes 6 of the 8 cores of the T4 node and one of two GPUs; the V100 node is alike, but
    # empty. Job 1: 0.5 * 2/8 + 0.5 * 0/2 against 0.5 * 8/8 + 0.5 * 1/2.
    groups = [nodes("V100", 2, cores=8), nodes("T4", 2, cores=8)]
    world = build(groups, [job(0, 9, 9, cores=6, allowed=[1]), job(0, 9, 9)])
    assert play(world, "best-fit").outcome["pool"].tolist() == [1, 1]


def test_on_the_node_a_slice_goes_to_the_gpu_with_the_least_left():
    # 700 left on GPU 0, then 200 on GPU 1: the third slice takes the 200.
    slices = [job(t, 9, share=share) for t, share in enumerate((300, 800, 200))]
    result = play(build([nodes(gpus=2)], slices), "best-fit")
    assert [gpus_of(result, j) for j in range(3)] == [[0], [1], [1]]


def test_the_fullest_node_goes_before_the_tightest_gpu():
    # 1000 are left on the node of the V100s, 1100 on that of the T4s, where one GPU has 100 left:
    # as much as job 2 wants.
    jobs = [
        job(0, 9, 9, allowed=[0]),
        job(0, 9, 9, share=900, allowed=[1]),
        job(0, 9, 9, share=100),
    ]
    result = play(build([nodes("V100", 2), nodes("T4", 2)], jobs), "best-fit")
    assert [gpus_of(result, j) for j in range(3)] == [[0], [2], [1]]


def test_a_gang_that_no_node_can_hold_begins_on_the_roomiest():
    # Nodes of 2 V100s and of 3 T4s: the gang of four has three on the first T4 node, one on the
    # other.
    groups = [nodes("V100", 2, count=2), nodes("T4", 3, count=2)]
    result = play(build(groups, [job(0, 1, 9, gpus=4)]), "best-fit")
    assert gpus_of(result, 0) == [4, 5, 6, 7]
    assert result.outcome["nodes"].tolist() == [2]


def test_a_gang_on_one_node_goes_before_a_gang_over_several():
    # The roomiest node has 3 GPUs free of 4; all V100 nodes have 2 and are fuller, but one alone
    # cannot hold three.
    groups = [nodes("V100", 2, count=2), nodes("T4", 4)]
    result = play(build(groups, [job(0, 9, 9, allowed=[1]), job(0, 9, 9, gpus=3)]), "best-fit")
    assert gpus_of(result, 1) == [5, 6, 7]


def test_who_does_not_fit_is_passed_by_but_starts_as_soon_as_it_does():
    # Job 1 wants both GPUs: job 2 overtakes it and ends at 5, job 0 at 10.
    jobs = [job(0, 10), job(0, 3, gpus=2), job(0, 5)]
    outcome = play(build([nodes(gpus=2)], jobs), "best-fit").outcome
    assert outcome["start"].tolist() == [0, 10, 0]


def test_of_those_that_fit_the_oldest_goes_first():
    outcome = play(build([nodes()], [job(0, 9), job(0, 1)]), "best-fit").outcome
    assert outcome["start"].tolist() == [0, 9]


def test_ties_go_to_the_lower_node_and_gpu():
    # Job 1 goes beside job 0, for its node is fuller; job 2 starts a new one.
    result = play(build([nodes(gpus=2, count=3)], [job(0, 9)] * 3), "best-fit")
    assert [gpus_of(result, j) for j in range(3)] == [[0], [1], [2]]


def test_a_job_goes_only_where_it_may():
    world = build([nodes("V100", 8), nodes("T4")], [job(0, 9, 1, allowed=[0])])
    assert play(world, "best-fit").outcome["pool"].tolist() == [0]
