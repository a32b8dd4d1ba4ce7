"""Tiresias: two queues by GPU-seconds served, rounds of 60 s, preemption."""

import numpy as np
import pytest

from adlro.model.state import FINISH, PREEMPTION
from tests.worlds import build, job, made_ready, nodes, play

ONE = [nodes()]
HOUR = 3600.0


def runs_of(result, j):
    spans = result.spans[result.spans["job"] == j]
    return [
        (float(s["start"]), float(s["end"]), int(s["why"])) for s in np.sort(spans, order="start")
    ]


def test_a_job_that_has_had_its_share_makes_room_for_a_younger_one():
    # Job 0 enters the second queue at 18,000 s. Job 1 waits from 17,990 on; rounds at 17,990 and
    # 18,050: the second preempts job 0, which restores for 10 s after job 1 is done.
    world = build(ONE, [job(0, 6 * HOUR, checkpoint=10), job(17_990, 100, checkpoint=10)])
    result = play(world, "tiresias")
    assert runs_of(result, 1) == [(18_050, 18_150, FINISH)]
    assert runs_of(result, 0) == [
        (0, 18_050, PREEMPTION),
        (18_150, 18_150 + 10 + 6 * HOUR - 18_050, FINISH),
    ]


@pytest.mark.parametrize("kept", [{"checkpoint": -1}, {"checkpoint": 10, "least_run": 7 * HOUR}])
def test_what_would_lose_its_work_or_is_too_young_is_left_alone(kept):
    world = build(ONE, [job(0, 6 * HOUR, **kept), job(17_990, 100, checkpoint=10)])
    outcome = play(world, "tiresias").outcome
    assert outcome["start"].tolist() == [0, 6 * HOUR]
    assert outcome["restarts"].tolist() == [0, 0]


def test_within_a_queue_the_older_job_is_never_preempted_by_a_younger_one():
    world = build(ONE, [job(0, 5000, checkpoint=1), job(1, 10, checkpoint=1)])
    assert play(world, "tiresias").outcome["start"].tolist() == [0, 5000]


def test_a_gang_is_served_by_all_its_gpus_at_once():
    # Four GPUs: 18,000 GPU-seconds are over after 4,500 s. The round at 4,400 can do nothing, and
    # nothing changes before that: the next is 1 s later.
    jobs = [job(0, 6 * HOUR, checkpoint=0, gpus=4), job(4_400, 100, checkpoint=0)]
    result = play(build([nodes(gpus=4)], jobs), "tiresias")
    assert runs_of(result, 1) == [(4_501, 4_601, FINISH)]


def test_nobody_is_stopped_in_vain():
    # Job 0 has had its share. The gang would have GPUs enough if it were stopped, but not cores:
    # job 1, which cannot be stopped, holds two of four, and the gang needs three.
    jobs = [
        job(0, 9 * HOUR, checkpoint=10, cores=2),
        job(0, 8 * HOUR, cores=2),
        job(18_000, 100, checkpoint=10, gpus=3, cores=1),
    ]
    outcome = play(build([nodes(gpus=4, cores=4)], jobs), "tiresias").outcome
    assert outcome["restarts"].tolist() == [1, 0, 0]
    assert outcome["start"][2] == 8 * HOUR


def test_only_as_many_are_stopped_as_it_takes_the_last_of_the_list_first():
    jobs = [job(0, 9 * HOUR, checkpoint=0) for _ in range(4)]
    jobs.append(job(20_000, 100, checkpoint=0, gpus=2))
    outcome = play(build([nodes(gpus=4)], jobs), "tiresias").outcome
    assert outcome["restarts"].tolist() == [0, 0, 1, 1, 0]
    assert outcome["start"][4] == 20_000


def test_without_anything_that_time_can_change_it_sets_no_timer():
    # Two hundred days of waiting for a job that cannot be stopped: no 100,000 rounds.
    world = build(ONE, [job(0, 200 * 24 * HOUR), job(1, 10)])
    result = play(world, "tiresias")
    assert result.totals["decisions"] < 10
    assert result.outcome["start"][1] == 200 * 24 * HOUR


def test_a_slice_is_served_by_its_share():
    # A quarter of a GPU: 18,000 GPU-seconds would take 72,000 s, so nobody is preempted.
    jobs = [job(0, 6 * HOUR, checkpoint=0, share=250), job(17_990, 100, checkpoint=0)]
    assert play(build(ONE, jobs), "tiresias").outcome["restarts"].tolist() == [0, 0]


def test_who_waits_starts_where_it_is_fastest():
    result = play(build([nodes("T4"), nodes("V100")], [job(0, 9, 5), job(0, 9, 5)]), "tiresias")
    assert result.outcome["pool"].tolist() == [1, 0]


def test_its_threshold_and_rounds_are_those_of_the_paper():
    ready = made_ready("tiresias", build(ONE, [job(0, 1)]))
    assert ready.params.tolist() == [18_000, 60]
