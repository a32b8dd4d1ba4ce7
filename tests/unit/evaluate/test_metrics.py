"""Metrics on a schedule small enough to check by hand."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.evaluate.compare import run_one
from adlro.evaluate.hyperscore import hyperscore
from adlro.evaluate.metrics import Metrics, fastest_possible, jain, measure
from adlro.model.state import EVENT
from adlro.policies import registry
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.looped import every
from tests.worlds import fails, fill, is_repaired

SCENARIO = {
    "name": "hand",
    "cluster": {
        "nodes": [{"name": "a", "gpu": "V100 32GB", "gpus": 2, "cores": 8, "memory_gb": 64}]
    },
    "types": [
        {"name": "t", "share": 1, "speed": {"V100": 1}, "size": {"law": "constant", "seconds": 100}}
    ],
    "jobs": 3,
    "users": 2,
}


@pytest.fixture
def by_hand():
    """Two GPUs, fcfs. Job 0: 0-100 on GPU 0. Job 1 (2 GPUs): waits, 100-150. Job 2: 150-160."""
    setting = prepare(Scenario.model_validate(SCENARIO))
    drawn = generate(setting, 0)
    jobs = drawn.jobs.copy()
    jobs["arrival"], jobs["gpus"], jobs["user"] = [0, 20, 30], [1, 2, 1], [0, 1, 1]
    jobs["priority"] = [0.0, 0.5, 1.0]
    seconds = np.array([[100.0], [50.0], [10.0]])
    workload = drawn._replace(jobs=jobs, est=seconds, seconds=seconds)
    result = run_one(setting, workload, registry.load("fcfs", setting), 0)
    return setting, workload, result, measure(setting, workload, result)


def test_times_of_the_hand_worked_schedule(by_hand):
    metrics = by_hand[3]
    # JCT 100, 130, 130; waits 0, 80, 120
    assert metrics.mean_jct_s == pytest.approx(120)
    assert metrics.weighted_jct_s == pytest.approx((0.5 * 130 + 1.0 * 130) / 1.5)
    assert metrics.p50_jct_s == pytest.approx(130)
    assert metrics.mean_wait_s == pytest.approx(200 / 3)
    assert metrics.longest_wait_s == pytest.approx(120)
    # job 1 waits from 20 to 100, job 2 from 30 to 150, in 160 s
    assert metrics.mean_queue == pytest.approx(200 / 160)
    # slowdowns 1, 130/50, 130/10
    assert metrics.bounded_slowdown == pytest.approx((1 + 2.6 + 13) / 3)


def test_lost_runs_are_load_but_not_measured(by_hand):
    setting, workload, result, all_three = by_hand
    found = measure(setting, workload._replace(lost=np.array([True, False, False])), result)
    assert found.mean_jct_s == pytest.approx(130)
    assert found.mean_wait_s == pytest.approx(100)
    assert found.throughput_jobs_per_h == pytest.approx(2 / 3 * all_three.throughput_jobs_per_h)
    assert found.energy_per_job_kwh == pytest.approx(1.5 * all_three.energy_per_job_kwh)
    same = ("gpu_utilisation", "mean_queue", "makespan_s", "offered_load", "cost", "energy_kwh")
    assert [getattr(found, name) for name in same] == [getattr(all_three, name) for name in same]


def test_use_of_the_cluster_in_the_hand_worked_schedule(by_hand):
    metrics = by_hand[3]
    # 160 s from first arrival to last finish; GPU 0 busy 160 s, GPU 1 busy 50 s
    assert metrics.makespan_s == pytest.approx(160)
    assert metrics.throughput_jobs_per_h == pytest.approx(3 * 3600 / 160)
    assert metrics.gpu_utilisation == pytest.approx(210 / 320)
    assert metrics.idle_gpu_s == pytest.approx(110)
    shares = np.array([160, 50]) / 160
    assert metrics.gpu_imbalance == pytest.approx(shares.std() / shares.mean())
    assert metrics.model_imbalance == 0
    # 300 W: 210 s busy, 110 s idle at 15 %
    assert metrics.energy_kwh == pytest.approx(300 * (210 + 0.15 * 110) / 3.6e6)


def test_fairness_reward_and_score_of_the_hand_worked_schedule(by_hand):
    setting, _, _, metrics = by_hand
    # user 0: 100/100; user 1: mean of 50/130 and 10/130 = 30/130
    x = np.array([1, 30 / 130])
    assert metrics.jain_users == pytest.approx(x.sum() ** 2 / (2 * (x**2).sum()))
    # equal share = 1 GPU each: the gang of 2 would take 100 s; ratios 1, 1.3, 13
    assert metrics.finish_time_fairness == pytest.approx(np.percentile([1, 1.3, 13], 95))
    assert metrics.reward == pytest.approx(-(120 + 0.5 * 110 / 3))
    v = ((160 / 3) / 120 * (3 / 160) / setting.capacity_per_s * (210 / 320)) ** (1 / 3)
    assert metrics.hyperscore == pytest.approx(hyperscore(v))


def test_cost_and_energy_of_a_job_in_the_hand_worked_schedule(by_hand):
    metrics = by_hand[3]
    # 210 s busy on V100s, which are worth 1; three jobs, mean JCT 120 s
    assert metrics.cost == pytest.approx(210 / 3600)
    assert metrics.cost_per_job == pytest.approx(70 / 3600)
    energy = 300 * (210 + 0.15 * 110) / 3.6e6
    assert metrics.energy_per_job_kwh == pytest.approx(energy / 3)
    assert metrics.energy_delay == pytest.approx(energy * 120 / 3600)


def test_with_prices_cost_is_in_money(by_hand):
    _, workload, result, _ = by_hand
    priced = prepare(Scenario.model_validate({**SCENARIO, "prices": {"V100": 2.48, "T4": 0.35}}))
    assert measure(priced, workload, result).cost == pytest.approx(2.48 * 210 / 3600)


@pytest.mark.parametrize(
    ("shares", "weight"),
    [({}, [1, 1]), ({"a": 0.5, "b": 0.2}, [0.5, 0.2]), ({"b": 0.2}, [0.4, 0.2])],
)
def test_accounts_weigh_as_much_as_they_are_entitled_to(by_hand, shares, weight):
    # Account a: 100/100; account b: mean of 50/130 and 10/130 = 30/130. Account c has no jobs, and
    # an account without a share an equal part of what the shares leave: (1 - 0.2) / 2.
    _, workload, result, _ = by_hand
    jobs = workload.jobs.copy()
    jobs["account"] = [0, 1, 1]
    quotas = [{"account": name, "share": share} for name, share in shares.items()]
    text = {**SCENARIO, "accounts": ["a", "b", "c"], "quotas": quotas}
    setting = prepare(Scenario.model_validate(text))
    metrics = measure(setting, workload._replace(jobs=jobs), result)
    x, w = np.array([1, 30 / 130]), np.array(weight)
    expected = (w * x).sum() ** 2 / (w.sum() * (w * x**2).sum())
    assert metrics.jain_accounts == pytest.approx(expected)


def test_only_the_middle_jobs_count_when_the_scenario_says_so(by_hand):
    setting, workload, result, _ = by_hand
    text = {**SCENARIO, "measure": "middle 34 %"}
    middle = prepare(Scenario.model_validate(text))
    metrics = measure(middle, workload, result)
    assert str(middle.scenario.measure) == "middle 34 %"
    assert metrics.mean_jct_s == pytest.approx(130)  # job 1 alone
    assert metrics.throughput_jobs_per_h == pytest.approx(3 * 3600 / 160)  # of the whole run
    assert setting.scenario.measure.window(3) == slice(0, 3)


def test_a_gang_larger_than_a_node_always_has_the_span_penalty():
    nodes = [{"name": "a", "count": 2, "gpu": "V100", "gpus": 1, "cores": 8, "memory_gb": 64}]
    types = [{**SCENARIO["types"][0], "gpus": 2, "communication": 0.5}]
    text = {**SCENARIO, "cluster": {"nodes": nodes}, "types": types}
    setting = prepare(Scenario.model_validate(text))
    workload = generate(setting, 0)
    assert fastest_possible(workload, setting.layout) == pytest.approx([150, 150, 150])


def test_jain_is_one_for_equal_shares_and_one_nth_for_a_single_holder():
    assert jain(np.array([3.0, 3.0, 3.0])) == pytest.approx(1)
    assert jain(np.array([0.0, 0.0, 5.0, 0.0])) == pytest.approx(1 / 4)


def _one_gpu_nodes(count, seconds, *, events=(), **fields):
    """Metrics and result of fcfs on single-V100 nodes; keyword arguments set fields of all jobs."""
    node = {**SCENARIO["cluster"]["nodes"][0], "count": count, "gpus": 1}
    scenario = {**SCENARIO, "cluster": {"nodes": [node]}, "jobs": len(seconds)}
    setting = prepare(Scenario.model_validate(scenario))
    drawn = generate(setting, 0)
    jobs, work = drawn.jobs.copy(), np.array(seconds, np.float64)[:, None]
    jobs["arrival"], jobs["checkpoint"] = 0.0, -1.0
    for name, values in fields.items():
        jobs[name] = values
    happened = fill(EVENT, list(events))
    workload = drawn._replace(jobs=jobs, est=work, seconds=work, events=happened)
    result = run_one(setting, workload, registry.load("fcfs", setting), 0)
    return measure(setting, workload, result), result


@pytest.fixture
def broken():
    """Two nodes of a GPU. Job 1, a slice, is on node 1 until 50; node 0 is down from 40 to 60.

    Job 0 is lost with it, starts over on node 1 at 50 and ends at 150.
    """
    events = [fails(40, 0), is_repaired(60, 0)]
    return _one_gpu_nodes(2, [100, 50], events=events, share=[1000, 400], user=[0, 1])


def test_a_gpu_that_is_down_is_neither_busy_nor_idle(broken):
    metrics, result = broken
    assert result.outcome["finish"].tolist() == [150, 50]
    # GPU 0: up 130 s, busy 40; GPU 1: up 150 s, busy 50 * 0.4 + 100
    assert metrics.gpu_utilisation == pytest.approx(160 / 280)
    assert metrics.idle_gpu_s == pytest.approx(120)
    shares = np.array([40 / 130, 120 / 150])
    assert metrics.gpu_imbalance == pytest.approx(shares.std() / shares.mean())
    assert metrics.energy_kwh == pytest.approx(300 * (160 + 0.15 * 120) / 3.6e6)


def test_restarts_lost_work_and_fragmentation_beside_a_slice(broken):
    metrics, _ = broken
    assert metrics.restarts == pytest.approx(0.5)
    assert metrics.lost_gpu_s == pytest.approx(40)
    assert metrics.fragmentation == pytest.approx(0.6 * 50 / 280)


def test_a_job_that_waits_again_is_in_the_queue_again(broken):
    # job 0 waits from 40, when its node fails, to 50; the run takes 150 s
    metrics, _ = broken
    assert metrics.mean_queue == pytest.approx(10 / 150)


def test_waiting_ends_with_the_first_start_and_a_run_lasts_from_there_to_the_finish(broken):
    metrics, _ = broken
    assert metrics.longest_wait_s == 0
    assert metrics.bounded_slowdown == pytest.approx(1)


def test_work_lost_on_a_slice_counts_as_its_share():
    events = [fails(40, 0), is_repaired(60, 0)]
    metrics, _ = _one_gpu_nodes(1, [100], events=events, share=400)
    assert metrics.lost_gpu_s == pytest.approx(0.4 * 40)


def test_a_slice_counts_as_its_share_in_finish_time_fairness():
    metrics, _ = _one_gpu_nodes(1, [100, 100], share=[600, 300], user=[0, 1])
    # half of the GPU for each user: 0.6 of it would take 120 s there, 0.3 no longer than here
    assert metrics.finish_time_fairness == pytest.approx(np.percentile([100 / 120, 1], 95))


def test_a_gpu_that_was_never_up_does_not_count_towards_imbalance():
    metrics, _ = _one_gpu_nodes(2, [100], events=[fails(0, 1, planned=True)])
    assert metrics.gpu_utilisation == pytest.approx(1)
    assert metrics.gpu_imbalance == 0


@every("seed", range(3))
@pytest.mark.parametrize("policy", ["fcfs", "min-min", "static-affinity"])
def test_all_metrics_of_a_run_with_failures_are_finite(policy, seed):
    setting = prepare(adjusted(find_scenario("rough64"), jobs=150))
    workload = generate(setting, seed)
    metrics = measure(
        setting, workload, run_one(setting, workload, registry.load(policy, setting), seed)
    )
    assert [
        name for name, x in zip(Metrics._fields, metrics, strict=True) if not np.isfinite(x)
    ] == []
    assert 0 < metrics.gpu_utilisation <= 1
    assert 0 < metrics.fragmentation < 1
