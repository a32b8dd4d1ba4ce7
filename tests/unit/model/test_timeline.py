"""The timeline of a run: saves, restoring, limits and the expected end."""

import pytest

from tests.worlds import InPython, Scheduled, build, job, nodes, play, preempt, start


@pytest.mark.parametrize(
    ("seconds", "finish"),
    [
        (4, 4),  # done before the first save
        (5, 5),  # at its beginning: it is not made
        (6, 6 + 2),
        (10, 10 + 2),
        (11, 11 + 4),
        (20, 20 + 6),
    ],
)
def test_a_run_saves_after_each_interval_but_not_at_its_end(seconds, finish):
    world = build([nodes()], [job(0, seconds, checkpoint=2, interval=5)])
    assert play(world, "fcfs").outcome["finish"].tolist() == [finish]


def test_a_job_that_cannot_checkpoint_makes_no_saves():
    world = build([nodes()], [job(0, 20, checkpoint=-1, interval=5)])
    assert play(world, "fcfs").outcome["finish"].tolist() == [20]


def test_the_visible_end_counts_the_saves_that_the_estimate_gives():
    # By the estimate of 12 s: saves after 5 and 10 s, expected at 16; after the preemption at 8,
    # with 6 of 12 s done: restoring 8-10, 6 s of work and one save: 18.
    seen = []

    def look(view):
        seen.extend(view.running["expected"].tolist())

    world = build([nodes()], [job(0, 30, est=(12,), checkpoint=2, interval=5)])
    play(world, Scheduled({8: [[preempt(0), start(0)]]}, look))
    assert list(dict.fromkeys(seen)) == [16, 18]


def test_the_visible_end_is_cut_at_the_limit():
    seen = []

    def look(view):
        seen.extend(view.running["expected"].tolist())

    world = build([nodes()], [job(0, 20, checkpoint=2, interval=5, limit=11)])
    result = play(world, InPython("fcfs", world, look))
    assert seen == [11]
    assert result.outcome[["finish", "killed"]].tolist() == [(11, 1)]


def test_a_resumed_run_has_its_whole_limit_again():
    # 10 s of work, limit 9: stopped at 6, it resumes, 2 s of restoring and 4 s of work.
    world = build([nodes()], [job(0, 10, checkpoint=2, limit=9)])
    result = play(world, Scheduled({6: [[preempt(0), start(0)]]}))
    assert result.outcome[["finish", "killed"]].tolist() == [(12, 0)]
