"""Interrupted runs: work kept and lost, the queue afterwards, the log of spans, telemetry."""

import numpy as np
import pytest

from adlro.model.state import FAILURE, FINISH, PREEMPTION
from tests.worlds import (
    Scheduled,
    Scripted,
    build,
    fails,
    gpu_speed,
    gpus_of,
    is_repaired,
    job,
    migrate,
    nodes,
    play,
    preempt,
    reading,
    start,
    wake,
)


def runs_of(result, j):
    """Start, end and reason of the end of each run of a job, on its first GPU."""
    spans = result.spans[result.spans["job"] == j]
    return sorted(set(spans[["start", "end", "why"]].tolist()))


def test_a_preempted_job_continues_after_restoring():
    # Job 0 (10 s) works 0-4; job 1 runs 4-7; then 2 s of restoring and the 6 s left: 7-15.
    world = build([nodes()], [job(0, 10, checkpoint=2), job(1, 3)])
    policy = Scripted([start(0), wake(4)], [], [], [preempt(0), start(1)], [], [start(0)])
    result = play(world, policy)
    assert policy.asked_at == [0, 0, 1, 4, 4, 7, 7]
    assert result.outcome[["start", "finish", "restarts", "lost"]].tolist() == [
        (0, 15, 1, 0),
        (4, 7, 0, 0),
    ]
    assert runs_of(result, 0) == [(0, 4, PREEMPTION), (7, 15, FINISH)]
    assert result.gpus["busy"].tolist() == [15]


def test_a_job_that_cannot_checkpoint_starts_over_and_its_work_is_lost():
    # The same without a checkpoint: all 10 s again from 7 on, and the 4 s done are lost.
    world = build([nodes()], [job(0, 10), job(1, 3)])
    policy = Scripted([start(0), wake(4)], [], [], [preempt(0), start(1)], [], [start(0)])
    result = play(world, policy)
    assert result.outcome[["finish", "restarts", "lost"]].tolist() == [(17, 1, 4), (7, 0, 0)]


def test_work_lost_by_starting_over_adds_up():
    # 4 s and then 5 s are thrown away; the third run takes all 10 s, from 9 on.
    policy = Scripted(
        *([start(0), wake(4)], [], [preempt(0), start(0), wake(9)], [], [preempt(0), start(0)])
    )
    result = play(build([nodes()], [job(0, 10)]), policy)
    assert result.outcome[["finish", "restarts", "lost"]].tolist() == [(19, 2, 9)]


def test_a_run_preempted_while_it_restores_has_to_restore_again():
    # Preempted at 4 with 6 s left; restoring 4-6 is broken off at 5; again 5-7, then 6 s of work.
    at = {4: [[preempt(0), start(0)]], 5: [[preempt(0), start(0)]]}
    result = play(build([nodes()], [job(0, 10, checkpoint=2)]), Scheduled(at))
    assert result.outcome[["finish", "restarts", "lost"]].tolist() == [(13, 2, 0)]


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        (4, 4 + 2 + 16 + 3 * 2),  # 4 s done; restoring, then 5, 5, 5 and 1 s with three saves
        (5, 5 + 2 + 15 + 2 * 2),  # at the end of the first 5 s: the save never began to count
        (6, 6 + 2 + 15 + 2 * 2),  # in the middle of the save, which is not worth less
        (7, 7 + 2 + 15 + 2 * 2),  # at its end
        (8, 8 + 2 + 14 + 2 * 2),
    ],
)
def test_a_preemption_keeps_all_work_done_whether_working_or_saving(stop, finish):
    # 20 s of work; the run works 0-5, saves 5-7, works 7-12.
    world = build([nodes()], [job(0, 20, checkpoint=2, interval=5)])
    result = play(world, Scheduled({stop: [[preempt(0), start(0)]]}))
    assert result.outcome[["finish", "lost"]].tolist() == [(finish, 0)]


@pytest.mark.parametrize(
    ("fail", "finish", "lost"),
    [
        # No save is complete: all 20 s again from 15 on, with saves after 5, 10 and 15 s.
        (4, 15 + 20 + 3 * 2, 4),
        (6, 15 + 20 + 3 * 2, 5),
        # The save of 5-7 counts: restoring, 15 s of work, saves after 5 and 10 s.
        (7, 15 + 2 + 15 + 2 * 2, 0),
        (8, 15 + 2 + 15 + 2 * 2, 1),
        (13, 15 + 2 + 15 + 2 * 2, 5),  # in the middle of the second save, after 10 s of work
        # The save of 12-14 is complete at this very moment: 10 s are left.
        (14, 15 + 2 + 10 + 2, 0),
    ],
)
def test_a_failure_falls_back_to_the_last_complete_save(fail, finish, lost):
    # 20 s of work, saves of 2 s after each 5 s: 5-7, 12-14. The node is back at 15.
    world = build(
        [nodes()],
        [job(0, 20, checkpoint=2, interval=5)],
        events=[fails(fail, 0), is_repaired(15, 0)],
    )
    result = play(world, "fcfs")
    assert result.outcome[["finish", "lost", "restarts"]].tolist() == [(finish, lost, 1)]
    assert runs_of(result, 0) == [(0, fail, FAILURE), (15, finish, FINISH)]


def test_a_run_that_resumed_and_then_fails_falls_back_to_where_it_resumed():
    # Preempted at 4 (16 s left), restoring 4-6, working 6-10: those 4 s are lost. At 12 it restores
    # again, 12-14, and works 16 s with saves after 5, 10 and 15 s: 14 + 16 + 6 = 36.
    world = build(
        [nodes()],
        [job(0, 20, checkpoint=2, interval=5)],
        events=[fails(10, 0), is_repaired(12, 0)],
    )
    result = play(world, Scheduled({4: [[preempt(0), start(0)]]}))
    assert result.outcome[["finish", "lost", "restarts"]].tolist() == [(36, 4, 2)]


def test_a_job_lost_to_a_failure_that_never_saves_starts_over():
    events = [fails(6, 0), is_repaired(8, 0)]
    result = play(build([nodes()], [job(0, 10)], events=events), "fcfs")
    assert result.outcome[["finish", "lost", "restarts"]].tolist() == [(18, 6, 1)]


def test_a_job_that_can_checkpoint_but_never_saved_has_lost_it_all_but_need_not_restore():
    events = [fails(6, 0), is_repaired(8, 0)]
    result = play(build([nodes()], [job(0, 10, checkpoint=3)], events=events), "fcfs")
    assert result.outcome[["finish", "lost"]].tolist() == [(18, 6)]


def test_a_migration_may_use_the_gpus_that_it_gives_up():
    # Both GPUs of node 0 are the job's; it moves to GPU 1 first and back to GPU 0, in place.
    world = build([nodes("V100", 2)], [job(0, 10, gpus=2, checkpoint=1)])
    result = play(world, Scheduled({4: [[migrate(0, gpu=1)]]}))
    assert gpus_of(result, 0) == [0, 0, 1, 1]
    assert result.spans["gpu"].tolist() == [0, 1, 1, 0]
    assert result.outcome[["finish", "restarts", "lost"]].tolist() == [(11, 1, 0)]


def test_a_migration_takes_the_work_left_to_the_speed_of_another_pool():
    # Half of the 10 s on the V100 is done at 5; half of the 30 s on the T4 is left, after 1 s of
    # restoring: 5 + 1 + 15. The V100 is free for job 1 at once.
    world = build([nodes("V100"), nodes("T4")], [job(0, 10, 30, checkpoint=1), job(2, 4, 99)])
    result = play(world, Scripted([start(0), wake(5)], [], [], [migrate(0, 1), start(1)]))
    assert result.outcome["finish"].tolist() == [21, 9]
    assert result.outcome["pool"].tolist() == [1, 0]


def test_a_preempted_job_gives_its_gpus_to_a_later_decision_of_the_same_answer():
    world = build([nodes("V100", 2)], [job(0, 10, gpus=2, checkpoint=0), job(1, 3, gpus=2)])
    result = play(world, Scripted([start(0)], [], [preempt(0), start(1)], [], [start(0, gpu=1)]))
    assert result.outcome["finish"].tolist() == [13, 4]
    assert [row["gpu"] for row in result.spans if row["job"] == 0] == [0, 1, 1, 0]


def test_a_preempted_job_waits_in_its_old_place_since_now():
    # Jobs 0-2 run, 3 and 4 wait. At 4 job 1 is preempted, then 2, then 0: each goes before 3.
    rows = []

    def look(view):
        if view.now == 4:
            rows.append(view.queue[["job", "restarts", "saved", "since"]].tolist())

    jobs = [job(0, 9), job(0, 9, checkpoint=1), job(0, 9), job(1, 9), job(2, 9)]
    at = {4: [[preempt(1)], [preempt(2)], [preempt(0)], [start(j) for j in (4, 3, 2)]]}
    world = build([nodes("V100", 3)], jobs)
    play(world, Scheduled(at, look))
    first, second, third = (1, 1, 1, 4), (2, 1, 0, 4), (0, 1, 0, 4)
    waiting = [(3, 0, 0, 1), (4, 0, 0, 2)]
    assert rows == [
        waiting,
        [first, *waiting],
        [first, second, *waiting],
        [third, first, second, *waiting],
        [third, first],
    ]


@pytest.mark.parametrize(
    ("checkpoint", "stop", "left"),
    [
        (2, 2, 0.75),  # 6 of the estimated 8 s are left
        (2, 6, 0.25),
        (2, 8, 1 / 8),  # by the estimate it should be done: a second is left
        (2, 15, 1.5 / 8),  # a tenth of its 15 s
        (-1, 6, 1.0),  # it starts over
    ],
)
def test_the_visible_work_left_is_computed_from_the_estimate(checkpoint, stop, left):
    seen = []

    def look(view):
        if view.now == stop:
            seen.extend(view.queue["left"].tolist())

    world = build([nodes()], [job(0, 20, est=(8,), checkpoint=checkpoint)])
    play(world, Scheduled({stop: [[preempt(0)], [start(0)]]}, look))
    assert seen == [pytest.approx(left, rel=1e-12)]


def test_the_visible_work_left_never_grows_and_sets_the_next_expected_end():
    # Estimate 8, truth 40. Stopped at 8 with 1/8 left, expected at 8 + 2 + 1 = 11; stopped again at
    # 30, after 22 s: a tenth would be 2.2 s of 8, more than the 1/8 it had, so 1/8 it stays.
    seen = []

    def look(view):
        seen.extend((view.now, float(run.left), float(run.expected)) for run in view.running)

    world = build([nodes()], [job(0, 40, est=(8,), checkpoint=2)])
    play(world, Scheduled({8: [[preempt(0), start(0)]], 30: [[preempt(0), start(0)]]}, look))
    assert list(dict.fromkeys(seen)) == [
        (0, 1, 8),
        (8, 1, 8),
        (8, 1 / 8, 11),
        (30, 1 / 8, 11),
        (30, 1 / 8, 33),
    ]


def test_a_spanning_run_counts_its_work_with_the_span_factor():
    # Estimate 10 s, on both nodes 15 s. Of those 6 s are done at 6: 9/15 are left. The truth is
    # 20 s, 30 s here: 24 s are left at slowness 1.5 = 16 s of work, on one node 6 + 16 = 22.
    seen = []

    def look(view):
        if view.now == 6:
            seen.extend(view.queue["left"].tolist())

    want = job(0, 20, 20, est=(10, 10), gpus=2, communication=0.5, checkpoint=0)
    world = build([nodes("V100", 1, 2), nodes("T4", 2)], [want])
    result = play(world, Scheduled({6: [[preempt(0)], [start(0, 1)]]}, look))
    assert seen == [0.6]
    assert result.outcome["finish"].tolist() == [22]


@pytest.mark.parametrize("events", [(), (fails(9, 0), is_repaired(11, 0))])
@pytest.mark.parametrize("more", [{}, {"checkpoint": 2}, {"checkpoint": 1, "interval": 3}])
def test_the_view_of_an_interrupted_run_does_not_depend_on_its_true_length(more, events):
    # Job 0 truly takes 30 or 70 s, by the estimate 6; all that is seen until 20 must be the same.
    def seen_with(seconds):
        seen = []

        def look(view):
            if view.now < 20:
                seen.append([np.asarray(part).tobytes() for part in view])

        jobs = [job(0, seconds, est=(6,), **more), job(1, 2), job(12, 50)]
        at = {
            2: [[preempt(0)], [start(0)]],
            8: [[preempt(0)], [start(0)]],
            13: [[migrate(0, gpu=0)]],
        }
        play(build([nodes("V100", 2)], jobs, events=events), Scheduled(at, look))
        return seen

    short, long = seen_with(30), seen_with(70)
    assert len(short) > 10
    assert short == long


def test_the_log_of_spans_grows_with_the_runs():
    # Nine runs of a gang of two: 18 rows, though the log begins with room for two.
    at = {time: [[preempt(0), start(0)]] for time in range(1, 9)}
    world = build([nodes("V100", 2)], [job(0, 20, gpus=2, checkpoint=0)])
    result = play(world, Scheduled(at))
    assert len(result.spans) == result.totals["spans"] == 18
    assert result.spans["end"].tolist() == sorted([*range(1, 9), 20] * 2)
    assert result.spans["why"].tolist() == [PREEMPTION] * 16 + [FINISH] * 2


def test_the_log_of_spans_grows_in_a_compiled_run_too():
    events = [event for k in range(1, 9) for event in (fails(k, 0), is_repaired(k + 0.5, 0))]
    world = build([nodes("V100", 2)], [job(0, 20, gpus=2)], events=events)
    result = play(world, "fcfs")
    assert len(result.spans) == 18
    assert result.outcome[["finish", "restarts", "lost"]].tolist() == [(28.5, 8, 1 + 7 * 0.5)]
    assert result.spans["why"].tolist() == [FAILURE] * 16 + [FINISH] * 2


IDLE = reading(0.0, 10.0, 30.0, 40.0)
BUSY = reading(0.9, 500.0, 40.0, 200.0)  # on top of idle
LIGHT = reading(0.5, 100.0, 10.0, 60.0)
SENSORS = ["utilisation", "bandwidth", "temperature", "power"]


def sensors_at(times, world, policy_at=None):
    """Telemetry readings of the GPUs at the last call at each of some times."""
    seen = {}

    def look(view):
        seen[view.now] = view.gpus[SENSORS].tolist()

    at = {time: [] for time in times} | (policy_at or {})
    play(world, Scheduled(at, look))
    return [seen[time] for time in times]


def test_the_readings_of_a_gpu_show_what_runs_on_it():
    world = build([nodes("V100", 2)], [job(0, 4), job(6, 4)], readings=[[BUSY], [IDLE]])
    during, after = sensors_at([2, 5], world)
    assert during == [(0.9, 510, 70, 240), IDLE]
    assert after == [IDLE, IDLE]


def test_slices_add_their_share_each():
    jobs = [job(0, 9, share=500), job(0, 9, share=200, type=1), job(1, 20, share=300, type=1)]
    world = build([nodes()], jobs, readings=[[BUSY], [LIGHT], [IDLE]])
    at = {0: [[start(0), start(1)]], 4: [[start(2)]]}
    two, three, one = sensors_at([2, 5, 10], world, at)
    assert two == [pytest.approx((0.55, 280, 52, 152))]
    assert three == [pytest.approx((0.7, 310, 55, 170))]
    assert one == [pytest.approx((0.15, 40, 33, 58))]


def test_a_throttled_gpu_is_warmer_and_moves_less():
    # At half its speed, 15 degrees of heat on top: 30 + 15 + 40 / 2; idle again: 30 + 15.
    world = build(
        [nodes()],
        [job(0, 10), job(20, 1)],
        events=[gpu_speed(4, 0, 0.5, heat=15)],
        readings=[[BUSY], [IDLE]],
    )
    before, throttled, idle = sensors_at([2, 6, 18], world)
    assert before == [(0.9, 510, 70, 240)]
    assert throttled == [(0.9, 260, 65, 140)]
    assert idle == [(0, 10, 45, 40)]


def test_the_readings_of_a_node_that_is_down_are_nan():
    world = build(
        [nodes("V100", 1, 2)],
        [job(0, 9, gpus=2)],
        events=[fails(4, 1), is_repaired(8, 1)],
        readings=[[BUSY], [IDLE]],
    )
    seen = {}

    def look(view):
        seen[view.now] = np.array(view.gpus[SENSORS].tolist())

    play(world, Scheduled({5: []}, look))
    assert seen[5][0].tolist() == list(IDLE)
    assert np.isnan(seen[5][1]).all()
    assert seen[8].tolist() == [[0.9, 510, 70, 240]] * 2
