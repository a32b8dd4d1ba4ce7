"""Events of the cluster: nodes that fail, leave and join, and changes of speed."""

import pytest

from adlro.model.state import FAILURE, FINISH, PREEMPTION
from tests.worlds import (
    InPython,
    Scheduled,
    build,
    cell_speed,
    fails,
    gpu_speed,
    is_repaired,
    job,
    nodes,
    play,
    preempt,
    start,
)


def test_a_spanning_gang_that_loses_one_node_is_lost_as_a_whole():
    # Three GPUs on both nodes from 0; node 1 fails at 4 and is back at 9: all over again, 9-19.
    world = build(
        [nodes("V100", 2, 2)], [job(0, 10, gpus=3)], events=[fails(4, 1), is_repaired(9, 1)]
    )
    seen = []

    def look(view):
        seen.append((view.now, *view.pools[["gpus", "free"]].tolist()[0], len(view.queue)))

    result = play(world, InPython("fcfs", world, look))
    assert seen == [(0, 4, 4, 1), (0, 4, 1, 0), (4, 2, 2, 1), (9, 4, 4, 1), (9, 4, 1, 0)]
    assert result.outcome[["finish", "lost", "restarts"]].tolist() == [(19, 4, 1)]
    assert result.spans["why"].tolist() == [FAILURE] * 3 + [FINISH] * 3
    # Idle: one GPU 0-4, the two of node 0 4-9 (node 1 is down), one 9-19.
    assert result.totals["idle_seconds"] == 4 + 10 + 10


def test_a_failure_does_not_affect_jobs_on_other_nodes():
    world = build([nodes("V100", 1, 2)], [job(0, 10), job(0, 10)], events=[fails(4, 0)])
    result = play(world, "fcfs")
    # Job 0 stood on node 0 and finds room only when job 1 is done.
    assert result.outcome["finish"].tolist() == [20, 10]
    assert result.outcome["lost"].tolist() == [4, 0]


def test_every_slice_on_a_node_that_fails_is_lost():
    jobs = [job(0, 10, share=300), job(0, 10, share=300), job(0, 10)]
    world = build([nodes("V100", 2, 1)], jobs, events=[fails(4, 0), is_repaired(5, 0)])
    result = play(world, "fcfs")
    assert result.outcome["finish"].tolist() == [15, 15, 15]
    assert result.outcome["lost"].tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    ("more", "finish", "lost"),
    [
        ({"checkpoint": 2}, 8 + 2 + 6, 0),
        ({"checkpoint": 2, "least_run": 99}, 8 + 2 + 6, 0),  # it does not count here
        ({}, 8 + 10, 4),  # it cannot checkpoint
    ],
)
def test_a_planned_failure_preempts(more, finish, lost):
    events = [fails(4, 0, planned=True), is_repaired(8, 0)]
    result = play(build([nodes()], [job(0, 10, **more)], events=events), "fcfs")
    assert result.outcome[["finish", "lost", "restarts"]].tolist() == [(finish, lost, 1)]
    assert result.spans["why"].tolist() == [PREEMPTION, FINISH]


def test_a_node_that_joins_late_counts_from_then_on():
    # Node 1 is down from before the first arrival (at 2) until 6. Job 0 runs 2-5, job 1 5-8, both
    # on node 0; job 2 starts on node 1 at 6. Idle: GPU 0 from 8 to 11.
    events = [fails(0, 1), is_repaired(6, 1)]
    jobs = [job(2, 3), job(2, 3), job(3, 5)]
    result = play(build([nodes("V100", 1, 2)], jobs, events=events), "fcfs")
    assert result.outcome["start"].tolist() == [2, 5, 6]
    assert result.outcome["restarts"].tolist() == [0, 0, 0]
    assert result.totals["idle_seconds"] == 3
    assert result.totals["events"] == 3 + 3 + 2


def test_failures_of_down_nodes_and_repairs_of_up_nodes_do_nothing():
    events = [fails(1, 0), fails(2, 0), is_repaired(3, 0), is_repaired(4, 0)]
    result = play(build([nodes()], [job(0, 5)], events=events), "fcfs")
    assert result.outcome[["finish", "lost", "restarts"]].tolist() == [(8, 1, 1)]


def test_a_finish_goes_before_the_failure_of_the_same_moment():
    result = play(build([nodes()], [job(0, 5)], events=[fails(5, 0)]), "fcfs")
    assert result.outcome[["finish", "restarts"]].tolist() == [(5, 0)]


def test_a_failure_goes_before_the_arrival_of_the_same_moment():
    events = [fails(5, 0), is_repaired(9, 0)]
    result = play(build([nodes()], [job(0, 2), job(5, 1)], events=events), "fcfs")
    assert result.outcome["start"].tolist() == [0, 9]


def test_a_policy_that_waits_for_an_event_does_not_stall():
    world = build([nodes()], [job(0, 5)], events=[fails(0, 0), is_repaired(1000, 0)])
    assert play(world, "fcfs").outcome["start"].tolist() == [1000]


def test_a_run_goes_on_slower_and_then_at_full_speed_again():
    # 4 s of 10 are done; at half speed 3 s of work 4-10; the last 3 s at full speed.
    events = [gpu_speed(4, 0, 0.5), gpu_speed(10, 0, 1.0)]
    result = play(build([nodes()], [job(0, 10)], events=events), "fcfs")
    assert result.outcome["finish"].tolist() == [13]


def test_a_gang_is_as_fast_as_its_slowest_gpu():
    # 2 s at full speed, 2 s at 0.5 (GPU 1): 7 s of work are left, at 0.25 (GPU 0) 28 s. GPU 2 is
    # another job's.
    events = [gpu_speed(2, 1, 0.5), gpu_speed(3, 2, 0.1), gpu_speed(4, 0, 0.25)]
    world = build([nodes("V100", 3)], [job(0, 10, gpus=2), job(0, 3)], events=events)
    assert play(world, "fcfs").outcome["finish"].tolist() == [32, 3]


def test_a_speed_set_before_a_run_counts_from_its_start_and_is_not_seen():
    seen = []

    def look(view):
        seen.extend(view.running["expected"].tolist())

    world = build([nodes()], [job(2, 10), job(4, 1)], events=[gpu_speed(0, 0, 0.5)])
    result = play(world, InPython("fcfs", world, look))
    assert result.outcome["finish"].tolist() == [22, 24]
    assert set(seen) == {12, 23}  # as if the GPU were as fast as ever


def test_a_speed_change_does_not_move_the_visible_end():
    seen = []

    def look(view):
        seen.extend(view.running["expected"].tolist())

    world = build([nodes()], [job(0, 10), job(5, 1)], events=[gpu_speed(4, 0, 0.5)])
    play(world, InPython("fcfs", world, look))
    assert set(seen) == {10, 17}


def test_a_speed_change_in_the_middle_of_a_save_counts_from_its_end():
    # Works 0-5, saves 5-7; 15 s of work are left, at half speed 30 s, with saves after each 5 s of
    # working: 5 of them before the end. 7 + 30 + 5 * 2.
    world = build([nodes()], [job(0, 20, checkpoint=2, interval=5)], events=[gpu_speed(6, 0, 0.5)])
    assert play(world, "fcfs").outcome["finish"].tolist() == [47]


def test_a_save_keeps_what_was_done_at_each_speed():
    # Works 0-5 (speed 0.5 from 3 on: 3 + 1 s of work), saves 5-7, works 7-9 (1 s) and fails: of
    # 20 s 16 are left. Then restoring and 16 s at half speed = 32 s, with 6 saves.
    world = build(
        [nodes("V100", 1, 2)],
        [job(0, 20, checkpoint=2, interval=5), job(0, 9)],
        events=[gpu_speed(3, 0, 0.5), gpu_speed(3, 1, 0.5), fails(9, 0)],
    )
    result = play(world, "fcfs")
    # Job 1 works 3 s and then, at half speed, 12 s: it ends at 15 and leaves GPU 1 to job 0.
    assert result.outcome["finish"].tolist() == [15 + 2 + 32 + 6 * 2, 15]
    assert result.outcome["lost"].tolist() == [1, 0]


def test_a_speed_change_while_a_run_restores_counts_from_its_work_on():
    # Preempted at 4 with 6 s left, restoring 4-6; at half speed from 5 on: 6 + 12.
    world = build([nodes()], [job(0, 10, checkpoint=2)], events=[gpu_speed(5, 0, 0.5)])
    result = play(world, Scheduled({4: [[preempt(0), start(0)]]}))
    assert result.outcome["finish"].tolist() == [18]


def test_a_slow_run_is_cut_at_its_limit():
    # At speed 0.25 from 2 on it would take until 34; back at full speed at 18 it ends at 22.
    slow = gpu_speed(2, 0, 0.25)
    cut = play(build([nodes()], [job(0, 10, limit=30)], events=[slow]), "fcfs")
    assert cut.outcome[["finish", "killed"]].tolist() == [(30, 1)]
    events = [slow, gpu_speed(18, 0, 1.0)]
    saved = play(build([nodes()], [job(0, 10, limit=30)], events=events), "fcfs")
    assert saved.outcome[["finish", "killed"]].tolist() == [(22, 0)]


def test_a_new_speed_of_a_type_on_a_model_holds_for_its_runs_there_and_no_others():
    # Type 1 on the V100 at half speed from 3 on: job 1 has 7 s left, 14 s. Job 0 is of type 0, job
    # 2 on the T4; job 3 starts at 10 and takes 8 s instead of 4.
    jobs = [
        job(0, 10, 99),
        job(0, 10, 99, type=1),
        job(0, 99, 10, type=1, allowed=[1]),
        job(4, 4, 99, type=1, allowed=[0]),
    ]
    world = build([nodes("V100", 2), nodes("T4")], jobs, events=[cell_speed(3, (1, 0), 0.5)])
    assert play(world, "fcfs").outcome["finish"].tolist() == [10, 17, 10, 18]


def test_speeds_of_gpu_and_type_multiply():
    events = [gpu_speed(0, 0, 0.5), cell_speed(0, (0, 0), 0.25)]
    result = play(build([nodes()], [job(0, 10)], events=events), "fcfs")
    assert result.outcome["finish"].tolist() == [80]


def test_a_speed_stays_with_a_gpu_through_failure_and_repair():
    events = [gpu_speed(0, 0, 0.5), fails(4, 0), is_repaired(5, 0)]
    result = play(build([nodes()], [job(0, 10)], events=events), "fcfs")
    assert result.outcome["finish"].tolist() == [25]
