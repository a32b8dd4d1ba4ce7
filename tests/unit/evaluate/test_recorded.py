"""The row of what happened: computed from the history, over the jobs of each seed."""

import json
import math

import numpy as np
import pytest

from adlro.config.files import adjusted
from adlro.errors import PolicyError
from adlro.evaluate import recorded
from adlro.evaluate.compare import compare
from adlro.evaluate.report import summary, table
from adlro.evaluate.rows import JctDifference
from adlro.workloads.setting import prepare
from tests.comparisons import policy
from tests.recorded import WAITS, rows, setting, summarised


def test_each_seed_has_the_figures_of_its_own_jobs(tmp_path):
    # Seed 0 plays the waits 0 to 30, seed 1 the waits 40 to 70; all run for 200 s.
    ready = setting(tmp_path)
    first, second = (recorded.measure(ready, seed) for seed in (0, 1))
    assert first.metrics["mean_wait_s"] == 15
    assert second.metrics["mean_wait_s"] == 55
    assert second.metrics["mean_jct_s"] == 255
    assert second.metrics["longest_wait_s"] == 70
    assert first.metrics["p50_jct_s"] == 215
    assert first.metrics["p99_jct_s"] == pytest.approx(np.percentile([200, 210, 220, 230], 99))
    # Seed 0 lasts from 0 to 300 + 30 + 200 s, and its jobs hold a GPU for 4 x 200 s.
    assert first.metrics["makespan_s"] == 530
    assert first.metrics["gpu_utilisation"] == pytest.approx(800 / (4 * 530))
    assert first.metrics["throughput_jobs_per_h"] == pytest.approx(4 / 530 * 3600)
    assert first.metrics["mean_queue"] == pytest.approx(60 / 530)
    assert (first.jobs, first.without_start, first.early) == (4, 0, 0)


def test_only_measured_jobs_count_for_means(tmp_path):
    ready = setting(tmp_path, more='measure = "after 50 %"')
    found = recorded.measure(ready, 0)
    assert found.metrics["mean_wait_s"] == 25  # of 20 and 30
    assert found.metrics["makespan_s"] == 530  # of the whole run
    assert found.jobs == 2


def test_the_row_has_intervals_and_paired_differences_both_ways(tmp_path):
    result = summarised(setting(tmp_path), {"a": 107.5, "b": 215.0})
    row = result.recorded
    assert (row.name, row.is_simulated) == ("recorded", False)
    assert row.metrics["mean_jct_s"].mean == 235
    assert row.metrics["mean_jct_s"].ci95 is not None
    assert row.per_seed["mean_wait_s"] == [15, 55]
    assert row.jct_versus("a").mean == pytest.approx(100 * (235 / 107.5 - 1))
    assert result.policies[0].jct_versus("recorded").mean == pytest.approx(100 * (107.5 / 235 - 1))
    assert isinstance(row.jct_versus("a"), JctDifference)
    assert row.jct_versus("a").p_holm is None
    assert "mean_wait_pct" in result.policies[0].versus["recorded"]
    assert "hyperscore" not in row.metrics
    assert [one.name for one in result.policies] == ["a", "b"]  # it is no policy
    again = json.loads(result.model_dump_json())
    assert again["recorded"]["metrics"]["mean_wait_s"]["mean"] == 35
    assert again["windows"] == 2


def absent(ready, seeds=2):
    result = summarised(ready, {"a": 1.0}, seeds)
    assert result.recorded is None
    assert "recorded" not in result.policies[0].versus
    (note,) = (note for note in result.notes if "what happened" in note)
    return note


def test_without_starts_the_row_is_missing_and_that_is_said(tmp_path):
    assert "the history records no starts" in absent(setting(tmp_path, rows([None] * 8)))


def test_at_another_load_recorded_waits_do_not_apply(tmp_path):
    ready = setting(tmp_path)
    load = ready.scenario.load
    faster = prepare(adjusted(ready.scenario, load=2 * load))
    note = absent(faster)
    assert "arrivals are 0.5 times as far apart as recorded" in note
    assert f"(load {2 * load:.4g}, recorded {load:.4g})" in note


def test_too_many_jobs_without_a_start_leave_no_row(tmp_path):
    note = absent(setting(tmp_path, rows([0, 10, None, 30, 40, 50, 60, 70])))
    assert "1 of 8 measured jobs have no recorded start" in note
    note = absent(setting(tmp_path, rows([None] * 4 + [40, 50, 60, 70])))
    assert "1 of 2 seeds have no recorded start" in note


def test_a_few_jobs_without_a_start_are_left_out_of_the_row_and_counted(tmp_path):
    waits = [10] * 199 + [None]
    result = summarised(setting(tmp_path, rows(waits), jobs=100), {"a": 1.0})
    assert result.recorded.without_start == 1
    assert result.recorded.metrics["mean_wait_s"].mean == 10
    assert any("1 of 200 measured jobs have no recorded start" in note for note in result.notes)


def test_waits_below_zero_count_as_none_and_are_counted(tmp_path):
    text = rows().replace("requested_s\n", "requested_s,eligible_s\n")
    lines = [
        f"{line},{2000 if i == 2 else ''}" if i else line
        for i, line in enumerate(text.splitlines())
    ]
    result = summarised(setting(tmp_path, "\n".join(lines) + "\n", jobs=8), {"a": 1.0}, seeds=1)
    assert result.recorded.early == 1
    assert result.recorded.metrics["mean_wait_s"].mean == (sum(WAITS) - 10) / 8
    assert any("started before they could" in note for note in result.notes)


@pytest.mark.parametrize(
    "text",
    [rows([5]), rows([0, 0, 0, 0], every=0), rows([0, 0], run=0), rows([0, 0], run=0, every=0)],
    ids=["one job", "in one second", "no run time", "no time at all"],
)
def test_odd_histories_give_no_nan(tmp_path, text):
    result = summarised(setting(tmp_path, text, jobs=1), {"a": 1.0, "b": 2.0}, seeds=1)
    figures = json.loads(result.model_dump_json())
    if figures["recorded"] is not None:
        means = [one["mean"] for one in figures["recorded"]["metrics"].values()]
        assert all(math.isfinite(mean) for mean in means)
        for row in result.policies:
            assert math.isfinite(row.jct_versus("recorded").mean)


def test_a_policy_cannot_have_the_name_of_the_row(tmp_path):
    with pytest.raises(PolicyError, match="rename its file"):
        compare(setting(tmp_path), [policy("recorded")], range(1))


@pytest.mark.parametrize(("load", "is_said"), [(0.9, False), (1.5, True)])
def test_overload_is_said_plainly(tmp_path, load, is_said):
    result = summarised(prepare(adjusted(setting(tmp_path).scenario, load=load)), {"a": 1.0})
    assert any("waits then measure the length of the file" in n for n in result.notes) is is_said


def test_run_times_that_no_scheduler_has_are_marked(tmp_path):
    plain = setting(tmp_path)
    assert plain.scenario.estimates.source == "memory"
    asked = prepare(adjusted(plain.scenario, estimates="oracle"))
    for ready, is_said in ((plain, False), (asked, True)):
        notes = summarised(ready, {"a": 1.0}).notes
        assert any("no real scheduler has them" in note for note in notes) is is_said


def test_the_report_has_the_row_first_and_every_policy_against_it(tmp_path):
    result = summarised(setting(tmp_path), {"a": 107.5, "b": 215.0})
    ((_, html),) = table.tables(result)
    head, first, second = html.split("<tr")[1:4]
    assert "vs recorded" in head
    assert "recorded (what happened, not simulated)" in first
    assert "3.9\u00a0±" in first  # minutes: 235 s
    assert "<td></td>" in first  # what the record does not have, such as the time of a decision
    assert 'class="best"' not in first
    assert 'class="best"' in second
    assert "-54.3\u00a0%" in second  # 107.5 / 235
    (told,) = (text for text in summary.summary(result) if "What happened" in text)
    assert "mean completion time of 3.9 ±" in told
