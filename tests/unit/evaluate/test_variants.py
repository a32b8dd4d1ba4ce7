"""Windows of a history, and settings of its jobs under other assumptions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.config.scenario import Measure
from adlro.errors import ConfigError, TraceError
from adlro.evaluate.variants import (
    SPEEDS,
    Variant,
    Windows,
    check_fit,
    needed,
    refuse_short,
    restricted,
    rows_of,
    windows_of,
)
from adlro.workloads.cpu_jobs import CoreHolds
from adlro.workloads.generate import jobs_of, stretch_of
from tests.assessed import HEAD, V100S, row, text, variants


def parts_of(windows, jobs):
    """First played, first measured and end of each run, as replay.part places them."""
    begins = [seed * windows.stride % (jobs - windows.run_jobs + 1) for seed in windows.seeds]
    return [(b, b + windows.lead_in, b + windows.run_jobs) for b in begins]


@settings(max_examples=400)
@given(st.one_of(st.integers(0, 2_000), st.integers(0, 2_000_000)))
def test_windows_measure_no_job_twice_and_each_run_leads_in(jobs):
    windows = windows_of(jobs)
    assert (windows is None) == (jobs < needed())
    if windows is None:
        return
    parts = parts_of(windows, jobs)
    assert 4 <= windows.total <= 12
    assert windows.total == windows.per_run * len(windows.seeds)
    assert 60 <= windows.jobs <= 3_000
    assert parts[0][0] == 0
    assert parts[-1][2] > jobs - len(windows.seeds)  # to the end of the file
    for (_, measured, end), (begin, *_) in zip(parts, [*parts[1:], (jobs, 0, 0)], strict=True):
        assert end <= begin
        assert end - measured == windows.jobs * windows.per_run
    assert windows.lead_in >= 0.24 * windows.run_jobs


@settings(max_examples=200)
@given(st.integers(320, 3_000_000))
def test_the_measured_part_of_a_scenario_is_that_of_the_windows(jobs):
    windows = windows_of(jobs)
    measure = Measure(warm_up=windows.lead_in / windows.run_jobs)
    assert measure.window(windows.run_jobs) == slice(windows.lead_in, windows.run_jobs)


def test_windows_by_hand():
    assert windows_of(319) is None
    assert windows_of(320) == Windows(60, 4, 80, 0, range(1))
    assert windows_of(960) == Windows(60, 12, 240, 0, range(1))
    assert windows_of(80_000) == Windows(3_000, 12, 3_000, 22_666, range(4))
    assert windows_of(320, fewest=5) is None


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    return variants(tmp_path_factory.mktemp("variants"))


def test_a_part_of_the_jobs_is_played_at_the_recorded_pace(history):
    whole = history.setting(Variant())
    rows, windows = rows_of(whole)[40:], windows_of(320)
    part = restricted(whole, rows, windows)
    assert stretch_of(part) == pytest.approx(1, abs=1e-9)
    played = jobs_of(part, 0)
    ready = history.history.ready_s()[rows]
    np.testing.assert_array_equal(played.rows, rows)
    np.testing.assert_allclose(played.jobs["arrival"], ready - ready[0], atol=1e-6)
    assert (part.scenario.jobs, part.scenario.measure.window(320)) == (320, slice(80, 320))


def test_growth_moves_arrivals_together(history):
    whole = history.setting(Variant())
    grown = restricted(whole, rows_of(whole), windows_of(360), grow=2.0)
    assert stretch_of(grown) == pytest.approx(0.5)


def test_runs_of_a_long_history_begin_a_stride_apart(history):
    whole = history.setting(Variant())
    windows = Windows(10, 4, 20, 100, range(2))
    part = restricted(whole, rows_of(whole), windows)
    assert [jobs_of(part, seed).rows[0] for seed in windows.seeds] == [0, 100]
    assert len(jobs_of(part, 1).rows) == 40


def test_cores_are_held_at_the_recorded_time_after_the_first_jobs_are_left_out(history):
    whole = history.setting(Variant())
    one = np.array([1])
    holds = CoreHolds(one, one, np.array([50 * 800.0]), np.array([60.0]))  # as job 50 arrives
    whole = whole._replace(played=whole.played._replace(holds=holds))
    part = restricted(whole, rows_of(whole)[40:], windows_of(320))
    found = jobs_of(part, 0)
    assert found.holds.begin == pytest.approx(found.jobs["arrival"][[10]])


def test_a_variant_changes_only_what_it_names(history):
    usual = history.setting(Variant())
    assert usual.scenario.estimates.source == "request"
    for speeds in SPEEDS:
        one = history.setting(Variant(speeds, "user-mean"))
        assert (one.scenario.history.speeds, one.scenario.estimates.source) == (speeds, "user-mean")
        np.testing.assert_array_equal(rows_of(one), rows_of(usual))
        assert stretch_of(one) == pytest.approx(1)
    slurm = usual.scenario.slurm.model_copy(update={"weight_age": 5.0})
    assert history.setting(Variant(slurm=slurm)).scenario.slurm == slurm
    assert history.setting(Variant()).scenario == usual.scenario


def test_a_cluster_that_most_jobs_cannot_use_is_refused(tmp_path):
    for gangs, is_refused in (((8, 8, 1), True), ((8, 1, 1), False)):
        lines = (row(i, 100 * i, 60, gpus=gangs[i % 3]) for i in range(30))
        one = variants(tmp_path, HEAD + "".join(lines), nodes=[V100S])
        ready = one.setting(Variant())
        if is_refused:
            with pytest.raises(ConfigError, match=r"20 of 30 GPU jobs fit no pool .* another"):
                check_fit(one, ready)
        else:
            check_fit(one, ready)


def test_a_short_history_is_told_how_many_jobs_it_takes(tmp_path):
    error = refuse_short(variants(tmp_path, text(109)), 109)
    assert isinstance(error, TraceError)
    assert "109 GPU jobs in 1.0 days are too few" in str(error)
    assert "take 320" in str(error)
