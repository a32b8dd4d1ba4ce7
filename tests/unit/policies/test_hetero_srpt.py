"""Hetero-SRPT: the matching by progress over time left, and the moves that lead to it."""

import pytest

from adlro.model.state import FINISH, PREEMPTION
from tests.unit.policies.test_tiresias import runs_of
from tests.worlds import build, fails, is_repaired, job, made_ready, nodes, play

ONE = [nodes()]
TWO = [nodes("V100"), nodes("T4")]


def test_a_short_job_takes_the_place_of_a_long_one():
    # At 100 job 0 has 900 s left: 1.05 / 901 = 0.0012 where it runs. Job 1: 1 / 51 = 0.0196.
    # Job 0 goes on at 150, with 10 s of restoring: 150 + 10 + 900.
    world = build(ONE, [job(0, 1000, checkpoint=10), job(100, 50, checkpoint=10)])
    result = play(world, "hetero-srpt")
    assert runs_of(result, 1) == [(100, 150, FINISH)]
    assert runs_of(result, 0) == [(0, 100, PREEMPTION), (150, 1060, FINISH)]


@pytest.mark.parametrize(("seconds", "start"), [(880, 1000), (840, 100)])
def test_it_preempts_only_where_the_gain_is_above_the_bonus_for_staying(seconds, start):
    # 1.05 / 901 = 1 / 858.1: a new job must have less than 857.1 s.
    world = build(ONE, [job(0, 1000, checkpoint=0), job(100, seconds, checkpoint=0)])
    assert play(world, "hetero-srpt").outcome["start"][1] == start


@pytest.mark.parametrize(("cost", "pool", "finish"), [(1, 0, 10 + 1 + 1000 / 11), (10, 1, 110)])
def test_a_job_moves_to_a_faster_gpu_only_if_that_pays_for_the_restart(cost, pool, finish):
    # At 10 the V100 is free and job 1 has 100 / 110 of its work left: R = 90.9 s there. Staying is
    # worth 1.05 * 100 / 110 = 0.955, moving R / (R + cost): 0.989 for 1 s and 0.901 for 10 s.
    world = build(TWO, [job(0, 10, 1000), job(0, 100, 110, checkpoint=cost)])
    outcome = play(world, "hetero-srpt").outcome
    assert outcome["pool"].tolist() == [0, pool]
    assert outcome["finish"][1] == pytest.approx(finish)


def test_a_job_goes_to_the_gpu_on_which_it_is_fastest_whatever_the_others_do():
    outcome = play(build(TWO, [job(0, 14, 10), job(0, 10, 100)]), "hetero-srpt").outcome
    assert outcome["pool"].tolist() == [1, 0]


def test_the_matching_is_that_of_the_largest_sum_not_of_the_first_pair():
    # V100 alone: both have 1 / 11. Job 0 there and job 1 on the T4: (1 + 0.1) / 11; the other way
    # round (0.9 + 1) / 11. A greedy walk would take the pair of job 0 and the V100 first.
    outcome = play(build(TWO, [job(0, 10, 100 / 9), job(0, 10, 100)]), "hetero-srpt").outcome
    assert outcome["pool"].tolist() == [1, 0]
    assert outcome["start"].tolist() == [0, 0]


@pytest.mark.parametrize(("seconds", "start"), [(10, 1), (60, 100)])
def test_a_gang_counts_by_its_weight_for_each_gpu(seconds, start):
    # Job 0 has 99 s left at 1: 1.05 / 100 = 0.0105. The gang: 1 / 11 / 2 = 0.045, or 1 / 61 / 2 =
    # 0.0082: then it waits, although 1 / 61 is more.
    jobs = [job(0, 100, checkpoint=0), job(1, seconds, checkpoint=0, gpus=2)]
    assert play(build([nodes(gpus=2)], jobs), "hetero-srpt").outcome["start"][1] == start


@pytest.mark.parametrize(("kept", "start"), [({"checkpoint": -1}, 1000), ({"least_run": 300}, 300)])
def test_what_would_lose_its_work_or_is_too_young_is_left_alone(kept, start):
    world = build(ONE, [job(0, 1000, **{"checkpoint": 0, **kept}), job(50, 10)])
    result = play(world, "hetero-srpt")
    assert result.outcome["start"][1] == start
    assert result.totals["decisions"] < 10


def test_only_those_are_stopped_whose_leaving_it_takes():
    # One node of two GPUs and four cores. Job 0 is the longest, but its one core does not help job
    # 2, which needs three: job 1 alone must leave.
    jobs = [
        job(0, 9000, checkpoint=0, cores=1),
        job(0, 8000, checkpoint=0, cores=3),
        job(10, 5, checkpoint=0, cores=3),
    ]
    outcome = play(build([nodes(gpus=2, cores=4)], jobs), "hetero-srpt").outcome
    assert outcome["start"][2] == 10
    assert outcome["restarts"].tolist() == [0, 1, 0]


def test_nobody_is_stopped_in_vain():
    # The gang is worth most and there are GPUs enough, but it needs all four cores, and job 1 holds
    # two until 8,000 and cannot be stopped. Then it pays to stop job 0.
    jobs = [
        job(0, 9000, checkpoint=0, cores=1),
        job(0, 8000, cores=2),
        job(10, 5, checkpoint=0, gpus=2, cores=2),
    ]
    outcome = play(build([nodes(gpus=3, cores=4)], jobs), "hetero-srpt").outcome
    assert outcome["start"][2] == 8000
    assert outcome["restarts"].tolist() == [1, 0, 0]


def test_a_slice_takes_its_share_of_a_gpu():
    jobs = [job(0, 100, share=500), job(0, 100, share=500), job(0, 100, share=500)]
    assert play(build(ONE, jobs), "hetero-srpt").outcome["start"].tolist() == [0, 0, 100]


def test_a_job_lost_to_a_failure_starts_again_where_there_is_room():
    world = build(TWO, [job(0, 100, 150, checkpoint=0)], events=[fails(50, 0), is_repaired(900, 0)])
    outcome = play(world, "hetero-srpt").outcome
    assert outcome["pool"].tolist() == [1]
    assert outcome["finish"].tolist() == [200]


def test_it_wakes_for_a_run_that_gets_old_enough_by_any_clock():
    # Counted from 1970, start + least_run is rounded to 2e-7 s, here down: job 0 is then too young.
    at = 1.7e9
    jobs = [job(at + 0.123, 1000, least_run=10.3, checkpoint=1), job(at + 1.77, 5)]
    start = play(build(ONE, jobs), "hetero-srpt").outcome["start"]
    assert start[1] == pytest.approx(at + 0.123 + 10.3, abs=1e-6)


def test_its_numbers_are_those_of_the_formula():
    assert made_ready("hetero-srpt", build(ONE, [job(0, 1)])).params.tolist() == [1.05, 1.0]
