"""Statistics that the report collects from runs: histograms, job groups, usage over time."""

import tomllib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario, shipped
from adlro.config.scenario import Scenario
from adlro.config.to_toml import as_toml
from adlro.evaluate.compare import run_one
from adlro.evaluate.metrics import measure
from adlro.evaluate.report.collect import (
    EDGES,
    MOST_LONG_WAITS,
    Collector,
    JobTimes,
    job_statistics,
)
from adlro.evaluate.report.groups import GANG_SIZES, PRIORITY_CLASSES, groupings
from adlro.evaluate.report.timeline import mean_level, usage_timeline
from adlro.model.state import OUTCOME
from adlro.policies import registry
from adlro.sim.world import EmptyCluster
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.worlds import World, build, fails, fill, is_repaired, job, nodes, play, records


def _statistics(jobs, outcome):
    """The statistics of one run of a scenario with three job types."""
    wait, jct = outcome["start"] - jobs["arrival"], outcome["finish"] - jobs["arrival"]
    none, every = np.zeros(0, np.int64), np.arange(len(jobs))
    ways = groupings(prepare(find_scenario("paper16")))
    return job_statistics(JobTimes(0, every, jobs, none, wait, jct), ways)


def _four_jobs():
    """Four jobs of two types: JCT 10, 100, 1000 and 10 s, waits 0, 90, 0 and 5 s."""
    jobs = records([
        job(0, 10, type=0, priority=0.1, share=500),
        job(5, 10, type=0, priority=0.5, gpus=1),
        job(6, 10, type=1, priority=0.9, gpus=4),
        job(7, 10, type=0, priority=1 / 3, gpus=16),
    ])  # fmt: skip
    outcome = fill(
        OUTCOME,
        [
            {"start": 0, "finish": 10},
            {"start": 95, "finish": 105},
            {"start": 6, "finish": 1006},
            {"start": 12, "finish": 17},
        ],
    )
    return _statistics(jobs, outcome)


def test_a_bin_holds_the_jobs_up_to_its_edge():
    counted = np.cumsum(_four_jobs().jct)
    at = {seconds: int(np.argmin(np.abs(EDGES - seconds))) for seconds in (10, 100, 1000)}
    assert [counted[at[s]] for s in (10, 100, 1000)] == [2, 3, 4]
    assert counted[at[10] - 1] == 0


def test_jobs_that_did_not_wait_are_in_the_first_bin():
    assert _four_jobs().wait[0] == 2


def test_the_longest_waits_come_first():
    assert [(one.job, one.wait_s) for one in _four_jobs().longest] == [
        (1, 90), (3, 5), (0, 0), (2, 0),
    ]  # fmt: skip


def test_jobs_are_grouped_by_type_priority_and_size():
    found = _four_jobs()
    by_type, by_priority = found.groups["type"], found.groups["priority"]
    np.testing.assert_array_equal(by_type.jobs, [3, 1, 0])
    np.testing.assert_allclose(by_type.mean_s, [(10 + 100 + 10) / 3, 1000, np.nan])
    np.testing.assert_allclose(by_type.mean_wait_s, [(0 + 90 + 5) / 3, 0, np.nan])
    classes = dict(zip(PRIORITY_CLASSES, by_priority.jobs.tolist(), strict=True))
    assert classes == {"low, below 1/3": 1, "middle": 2, "high, from 2/3": 1}
    sizes = dict(zip(GANG_SIZES, found.groups["gang"].jct_s.tolist(), strict=True))
    wanted = {"slice": 10, "1 GPU": 100, "2 GPUs": 0, "3 or 4": 1000, "5 to 8": 0, "9 or more": 10}
    assert sizes == wanted


def test_a_time_beyond_all_bins_is_in_the_last():
    jobs, late = records([job(0, 1)]), fill(OUTCOME, [{"start": 0, "finish": 1e12}])
    assert _statistics(jobs, late).jct[-1] == 1


def test_statistics_collected_from_many_threads_match_the_metrics():
    setting = prepare(adjusted(find_scenario("paper16"), jobs=60, measure="middle 70 %"))
    policy, collector = registry.load("fcfs", setting), Collector(setting)
    runs = []
    for seed in range(6):
        workload = generate(setting, seed)
        runs.append((policy, seed, workload, run_one(setting, workload, policy, seed)))
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda run: collector.watch(*run), runs))
    found = collector.statistics()["fcfs"]
    jct = [measure(setting, workload, result).mean_jct_s for _, _, workload, result in runs]
    assert set(found.groups) == {"type", "priority", "gang"}
    for totals in found.groups.values():
        assert totals.jobs.sum() == found.jct.sum() == found.wait.sum() == 6 * 42  # 70 % of 60
        assert totals.jct_s.sum() / totals.jobs.sum() == pytest.approx(np.mean(jct))


def test_what_is_collected_does_not_depend_on_the_order_in_which_runs_end():
    setting = prepare(adjusted(find_scenario("paper16"), jobs=30))
    policy, rng = registry.load("fcfs", setting), np.random.default_rng(0)
    runs = []
    for seed in range(12):
        workload = generate(setting, seed)
        runs.append((policy, seed, workload, run_one(setting, workload, policy, seed)))
    found = set()
    for _ in range(20):
        collector = Collector(setting)
        for i in rng.permutation(len(runs)):
            collector.watch(*runs[i])
        sums = collector.statistics()["fcfs"]
        seconds = (s for part in sums.groups.values() for s in (*part.jct_s, *part.wait_s))
        found.add((*map(float, seconds), *sums.longest))
        assert sums.groups["type"].jct_s.dtype == np.float64
        assert len(sums.longest) == MOST_LONG_WAITS
    assert len(found) == 1


def test_the_mean_level_of_intervals_is_exact():
    # Weight 2 from 1 to 3 and weight 1 from 2 to 6; stretches 0-2, 2-4 and 4-8:
    # (2·1) / 2 = 1, (2·1 + 1·2) / 2 = 2, (1·2) / 4 = 0.5.
    edges = np.array([0.0, 2.0, 4.0, 8.0])
    start, end, weight = (np.array(v, np.float64) for v in ((1, 2), (3, 6), (2, 1)))
    np.testing.assert_allclose(mean_level(edges, start, end, weight), [1, 2, 0.5])


def test_no_intervals_have_level_0():
    none = np.zeros(0)
    assert mean_level(np.array([0.0, 1.0, 2.0]), none, none, none).tolist() == [0, 0]


def test_use_and_queue_match_a_run_worked_by_hand():
    # One GPU. The job of time 0 runs 0-10; that of time 2 waits 2-10 and runs 10-20.
    # In intervals of 5 s: waiting 3 of 5 s, 5 of 5 s, then nobody.
    world = build([nodes()], [job(0, 10), job(2, 10)])
    found = usage_timeline(world.setting, world.workload, play(world, "fcfs"), intervals=4)
    np.testing.assert_allclose(found.hours * 3600, [2.5, 7.5, 12.5, 17.5])
    np.testing.assert_allclose(found.use, [[1, 1, 1, 1]])
    np.testing.assert_allclose(found.queue, [0.6, 1, 0, 0], atol=1e-12)


def test_a_gang_waits_as_one_job_and_is_busy_on_all_its_gpus():
    # 4 GPUs. 2 of them run 0-8; the gang of 4 waits 0-8 and runs 8-16.
    world = build([nodes(gpus=4)], [job(0, 8, gpus=2), job(0, 8, gpus=4)])
    found = usage_timeline(world.setting, world.workload, play(world, "fcfs"), intervals=2)
    np.testing.assert_allclose(found.use_of_all, [0.5, 1])
    np.testing.assert_allclose(found.queue, [1, 0], atol=1e-12)


def test_gpus_that_are_down_do_not_count_and_a_model_that_is_down_has_a_gap():
    # Stretches of 2 s. A V100 runs 0-8; the T4 idles, and its node is down in the second of them.
    world = build(
        [nodes(), nodes("T4")],
        [job(0, 8, 8, allowed=(0,))],
        events=[fails(2, 1), is_repaired(4, 1)],
    )
    found = usage_timeline(world.setting, world.workload, play(world, "fcfs"), intervals=4)
    np.testing.assert_allclose(found.use[0], 1)
    np.testing.assert_allclose(found.use[1], [0, np.nan, 0, 0])
    np.testing.assert_allclose(found.use_of_all, [0.5, 1, 0.5, 0.5])


def test_the_timeline_of_a_run_with_failures_matches_its_metrics():
    setting = prepare(adjusted(find_scenario("rough64"), jobs=250))
    workload, layout = generate(setting, 3), setting.layout
    world = World(EmptyCluster(layout.pools, layout.nodes, layout.gpus), workload, setting)
    result = play(world, "restless", 3)
    found, metrics = usage_timeline(setting, workload, result), measure(setting, workload, result)
    assert result.outcome["restarts"].sum() > 0
    assert found.queue.mean() == pytest.approx(metrics.mean_queue)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_scenario_written_as_toml_reads_back_the_same(name):
    scenario = adjusted(find_scenario(name), load=0.7)
    assert Scenario.model_validate(tomllib.loads(as_toml(scenario))) == scenario


def test_strange_names_survive_being_written_as_toml():
    named = find_scenario("paper16").model_dump()
    named["about"] = 'quotes " and \\ back\nslashes \x7f'
    named["types"][0]["name"] = "a.b c"
    named["affinity"] = {"a.b c": "V100 32GB"}
    scenario = Scenario.model_validate(named)
    assert Scenario.model_validate(tomllib.loads(as_toml(scenario))) == scenario
