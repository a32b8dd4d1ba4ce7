"""A simulation against what was recorded of the same jobs."""

import json

import numpy as np
import pytest

from adlro.config.files import adjusted
from adlro.evaluate.calibration import Twin
from adlro.evaluate.significance import rank_correlation
from adlro.model.state import OUTCOME
from adlro.sim.simulator import RunResult
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.comparisons import policy
from tests.recorded import WAITS, rows, setting


def calibrated(ready, waits, *, run=200.0, name="slurm", twin="slurm"):
    """The calibration of made-up runs, whose jobs wait that long; one list of waits for a seed."""
    collector = Twin(ready, twin)
    for seed, some in enumerate(waits):
        workload = generate(ready, seed)
        outcome = np.zeros(len(workload.jobs), OUTCOME)
        outcome["start"] = workload.jobs["arrival"] + some
        outcome["finish"] = outcome["start"] + run
        result = RunResult(outcome, *([None] * (len(RunResult._fields) - 1)))
        collector.watch(policy(name), seed, workload, result)
    return collector.calibration(range(len(waits)))


def test_a_simulation_that_meets_the_record_is_within_0_percent(tmp_path):
    found = calibrated(setting(tmp_path), [WAITS[:4], WAITS[4:]])
    assert (found.within_pct, found.is_close, found.jobs) == (0, True, 8)
    assert found.rank_correlation == pytest.approx(1)
    assert found.reasons == []
    text = found.headline()
    assert text.startswith("With slurm, this simulation reproduces your cluster within 0 %")
    assert "mean JCT +0.0 % (4 min recorded, 4 min simulated)" in text
    assert "mean wait +0.0 % (35 s recorded, 35 s simulated), over 8 jobs" in text


def test_several_runs_of_a_seed_count_as_one_with_their_mean_times(tmp_path):
    ready = setting(tmp_path)
    once = calibrated(ready, [np.multiply(1.2, WAITS[:4]), np.multiply(1.2, WAITS[4:])])
    collector = Twin(ready)
    for seed, some in enumerate((WAITS[:4], WAITS[4:])):
        for factor in (0.6, 1.2, 1.8):
            wait = np.multiply(factor, some)
            collector.add(seed, wait, wait + 200.0)
    found = collector.calibration(range(2))
    assert found.jobs == 8
    assert found.wait_s.simulated == pytest.approx(once.wait_s.simulated)
    assert found.jct_s.simulated == pytest.approx(once.jct_s.simulated)


def test_the_larger_of_both_differences_counts(tmp_path):
    # Mean wait 35 -> 38.5 s (+10 %), mean JCT 235 -> 238.5 s (+1.5 %).
    found = calibrated(
        setting(tmp_path), [np.multiply(1.1, WAITS[:4]), np.multiply(1.1, WAITS[4:])]
    )
    assert found.wait_s.difference_pct == pytest.approx(10)
    assert found.jct_s.difference_pct == pytest.approx(100 * 3.5 / 235)
    assert found.within_pct == pytest.approx(10)
    assert found.is_close


def test_a_simulation_that_is_off_is_a_warning_with_a_reason(tmp_path):
    found = calibrated(setting(tmp_path), [[0] * 4, [0] * 4])
    assert found.within_pct == pytest.approx(100)
    assert not found.is_close
    assert found.headline().startswith(
        "WARNING: with slurm, this simulation is 100 % off your cluster"
    )
    assert found.rank_correlation is None
    assert found.reasons
    json.dumps(found.model_dump(), allow_nan=False)


def test_waits_that_hardly_matter_are_no_warning(tmp_path):
    ready = setting(tmp_path, rows([0, 1, 0, 1, 0, 1, 0, 1], run=1000))
    found = calibrated(ready, [[0] * 4, [0] * 4], run=1000.0)
    assert found.wait_s.difference_pct == pytest.approx(-100)
    assert found.is_close
    assert found.within_pct == pytest.approx(100 * 0.5 / 1000.5)


def test_partitions_come_by_themselves(tmp_path):
    lines = rows().splitlines(keepends=True)
    text = "".join(line.replace("main", "long") if i > 6 else line for i, line in enumerate(lines))
    found = calibrated(setting(tmp_path, text), [WAITS[:4], [0, 0, 0, 0]])
    assert [(one.partition, one.jobs) for one in found.partitions] == [("main", 6), ("long", 2)]
    long = found.partitions[1]
    assert (long.wait_s.recorded, long.wait_s.simulated) == (65, 0)
    assert long.jct_s.difference_pct == pytest.approx(100 * (200 / 265 - 1))


def test_another_policy_than_the_twin_is_not_compared_unless_asked_for(tmp_path):
    ready = setting(tmp_path)
    assert calibrated(ready, [WAITS[:4]], name="fcfs") is None
    assert calibrated(ready, [WAITS[:4]], name="fcfs", twin="fcfs").is_close


def test_nothing_is_compared_at_another_load_or_without_starts(tmp_path):
    ready = setting(tmp_path)
    other = prepare(adjusted(ready.scenario, load=2 * ready.scenario.load))
    assert calibrated(other, [WAITS[:4]]) is None
    assert calibrated(setting(tmp_path, rows([None] * 8)), [WAITS[:4]]) is None


def test_jobs_without_a_start_and_jobs_that_are_not_measured_do_not_count(tmp_path):
    ready = setting(tmp_path, rows([0, None, 20, 30, 40, 50, 60, 70]))
    found = calibrated(ready, [[0, 999, 20, 30]])
    assert (found.jobs, found.within_pct) == (3, 0)
    ready = setting(tmp_path, more='measure = "after 50 %"')
    assert calibrated(ready, [[999, 999, 20, 30]]).within_pct == 0


def reasons(folder, waits=None, text=None, more="", history="", load=None):
    """The likely reasons where the simulated jobs wait for nothing, unless `waits` says more."""
    ready = setting(folder, text, jobs=8, more=more, history=history)
    if load is not None:
        ready = ready._replace(scenario=adjusted(ready.scenario, load=load))
    return " | ".join(calibrated(ready, [[0] * 8 if waits is None else waits]).reasons)


def test_jobs_that_waited_beside_idle_gpus_hint_at_limits(tmp_path):
    found = reasons(tmp_path, text=rows([100] * 8, every=300))
    assert "8 of 8 jobs waited longer than 60 s while at most half of the GPUs were in use" in found
    assert "reservations, limits of QOS or associations" in found


def test_more_gpus_in_use_than_there_are_hint_at_missing_nodes(tmp_path):
    text = rows([0] * 8, gpus=4)  # two jobs of 4 GPUs run at a time
    found = reasons(tmp_path, waits=[900] * 8, text=text)
    assert "up to 8 GPUs were in use at once, but the cluster has 4" in found


def test_a_full_cluster_at_the_start_of_a_window_hints_at_the_empty_one_simulated(tmp_path):
    # Jobs start 300 s after their submission. When the second window's first job comes (at 1400),
    # only j0 runs (1300 to 1500), on one of 4 GPUs, and none when the first's does: 12.5 %.
    ready = setting(tmp_path, rows([300] * 8))
    found = " | ".join(calibrated(ready, [[0] * 4, [0] * 4]).reasons)
    assert "12 % of the GPUs were in use when the recorded windows began" in found
    longer = " | ".join(calibrated(ready, [[900] * 4, [900] * 4]).reasons)
    assert "when the recorded windows began" not in longer  # that makes no wait longer


def test_run_times_that_differ_hint_at_speeds(tmp_path):
    ready = setting(tmp_path)
    found = calibrated(ready, [WAITS[:4], WAITS[4:]], run=300.0)
    assert "jobs run 50 % longer in the simulation than recorded" in " | ".join(found.reasons)


def test_waits_of_jobs_that_start_at_once_hint_at_the_delay_of_starts(tmp_path):
    text = rows([2] * 8, run=5)
    assert "had waited 2 s (median): set start_delay_s" in reasons(tmp_path, text=text)
    assert "start_delay_s" not in reasons(tmp_path, text=text, more="start_delay_s = 1")


def test_missing_time_limits_are_a_hint(tmp_path):
    text = rows([100] * 8).replace(",600\n", ",\n")
    assert "100 % of the jobs have no time limit" in reasons(tmp_path, text=text)


def test_jobs_that_are_not_played_are_a_hint(tmp_path):
    big = "big,1100,1100,1300,200,16,main,600\n"
    text = rows([100] * 8)
    assert "1 jobs with GPUs" in reasons(tmp_path, text=text + big, history='unfit = "drop"')
    assert "not played" not in reasons(tmp_path, text=text)


def test_where_nothing_hints_at_a_reason_that_is_said(tmp_path):
    # 4 GPUs are all in use while a job waits, and the windows begin empty.
    found = reasons(tmp_path, waits=[900] * 8, text=rows([0] * 8))
    assert "nothing in the file hints at why" in found


def test_ranks_correlate_as_spearman_says():
    # d = 0, -1, 1, 0: 1 - 6 * 2 / (4 * 15) = 0.8
    assert rank_correlation(np.array([1.0, 2, 3, 4]), np.array([1.0, 30, 20, 40])) == pytest.approx(
        0.8
    )
    assert rank_correlation(np.array([1.0, 2, 3]), np.array([9.0, 8, 1])) == pytest.approx(-1)
    assert rank_correlation(np.array([1.0, 2]), np.array([5.0, 5])) is None
