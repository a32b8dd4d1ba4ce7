"""What a real cluster has: gangs on one node, draining nodes, CPU-only jobs, delays and cycles."""

import numpy as np
import pytest

from adlro.errors import PolicyError
from adlro.model.state import CORES, DRAIN, FAILURE
from adlro.planning.min_min import fill_free_times
from tests.worlds import InPython, Scheduled, build, fails, is_repaired, job, nodes, play, start


def drains(time, node):
    return {"time": time, "kind": FAILURE, "node": node, "value": DRAIN}


def cores(time, node, count):
    return {"time": time, "kind": CORES, "node": node, "value": count, "gpu": -1}


def starts(world, policy="fcfs"):
    return play(world, policy).outcome["start"].tolist()


TWO_NODES = [nodes(gpus=4, count=2)]


@pytest.mark.parametrize("one_node", [0, 1])
def test_a_gang_that_needs_one_node_waits_for_one(one_node):
    jobs = [job(0, 10, gpus=3), job(0, 20, gpus=3), job(1, 5, gpus=2, one_node=one_node)]
    run = play(build(TWO_NODES, jobs), "fcfs")
    assert run.outcome["start"][2] == (10 if one_node else 1)
    assert run.outcome["nodes"][2] == (1 if one_node else 2)


@pytest.mark.parametrize("policy", ["min-min", "drain-argmin", "easy-backfill"])
def test_plans_know_when_one_node_has_room(policy):
    # Each node has one GPU free at once, one node has two at 50. The short job must not wait for
    # GPUs that the gang cannot use before 50.
    jobs = [job(0, 50, gpus=3), job(0, 90, gpus=3), job(1, 30, gpus=2, one_node=1), job(2, 20)]
    assert starts(build(TWO_NODES, jobs), policy) == [0, 0, 50, 2]


def test_a_named_node_must_hold_all_of_a_gang_that_needs_one():
    world = build(TWO_NODES, [job(0, 9, gpus=3), job(0, 9, gpus=4, one_node=1)])
    with pytest.raises(PolicyError, match="no room"):
        play(world, Scheduled({0: [[start(0, node=0)], [start(1, node=0)]]}))


def test_a_draining_node_finishes_its_jobs_and_takes_no_other():
    jobs = [job(0, 100, gpus=4), job(0, 10, gpus=2), job(5, 10, gpus=4)]
    world = build(TWO_NODES, jobs, events=[drains(1, 0)])
    run = play(world, "fcfs")
    assert run.outcome["start"].tolist() == [0, 0, 10]
    assert run.outcome["finish"].tolist() == [100, 10, 20]
    assert run.outcome["restarts"].tolist() == [0, 0, 0]


def test_a_plan_does_not_count_on_gpus_of_draining_nodes():
    # By its estimate the job on node 0 ends at 1 s; the four GPUs of node 1 are free at 100 s.
    jobs = [job(0, 50, gpus=4, est=(1,)), job(0, 100, gpus=4), job(0.5, 10, gpus=4)]
    world, seen = build(TWO_NODES, jobs, events=[drains(0.25, 0)]), []

    def look(view):
        times, counts = np.zeros(8), np.zeros(1)
        fill_free_times(4, view, counts, times)
        seen.append((view.now, int(counts[0]), times[:4].tolist(), int(view.pools["draining"][0])))

    play(world, InPython("fcfs", world, look))
    assert [one for one in seen if one[0] == 0.5] == [(0.5, 4, [100] * 4, 4)]


def test_a_drained_node_that_fails_interrupts_what_still_runs_there():
    jobs = [job(0, 100, gpus=4)]
    events = [drains(10, 0), fails(20, 0), is_repaired(30, 0)]
    run = play(build([nodes(gpus=4)], jobs, events=events), "fcfs")
    assert run.outcome["finish"].tolist() == [130]
    assert run.outcome["restarts"].tolist() == [1]


def test_a_repair_ends_a_drain():
    jobs = [job(0, 100, gpus=2), job(5, 10, gpus=2)]
    run = play(build([nodes(gpus=4)], jobs, events=[drains(1, 0), is_repaired(40, 0)]), "fcfs")
    assert run.outcome["start"].tolist() == [0, 40]


def test_cpu_only_jobs_hold_cores_as_far_as_free():
    groups = [nodes(gpus=2, cores=8)]
    jobs = [job(0, 10, cores=6), job(1, 10, cores=4), job(30, 10, cores=8)]
    # At 0.5 six cores are asked for and two are free: these are returned at 20, no more.
    events = [cores(0.5, 0, 6), cores(20, 0, -6)]
    assert starts(build(groups, jobs, events=events)) == [0, 10, 30]
    # At 11 four are free, and held until 25.
    events = [cores(11, 0, 4), cores(25, 0, -4)]
    assert starts(build(groups, [*jobs[:2], job(12, 10, cores=1)], events=events)) == [0, 10, 20]


def test_a_start_delay_holds_the_gpus_and_does_no_work():
    jobs = [job(0, 10, start_delay=2), job(0, 5, start_delay=2)]
    run = play(build([nodes()], jobs), "fcfs")
    assert run.outcome["start"].tolist() == [0, 12]
    assert run.outcome["finish"].tolist() == [12, 19]
    assert run.gpus["busy"].tolist() == [19]


def test_with_cycles_jobs_start_at_multiples_of_the_tick():
    jobs = [job(0, 10), job(1, 5), job(13, 1)]
    assert starts(build([nodes()], jobs, tick=4)) == [0, 12, 20]
