"""The timeline of a run, and slices that slow each other."""

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

    def look(now, *view):
        seen.extend(view[4]["expected"].tolist())

    world = build([nodes()], [job(0, 30, est=(12,), checkpoint=2, interval=5)])
    play(world, Scheduled({8: [[preempt(0), start(0)]]}, look))
    assert list(dict.fromkeys(seen)) == [16, 18]


def test_the_visible_end_is_cut_at_the_limit():
    seen = []

    def look(now, *view):
        seen.extend(view[4]["expected"].tolist())

    world = build([nodes()], [job(0, 20, checkpoint=2, interval=5, limit=11)])
    result = play(world, InPython("fcfs", world, look))
    assert seen == [11]
    assert result.outcome[["finish", "killed"]].tolist() == [(11, 1)]


def test_a_resumed_run_has_its_whole_limit_again():
    # 10 s of work, limit 9: stopped at 6, it resumes, 2 s of restoring and 4 s of work.
    world = build([nodes()], [job(0, 10, checkpoint=2, limit=9)])
    result = play(world, Scheduled({6: [[preempt(0), start(0)]]}))
    assert result.outcome[["finish", "killed"]].tolist() == [(12, 0)]


PAIR = [
    [1.0, 2.0],
    [1.5, 1.0],
]  # type 0 takes twice as long beside type 1, type 1 half as long more


def test_slices_slow_each_other_as_long_as_they_share_a_gpu():
    # Job 0 works 4 s alone; beside job 1 it is half as fast. Job 1 takes 6 * 1.5 = 9 s, until 13.
    # Then 6 - 4.5 = 1.5 s of job 0 are left, at full speed.
    jobs = [job(0, 10, share=500), job(4, 6, share=400, type=1)]
    result = play(build([nodes()], jobs, colocation=PAIR), "fcfs")
    assert result.outcome["finish"].tolist() == [14.5, 13]
    # Left on the GPU with slices: half of it 0-4 and 13-14.5, a tenth 4-13.
    assert result.world["stranded_seconds"] == pytest.approx(2 + 0.9 + 0.75)
    assert result.world["idle_seconds"] == pytest.approx(2 + 0.9 + 0.75)
    assert result.gpus["busy"] == pytest.approx([0.5 * 14.5 + 0.4 * 9])


def test_slices_on_other_gpus_do_not_count():
    jobs = [job(0, 10, share=700), job(0, 6, share=700, type=1)]
    result = play(build([nodes("V100", 2)], jobs, colocation=PAIR), "fcfs")
    assert result.outcome["finish"].tolist() == [10, 6]


def test_what_several_neighbours_cost_adds_up():
    # Three slices of a type that takes twice as long beside another of it: three times beside two.
    # At 6 (2 s of work each) job 2 is done: of the two left each has 4 s, which take 8 s.
    jobs = [job(0, 6, share=300), job(0, 6, share=300), job(0, 2, share=300)]
    result = play(build([nodes()], jobs, colocation=[[2.0]]), "fcfs")
    assert result.outcome["finish"].tolist() == [14, 14, 6]


def test_a_neighbour_that_is_preempted_slows_no_more():
    # Beside each other 0-4: 2 s of work each. Then job 0 alone: 8 s more; job 1 starts over at 12.
    jobs = [job(0, 10, share=500), job(0, 10, share=500)]
    world = build([nodes()], jobs, colocation=[[2.0]])
    at = {0: [[start(0), start(1)]], 4: [[preempt(1)]], 12: [[start(1)]]}
    result = play(world, Scheduled(at))
    assert result.outcome["finish"].tolist() == [12, 22]
    assert result.outcome["lost"].tolist() == [0, 2]


def test_slices_that_end_together_are_ended_in_the_order_of_their_ids():
    # Both have 5 s of work at twice the time. Job 0 ends at 10; job 1 is due at the same moment.
    jobs = [job(0, 5, share=500), job(0, 5, share=500)]
    result = play(build([nodes()], jobs, colocation=[[2.0]]), "fcfs")
    assert result.outcome["finish"].tolist() == [10, 10]
    assert result.spans["job"].tolist() == [0, 1]


def test_a_whole_job_waits_for_the_last_slice_and_a_slice_for_a_whole_job():
    jobs = [job(0, 3, share=100), job(0, 5, share=900), job(1, 2), job(1, 1, share=100)]
    result = play(build([nodes()], jobs), "fcfs")
    assert result.outcome["start"].tolist() == [0, 0, 5, 7]
