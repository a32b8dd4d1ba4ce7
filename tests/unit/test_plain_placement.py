"""Which GPUs the plain simulator hands out, worked out by hand."""

from __future__ import annotations

import pytest

from adlro.model.state import WHOLE
from tests.plain.policies import Fcfs, PairSjf
from tests.plain.script import Replay
from tests.plain.simulator import run
from tests.plain.small import build, job, pool, start


def test_a_gang_of_eight_on_two_nodes_pays_for_the_network():
    # 10 s * (1 + 0.5 * 2) = 20 s.
    world = build([pool(2, 4, span_cost=2.0)], [job(0, 10, gpus=8, communication=0.5)])
    result = run(world, Fcfs())
    assert (result.finish, result.nodes, result.gpus) == ([20], [2], [tuple(range(8))])


def test_a_gang_on_one_node_pays_nothing():
    world = build([pool(2, 4, span_cost=2.0)], [job(0, 10, gpus=4, communication=0.5)])
    assert run(world, Fcfs()).finish == [10]


def test_best_fit_takes_the_node_with_the_fewest_free_gpus():
    # Nodes 0-3 and 4-7. Job 0: a tie, so node 0. Job 1 (3 GPUs): only node 1 holds it.
    # Job 2: one is left on node 1, two on node 0. Job 3: the two on node 0.
    jobs = [job(0, 9, gpus=n) for n in (2, 3, 1, 2)]
    result = run(build([pool(2, 4)], jobs), Fcfs())
    assert result.gpus == [(0, 1), (4, 5, 6), (7,), (2, 3)]
    assert result.start == [0, 0, 0, 0]


def test_a_gang_too_large_for_any_node_fills_the_roomiest_first():
    # Free before job 2: node 0 has 2, 3; node 1 has 4-7; node 2 has 9-11. Eight = 4 + 3 + 1.
    world = build([pool(3, 4)], [job(0, 9, gpus=2), job(0, 9), job(0, 9, gpus=8)])
    result = run(world, Replay([[start(0, node=0), start(1, node=2)], [start(2)], []] + [[]] * 9))
    assert result.gpus[2] == (2, 4, 5, 6, 7, 9, 10, 11)
    assert result.nodes[2] == 3


def test_a_named_node_is_filled_first_and_the_rest_is_placed_by_best_fit():
    # Node 1 gives its four GPUs; for the one left over node 0 and 2 tie.
    world = build([pool(3, 4)], [job(0, 9, gpus=5)])
    assert run(world, Replay([[start(0, node=1)], []])).gpus == [(0, 4, 5, 6, 7)]


def test_a_named_gpu_is_in_the_gang_beside_the_lowest_others_of_its_node():
    world = build([pool(3, 4)], [job(0, 9, gpus=2), job(0, 9, gpus=4)])
    result = run(world, Replay([[start(0, gpu=6), start(1, node=1, gpu=7)], [], []]))
    # Job 1 takes what is left of node 1 (5, 7) and then 0, 1 of node 0.
    assert result.gpus == [(4, 6), (0, 1, 5, 7)]


def test_cores_and_memory_limit_a_node_but_a_demand_of_zero_does_not():
    # 4 GPUs, 4 cores, 10 MB. Job 0 takes two GPUs and all cores, so job 1 waits for them until 5.
    # Job 2 needs neither and job 3 six MB: both start at 1. At 6 one GPU and four MB are free: job
    # 4 (five MB) waits until job 3 ends at 8.
    jobs = [job(0, 5, gpus=2, cores=2), job(1, 9, cores=1), job(1, 20), job(1, 7, memory=6)]
    world = build([pool(1, 4, cores=4, memory=10)], [*jobs, job(6, 1, memory=5)])
    assert run(world, PairSjf()).start == [0, 5, 1, 1, 8]


def test_slices_share_a_gpu_until_it_is_full():
    # 600 + 400 fill the GPU; job 2 (100) waits until job 1 is gone at 3. Left: 300 from 3 to 4,
    # then 400 until 5, all of it beside a slice.
    jobs = [job(0, 5, share=600), job(0, 3, share=400), job(0, 1, share=100)]
    result = run(build([pool()], jobs), Fcfs())
    assert (result.start, result.finish) == ([0, 0, 3], [5, 3, 4])
    assert result.idle_seconds == result.stranded_seconds == pytest.approx(0.3 + 0.4)
    assert result.busy == [pytest.approx(3 + 1.2 + 0.1)]


@pytest.mark.parametrize("more", [{"gpu_memory": 50}, {"cores": 3}, {"memory": 6}])
def test_slices_also_share_gpu_memory_cores_and_host_memory(more):
    # GPU memory: 60 + 50 > 100; cores: 3 + 3 > 4; host memory: 6 + 6 > 10. Job 1 waits for job 0,
    # job 2 needs none of them.
    first = job(0, 5, share=100, gpu_memory=60, cores=3, memory=6)
    jobs = [first, job(1, 1, share=100, **more), job(1, 2, share=100)]
    assert run(build([pool(1, 1, cores=4, memory=10)], jobs), PairSjf()).start == [0, 5, 1]


def test_best_fit_gives_a_slice_the_gpu_with_the_smallest_share_left():
    # 500 on GPU 0, 700 on GPU 1 (named), then 300: GPU 1 has just that. The last, 400: GPU 0.
    jobs = [job(0, 9, share=share) for share in (500, 700, 300, 400)]
    world = build([pool(1, 3)], jobs)
    result = run(world, Replay([[start(0), start(1, gpu=1), start(2), start(3)], *[[]] * 4]))
    assert result.gpus == [(0,), (1,), (1,), (0,)]


def test_a_slice_goes_to_the_named_node_and_there_by_the_rule():
    jobs = [job(0, 9, share=500), job(0, 9, share=500)]
    world = build([pool(2, 2)], jobs)
    result = run(world, Replay([[start(0, gpu=3), start(1, node=1)], *[[]] * 4]))
    assert result.gpus == [(3,), (3,)]


def test_a_whole_job_takes_no_gpu_with_a_slice_on_it():
    jobs = [job(0, 4, share=100), job(0, 9), job(0, 1, gpus=2)]
    result = run(build([pool(1, 2)], jobs), Fcfs())
    assert (result.gpus, result.start) == ([(0,), (1,), (0, 1)], [0, 0, 9])


def kind(weight, gpus, share=WHOLE, **more):
    return {"weight": weight, "gpus": gpus, "share": share, "pools": 1, **more}


def test_fgd_keeps_room_for_what_is_in_demand():
    # Slices of 600 are in demand. The 500 left beside job 0 are a fragment; a slice of 400 there
    # leaves 400 less of it. The next one leaves 600 of GPU 1: no fragment.
    jobs = [job(0, 9, share=share) for share in (500, 400, 400)]
    world = build([pool(1, 3)], jobs, demands=[kind(1, 1, 600)])
    assert run(world, Fcfs()).gpus == [(0,), (0,), (1,)]


def test_fgd_differs_from_best_fit():
    # Node 0 has 2 GPUs left, node 1 has 3. Gangs of 2 are in demand: one more GPU of node 0 would
    # leave a fragment there, one of node 1 none. Best fit takes node 0.
    jobs = [job(0, 9), job(0, 9)]
    trace = [[start(0, node=0), start(1)], *[[]] * 3]
    worlds = [build([pool(2, 3)], jobs, demands=d) for d in ([], [kind(1, 2)])]
    assert [run(world, Replay(trace)).gpus[1] for world in worlds] == [(1,), (3,)]


def test_fgd_counts_cores_and_memory_and_pools_of_a_kind():
    # The kind needs 2 GPUs with 2 cores each. Node 1 has 3 of its 4 cores left: its two free GPUs
    # are fragments already, and taking one leaves fewer.
    jobs = [job(0, 9, cores=1), job(0, 9)]
    trace = [[start(0, node=1), start(1)], *[[]] * 3]
    world = build([pool(2, 3, cores=4)], jobs, demands=[kind(1, 2, cores=2)])
    assert run(world, Replay(trace)).gpus[1] == (4,)


def test_fgd_fills_the_roomiest_node_when_none_holds_the_rest():
    world = build([pool(3, 2)], [job(0, 9), job(0, 9, gpus=3)], demands=[kind(1, 1)])
    result = run(world, Replay([[start(0, node=0), start(1)], *[[]] * 3]))
    assert result.gpus[1] == (1, 2, 3)
