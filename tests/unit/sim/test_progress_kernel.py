"""Progress of runs: slices that slow each other."""

import pytest

from tests.worlds import Scheduled, build, job, nodes, play, preempt, start

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
    assert result.totals["stranded_seconds"] == pytest.approx(2 + 0.9 + 0.75)
    assert result.totals["idle_seconds"] == pytest.approx(2 + 0.9 + 0.75)
    assert result.gpus["busy"] == pytest.approx([0.5 * 14.5 + 0.4 * 9])


def test_slices_on_other_gpus_do_not_count():
    jobs = [job(0, 10, share=700), job(0, 6, share=700, type=1)]
    result = play(build([nodes("V100", 2)], jobs, colocation=PAIR), "fcfs")
    assert result.outcome["finish"].tolist() == [10, 6]


def test_slowdowns_by_several_neighbours_add_up():
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
