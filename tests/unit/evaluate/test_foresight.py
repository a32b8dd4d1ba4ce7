"""The look-ahead with foresight: no policy, no bound."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.evaluate.compare import run_one
from adlro.evaluate.foresight import look_ahead
from adlro.evaluate.metrics import measure
from adlro.policies import registry
from adlro.sim import kernel
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.worlds import build, fails, is_repaired, job, nodes, play

ONE = [nodes("V100")]


def starts(world, **more):
    return look_ahead(world.setting, world.workload, 0, **more).outcome["start"].tolist()


def test_it_reserves_a_gpu_for_a_short_job_that_will_arrive():
    # Job 0 now: 10 s, and job 1 waits from 1 until 10 and ends at 11: 10 + 10 = 20 s. Job 1 first:
    # it runs 1-2 and job 0 2-12: 1 + 12 = 13 s.
    assert starts(build(ONE, [job(0, 10), job(1, 1)])) == [2, 1]


def test_it_does_not_wait_for_a_job_that_comes_too_late():
    # Waiting until 8 would cost job 0 9 s more and save job 1 only 2.
    assert starts(build(ONE, [job(0, 10), job(8, 1)])) == [0, 10]


def test_rollouts_include_what_min_min_starts_at_the_same_moment():
    # Job 0 takes 2 s on the V100 and 3 on the T4, job 1 10 and 18. Min-Min: job 0 on the V100, and
    # job 1 behind it until 12, 14 s in all. With job 0 on the T4 job 1 starts at once: 3 + 10 s.
    world = build([nodes("V100"), nodes("T4")], [job(0, 2, 3), job(0, 10, 18)])
    result = look_ahead(world.setting, world.workload, 0).outcome
    assert result["pool"].tolist() == [1, 0]
    assert result["start"].tolist() == [0, 0]


def test_ties_go_to_min_mins_choice():
    # Min-Min takes the first of two pools that are alike to the job.
    world = build([nodes("V100"), nodes("T4")], [job(0, 3, 3)])
    assert look_ahead(world.setting, world.workload, 0).outcome["pool"].tolist() == [0]


def test_the_horizon_limits_the_future_jobs_it_sees():
    world = build(ONE, [job(0, 10), job(1, 1)])
    assert starts(world, horizon=0) == [0, 10]
    assert starts(world, horizon=1) == [2, 1]


def test_it_knows_true_run_times_where_the_estimates_are_wrong():
    # By the estimates job 1 is the shorter one, in truth job 0.
    world = build(ONE, [job(0, 2, est=(9,)), job(0, 8, est=(1,))])
    assert starts(world) == [0, 2]
    assert play(world, "min-min").outcome["start"].tolist() == [8, 0]


def test_it_knows_future_failures():
    # Node 0 fails at 5 until 100: a job of 8 s would be lost there; on the slower T4 it ends at 9.
    groups = [nodes("V100"), nodes("T4")]
    world = build(groups, [job(0, 8, 9)], events=[fails(5, 0), is_repaired(100, 0)])
    result = look_ahead(world.setting, world.workload, 0)
    assert (result.outcome["pool"][0], result.outcome["finish"][0]) == (1, 9)
    assert play(world, "min-min").outcome["finish"].tolist() == [14]


@pytest.fixture(scope="module")
def paper():
    return prepare(adjusted(find_scenario("paper16"), jobs=120, load=0.9))


def test_restricted_to_min_mins_choice_it_equals_min_min(paper):
    workload = generate(paper, 3)
    own = look_ahead(paper, workload, 3, pairs=0)
    shipped = run_one(paper, workload, registry.load("min-min", paper), 3)
    assert (own.outcome == shipped.outcome).all()
    assert own.totals.tolist() == shipped.totals.tolist()


@pytest.mark.parametrize("seeds", [8, pytest.param(20, marks=pytest.mark.slow)])
def test_it_beats_min_min_and_does_not_modify_the_workload(paper, seeds):
    policy = registry.load("min-min", paper)
    gains = []
    for seed in range(seeds):
        workload = generate(paper, seed)
        before = [array.tobytes() for array in workload]
        ours = measure(paper, workload, look_ahead(paper, workload, seed))
        theirs = measure(paper, workload, run_one(paper, workload, policy, seed))
        gains.append(1 - ours.mean_jct_s / theirs.mean_jct_s)
        assert [array.tobytes() for array in workload] == before
    assert np.mean(gains) > 0.04


def test_it_completes_runs_with_failures_and_slices():
    rough = prepare(adjusted(find_scenario("rough64"), jobs=60))
    workload = generate(rough, 1)
    result = look_ahead(rough, workload, 1)
    assert (result.outcome["finish"] > workload.jobs["arrival"]).all()
    assert result.totals["finished"] == 60


def test_the_simulator_s_kernel_is_not_compiled_again_after_it():
    world = build(ONE, [job(0, 3)])
    starts(world)
    play(world, "fcfs")
    assert len(kernel.run.overloads) == 1
