"""Runs of the plain simulator that are saved, disturbed, lost and slowed, worked out by hand."""

from __future__ import annotations

import pytest

from adlro.model.state import FAILURE, FINISH, PREEMPTION
from tests.plain.policies import Fcfs
from tests.plain.records import InfeasibleError, StalledError
from tests.plain.script import Replay
from tests.plain.simulator import run
from tests.plain.small import (
    Scheduled,
    build,
    cell_speed,
    fail,
    gpu_speed,
    job,
    migrate,
    pool,
    preempt,
    repair,
    start,
    wake,
)


def test_the_limit_cuts_a_run_and_only_a_longer_one():
    # Job 0 would span and take 20 s, its limit is 15. Job 1 takes exactly its limit.
    jobs = [job(0, 10, gpus=8, communication=1, limit=15), job(0, 10, limit=10)]
    result = run(build([pool(2, 4)], jobs), Fcfs())
    assert (result.finish, result.killed) == ([15, 25], [True, False])


@pytest.mark.parametrize(("seconds", "finish"), [(3, 3), (4, 4), (8, 9), (8.5, 10.5), (10, 12)])
def test_saves_come_between_and_none_at_the_end(seconds, finish):
    # Interval 4, cost 1: work 0-4, save 4-5, work 5-9, save 9-10, work from 10.
    world = build([pool()], [job(0, seconds, interval=4, checkpoint=1)])
    result = run(world, Fcfs())
    assert result.finish == [finish]


def test_a_job_that_cannot_checkpoint_never_saves():
    assert run(build([pool()], [job(0, 10, interval=4)]), Fcfs()).finish == [10]


@pytest.mark.parametrize(
    ("at", "finish", "lost"),
    [
        # Restart at once; a job that was never saved does not restore.
        (3, 3 + 12, 3),  # before any save: all of it again
        (4.5, 4.5 + 12, 4),  # in the middle of the first save: as if it had not begun
        (5, 5 + 1 + 7, 0),  # just as it is complete: 6 s are left and one more save
        (7, 7 + 1 + 7, 2),
        (9.5, 9.5 + 1 + 7, 4),
        (11, 11 + 1 + 2, 1),
    ],
)
def test_a_failure_throws_away_what_was_done_since_the_last_complete_save(at, finish, lost):
    # Interval 4, cost 1, 10 s of work: 12 s in all. The node is back at once.
    world = build(
        [pool(2)],
        [job(0, 10, interval=4, checkpoint=1)],
        [fail(at, 0), repair(at, 1)],
    )
    result = run(world, Fcfs())
    assert (result.finish, result.lost, result.restarts) == ([finish], [lost], [1])
    assert [span.why for span in result.spans] == [FAILURE, FINISH]
    assert [span.gpu for span in result.spans] == [0, 1]


def test_a_second_failure_falls_back_on_the_save_of_the_run_before():
    # Save complete at 5 (6 s left), lost at 6; restores 6-7, works 7-8, lost again: 1 s of work.
    # Restores 8-9, works 9-13, saves until 14, works until 16.
    world = build(
        [pool(3)],
        [job(0, 10, interval=4, checkpoint=1)],
        [fail(6, 0), fail(8, 1)],
    )
    result = run(world, Fcfs())
    assert (result.finish, result.lost, result.restarts) == ([16], [2], [2])


def test_a_preempted_job_keeps_its_work_and_restores_first():
    # Preempted at 3 with 7 s left, started again at once: restores 3-5, works 5-12.
    world = build([pool()], [job(0, 10, checkpoint=2)])
    result = run(world, Scheduled(t3=[preempt(0)]))
    assert (result.finish, result.lost, result.restarts) == ([12], [0], [1])
    assert [(s.start, s.end, s.why) for s in result.spans] == [(0, 3, PREEMPTION), (3, 12, FINISH)]


def test_a_preempted_job_that_cannot_checkpoint_starts_over():
    world = build([pool()], [job(0, 10)])
    result = run(world, Scheduled(t3=[preempt(0)]))
    assert (result.finish, result.lost) == ([13], [3])


def test_work_left_is_a_share_that_holds_on_every_model():
    # Half of 10 s is done at 5; on the other model half of 30 s is left, after 1 s of restoring.
    world = build([pool(), pool(model=1)], [job(0, 10, 30, checkpoint=1)])
    result = run(world, Scheduled(t5=[migrate(0, 1)]))
    assert (result.finish, result.pool) == ([21], [1])


def test_a_preempted_job_waits_in_its_old_place():
    # Job 0 is preempted at 1 and runs again before job 1, which came at 0 too.
    world = build([pool()], [job(0, 4, checkpoint=0), job(0, 1)])
    result = run(world, Scheduled(t1=[preempt(0)]))
    assert result.finish == [4, 5]


def test_a_migrating_job_may_use_the_gpus_that_it_gives_up():
    # From nodes 0 and 1 to node 2 and, again, node 0. It spans, so 2 s are 1 s of its 10 s of work:
    # restores 2-3, then works for 18 s.
    world = build([pool(3, 2)], [job(0, 10, gpus=4, communication=1, checkpoint=1)])
    result = run(world, Replay([[start(0), wake(2)], [], [migrate(0, node=2)], []]))
    assert [s.gpu for s in result.spans] == [0, 1, 2, 3, 0, 1, 4, 5]
    assert result.finish == [2 + 1 + 18]


@pytest.mark.parametrize("decision", [preempt(0), migrate(0)])
def test_a_run_must_last_before_it_may_be_disturbed(decision):
    jobs = [job(0, 10, checkpoint=0, least_run=4)]
    assert run(build([pool()], jobs), Scheduled(t4=[decision])).restarts == [1]
    with pytest.raises(InfeasibleError, match="too young"):
        run(build([pool()], jobs), Scheduled(t3_75=[decision]))


def test_the_limit_counts_anew_for_each_run():
    # 10 s of work, limit 8. Preempted at 5, restores 5-6, works the other 5 s until 11: in time.
    world = build([pool()], [job(0, 10, limit=8, checkpoint=1)])
    result = run(world, Scheduled(t5=[preempt(0)]))
    assert (result.finish, result.killed) == ([11], [False])


def test_saving_counts_towards_the_limit():
    result = run(build([pool()], [job(0, 10, limit=11, checkpoint=1, interval=4)]), Fcfs())
    assert (result.finish, result.killed) == ([11], [True])


class Watch:
    """First come, first served; preempts job 0 at one time and notes what is visible of it."""

    def __init__(self, at):
        self.at, self.left, self.expected = at, 0.0, []

    def decide(self, world):
        if world.now == self.at and 0 in world.runs and world.runs[0].start < self.at:
            return [preempt(0)]
        if 0 in world.waiting:
            self.left = world.carried[0].left
        self.expected += [r.expected for r in world.running if r.expected not in self.expected]
        return Fcfs().decide(world) + ([wake(self.at)] if world.now < self.at else [])


@pytest.mark.parametrize(
    ("at", "est", "left"),
    [
        (4, 16, 12 / 16),
        (16, 8, 1.6 / 8),  # overdue since 8: a tenth of its 16 s
        (5, 4, 1 / 4),  # overdue: at least a second
        (5, 0.5, 1),  # never more than before
    ],
)
def test_the_visible_work_left_is_counted_by_the_estimate(at, est, left):
    watch = Watch(at)
    run(build([pool()], [job(0, 32, est=(est,), checkpoint=1)]), watch)
    assert watch.left == left
    assert watch.expected == [est, at + 1 + est * left]


def test_the_expected_end_counts_saves_and_restoring_but_not_what_slows_a_run():
    # 10 s and two saves, though at half speed from 2 on. At 6 it has worked for 0-4 and 5-6: 5 s of
    # the estimate are left, after a restore and with one more save.
    watch = Watch(6)
    jobs = [job(0, 10, checkpoint=1, interval=4)]
    run(build([pool()], jobs, [gpu_speed(2, 0, 0.5)]), watch)
    assert watch.expected == [12, 6 + 1 + 5 + 1]


def test_a_gang_that_loses_one_node_is_lost_as_a_whole():
    # Nodes 0 and 1 (2 GPUs each). Node 1 fails at 3 and is back at 5: the gang of 4 starts over.
    # Idle: 2 GPUs up from 3 to 5.
    world = build([pool(2, 2, span_cost=0)], [job(0, 6, gpus=4)], [fail(3, 1), repair(5, 1)])
    result = run(world, Fcfs())
    assert (result.finish, result.lost, result.idle_seconds) == ([11], [3], 4)
    assert result.seen["failure of one node of several"] == 1
    assert result.busy == [9, 9, 9, 9]


def test_a_planned_failure_preempts_whatever_the_least_run():
    world = build(
        [pool()], [job(0, 6, checkpoint=1, least_run=99)], [fail(2, 0, planned=1), repair(5, 0)]
    )
    result = run(world, Fcfs())
    assert (result.finish, result.lost, result.spans[0].why) == ([5 + 1 + 4], [0], PREEMPTION)


def test_a_finish_comes_before_a_failure_and_a_repair_too():
    # Job 0 ends at 4 just before its node fails. At 6 the node is repaired and fails again at once,
    # so job 1 runs from 8 on.
    events = [fail(4, 0), repair(6, 0), fail(6, 0), repair(8, 0)]
    result = run(build([pool()], [job(0, 4), job(4, 2)], events), Fcfs())
    assert (result.finish, result.restarts, result.idle_seconds) == ([4, 10], [0, 0], 0)


def test_failing_twice_and_being_repaired_while_up_do_nothing():
    events = [repair(1, 0), fail(2, 1), fail(3, 1), repair(4, 1), repair(5, 1)]
    result = run(build([pool(2)], [job(0, 10)], events), Fcfs())
    assert (result.finish, result.idle_seconds) == ([10], 2 + 6)


def test_events_before_the_first_arrival_happen_in_its_moment_in_their_order():
    # Node 0 fails and is repaired, node 1 is down until it joins at 12.
    events = [fail(0, 0), fail(0, 1), repair(5, 0), repair(12, 1)]
    result = run(build([pool(2)], [job(10, 4), job(10, 4)], events), Fcfs())
    assert (result.start, result.idle_seconds) == ([10, 12], 2)


def test_jobs_that_wait_for_a_repair_do_not_stall():
    world = build([pool()], [job(0, 1)], [fail(0, 0), repair(9, 0)])
    assert run(world, Fcfs()).start == [9]


def test_jobs_that_wait_for_a_node_that_never_comes_back_stall():
    with pytest.raises(StalledError, match=r"jobs \[0\] wait at 0"):
        run(build([pool()], [job(0, 1)], [fail(0, 0)]), Fcfs())


def test_a_gang_is_as_fast_as_the_slowest_of_its_gpus():
    # 10 s: 0-2 at speed 1, 2-6 at 0.5 (GPU 1), 6 on at 0.25 (GPU 0): 10 - 2 - 2 = 6 s in 24 s;
    # GPU 1 getting faster at 8 changes nothing.
    events = [gpu_speed(2, 1, 0.5), gpu_speed(6, 0, 0.25), gpu_speed(8, 1, 2.0)]
    assert run(build([pool(1, 2)], [job(0, 10, gpus=2)], events), Fcfs()).finish == [30]


def test_a_cell_slows_one_type_on_one_model():
    # From 4 on type 0 on model 0 runs at half speed; type 1 and model 1 do not.
    jobs = [job(0, 10, 99), job(0, 10, 99, type=1), job(0, 99, 10, allowed=[1])]
    world = build([pool(1, 2), pool(model=1)], jobs, [cell_speed(4, (0, 0), 0.5)])
    assert run(world, Fcfs()).finish == [16, 10, 10]


def test_a_slow_gpu_does_not_move_the_saves():
    # Works 0-4, saves 4-5, works 5-9 at half speed, saves 9-10, works 10-14, saves 14-15. Done are
    # 4 + 2 + 2 s; the other 2 take until 19.
    world = build([pool()], [job(0, 10, checkpoint=1, interval=4)], [gpu_speed(5, 0, 0.5)])
    assert run(world, Fcfs()).finish == [19]


def test_neighbours_slow_each_other_by_their_types():
    # Type 0 beside type 1 takes twice as long, type 1 beside type 0 is not slowed. Job 0 (10 s)
    # runs alone 0-2, beside job 1 (4 s) 2-6 where it does 2 s of work, then alone 6-12.
    jobs = [job(0, 10, share=500), job(2, 4, share=500, type=1)]
    world = build([pool()], jobs, colocation=[[1, 2], [1, 1]])
    assert run(world, Fcfs()).finish == [12, 6]


def test_neighbours_slow_a_slice_by_the_sum_of_what_each_adds():
    # Beside jobs 1 and 2 job 0 takes 1 + 1 + 2 times as long: of its 10 s of work it does 1 s by 4,
    # the rest alone until 13. They run as if alone.
    jobs = [job(0, 10, share=200), job(0, 4, share=200, type=1), job(0, 4, share=200, type=2)]
    world = build([pool()], jobs, colocation=[[1, 2, 3], [1, 1, 1], [1, 1, 1]])
    assert run(world, Fcfs()).finish == [13, 4, 4]
