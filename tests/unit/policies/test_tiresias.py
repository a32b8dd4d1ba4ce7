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
    # Four GPUs: 18,000 GPU-seconds are over after 4,500 s; the rounds since 4,400 are at 4,400,
    # 4,460 and 4,520.
    jobs = [job(0, 6 * HOUR, checkpoint=0, gpus=4), job(4_400, 100, checkpoint=0)]
    result = play(build([nodes(gpus=4)], jobs), "tiresias")
    assert runs_of(result, 1) == [(4_520, 4_620, FINISH)]


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
