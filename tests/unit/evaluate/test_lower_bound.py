"""The lower bound on the mean JCT of any schedule."""

from types import SimpleNamespace

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Measure
from adlro.evaluate import foresight
from adlro.evaluate.compare import run_one
from adlro.evaluate.lower_bound import least_seconds, lower_bound
from adlro.policies import registry
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.worlds import build, cell_speed, fails, gpu_speed, is_repaired, job, nodes, play

ONE = [nodes("V100")]
ALL = Measure()


def bounds(groups, jobs, measure=ALL, **more):
    """The bounds on the mean JCT of a small world: without preemption, and with it."""
    world = build(groups, jobs, **more)
    world.setting.scenario = SimpleNamespace(measure=measure)
    return lower_bound(world.setting, world.workload)


def least(groups, jobs, **more):
    world = build(groups, jobs, **more)
    return least_seconds(world.workload, world.setting.layout).tolist()


def test_jobs_that_need_not_wait_take_their_time_on_the_fastest_pool():
    found = bounds([nodes("V100"), nodes("T4")], [job(0, 3, 5), job(10, 8, 4)])
    assert found == pytest.approx((3.5, 3.5))


def test_two_jobs_on_one_gpu_one_after_the_other_the_shorter_one_first():
    # 1 s, then 10 s: JCTs 1 and 11, with or without preemption.
    found = bounds(ONE, [job(0, 10), job(0, 1)])
    assert found.without_preemption == pytest.approx(6, rel=2e-3)
    assert 5.5 < found.with_preemption <= 6


def test_preemption_is_free_in_the_bound_of_all_schedules_only():
    # Job 0 from 0 on, interrupted by job 1 from 1 to 2: JCTs 11 and 1, mean 6. Without preemption
    # job 1 first is the best: it ends at 2, job 0 at 12, JCTs 12 and 1, mean 6.5.
    found = bounds(ONE, [job(0, 10), job(1, 1)])
    assert 6 < found.without_preemption <= 6.5
    assert 5.5 < found.with_preemption <= 6


def test_gangs_and_slices_count_with_the_gpus_they_hold():
    two = [nodes("V100", 2)]
    # Side by side: 4 and 4. One after the other: 4 and 8, mean 6. Four halves fit on two GPUs.
    assert bounds(two, [job(0, 4), job(0, 4)]) == pytest.approx((4, 4))
    assert bounds(two, [job(0, 4, gpus=2)] * 2).without_preemption == pytest.approx(6, rel=2e-3)
    assert bounds(two, [job(0, 4, share=500)] * 4) == pytest.approx((4, 4))
    assert bounds(two, [job(0, 4, share=500)] * 8).without_preemption == pytest.approx(6, rel=2e-3)


def test_only_measured_jobs_count():
    jobs = [job(0, 10), *(job(100 * i, 4) for i in range(1, 9)), job(1000, 30)]
    assert bounds(ONE, jobs, Measure(middle=0.8)) == pytest.approx((4, 4))


def test_pools_where_a_job_may_not_run_are_left_out():
    groups = [nodes("V100"), nodes("T4")]
    assert bounds(groups, [job(0, 3, 5, allowed=[1])]) == pytest.approx((5, 5))


def test_least_seconds_have_start_delay_forced_span_and_time_limit():
    groups = [nodes("V100", 2, 2, network_gb_s=1)]
    (alone,), (spans,), (delayed,), (killed,) = least(
        groups,
        [
            job(0, 10, gpus=2, communication=0.5),
            job(0, 10, gpus=4, communication=0.5),
            job(0, 10, start_delay=3),
            job(0, 10, start_delay=3, limit=6),
        ],
    )
    assert (alone, delayed, killed) == (10, 13, 6)
    assert spans > 10


def test_least_seconds_are_at_the_highest_speeds_that_events_give():
    groups = [nodes("V100", 2), nodes("T4")]
    events = [gpu_speed(1, 0, 0.5), gpu_speed(2, 1, 2.0), cell_speed(3, (0, 1), 4.0)]
    assert least(groups, [job(0, 8, 8)], events=events) == [[4, 2]]
    assert least(groups, [job(0, 8, 8)], events=events[:1]) == [[8, 8]]


def test_a_job_that_a_failure_interrupts_may_go_on_elsewhere_without_breaking_the_bound():
    # 8 of 10 s done on the V100 until its planned failure at 8, then 3 s to restore and save, then
    # the last 2 / 10 of 20 s on the T4. As one run on the T4 it would take 20 s.
    groups, one = [nodes("V100"), nodes("T4")], job(0, 10, 20, checkpoint=0)
    events = [fails(8, 0, planned=True), is_repaired(1000, 0)]
    found = bounds(groups, [one], events=events)
    world = build(groups, [one], events=events)
    assert found == (found.with_preemption,) * 2
    assert found.with_preemption <= play(world, "min-min").outcome["finish"][0] <= 13


@pytest.mark.parametrize("name", ["paper16", "paper16-single", "rough64"])
def test_no_policy_and_no_look_ahead_is_below_the_bound(name):
    setting = prepare(adjusted(find_scenario(name), jobs=80, load=1.2))
    workload = generate(setting, 7)
    arrival = workload.jobs["arrival"]
    found = lower_bound(setting, workload)
    ahead = foresight.mean_jct(setting, workload, 7)
    alone = least_seconds(workload, setting.layout).min(axis=1).mean()
    assert alone <= found.with_preemption <= found.without_preemption <= ahead
    for policy in ("min-min", "drain-argmin", "fcfs"):
        result = run_one(setting, workload, registry.load(policy, setting), 7)
        assert found.without_preemption <= (result.outcome["finish"] - arrival).mean()
    result = run_one(setting, workload, registry.load("hetero-srpt", setting), 7)
    assert found.with_preemption <= (result.outcome["finish"] - arrival).mean()


def test_it_is_close_where_no_job_is_a_gang():
    setting = prepare(adjusted(find_scenario("paper16-single"), load=0.8))
    workload = generate(setting, 1)
    found = lower_bound(setting, workload).without_preemption
    assert found > 0.98 * foresight.mean_jct(setting, workload, 1)


def test_it_does_not_depend_on_estimates_and_leaves_the_workload_as_it_is():
    exact, noisy = (
        prepare(adjusted(find_scenario("paper16"), jobs=60, estimates=source))
        for source in ("oracle", "noisy:1.0")
    )
    workload = generate(exact, 2)
    before = [array.tobytes() for array in workload]
    assert lower_bound(exact, workload) == lower_bound(noisy, generate(noisy, 2))
    assert [array.tobytes() for array in workload] == before


def test_jobs_without_any_run_time_count_as_zero():
    assert bounds(ONE, [job(0, 0), job(5, 4)]) == pytest.approx((2, 2))
    assert bounds(ONE, [job(0, 0)]) == (0, 0)
    assert bounds(ONE, [job(0, 0, start_delay=3)]) == (0, 0)  # no work ends at once


def test_it_stays_valid_if_all_jobs_come_at_once():
    rng = np.random.default_rng(3)
    jobs = [job(0, float(s)) for s in rng.uniform(1, 9, 40)]
    found = bounds(ONE, jobs)
    shortest_first = np.cumsum(sorted(spec["seconds"][0] for spec in jobs)).mean()
    assert 0.95 * shortest_first < found.with_preemption <= shortest_first
    assert 0.99 * shortest_first < found.without_preemption <= shortest_first
