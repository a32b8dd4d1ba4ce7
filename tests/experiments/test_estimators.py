"""The experiment on estimators: fair to its rivals, honest about its bars."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from adlro.errors import ConfigError
from adlro.estimates import job_table
from adlro.estimates.errors import Errors, later_part
from adlro.evaluate.prediction_error import prediction_errors
from experiments import common
from experiments.comparison_cache import ComparisonCache
from experiments.estimators import alike, boosting, reliability, run
from tests.histories import history

FOLDER = Path(run.__file__).parent


def jobs(folder, count=600):
    """A history with noise; every job takes 500 s at least, one comes every 100 s."""
    rng = np.random.default_rng(1)
    run_s = rng.integers(500, 1400, count)
    rows = "id,submit_time,run_s,user,requested_s,gpus\n" + "".join(
        f"j{i},{100 * i},{run_s[i]},u{i % 3},{3600 * (1 + i % 2)},{1 + i % 4}\n"
        for i in range(count)
    )
    return history(folder, rows)


def boosted(found, parts=1):
    jobs = job_table.table_of(found)
    later = later_part(found, 0.5)
    return boosting.boosted(found, jobs, later, parts).log_s, later


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 4])
def test_boosting_learns_only_from_what_had_ended_before_each_part(tmp_path, parts):
    found = jobs(tmp_path)
    before, later = boosted(found, parts)
    assert np.isnan(before[~later]).all()
    part = np.array_split(np.flatnonzero(later), parts)[-1]
    running = job_table.end_times(found) > found.submit_s[part[0]]
    assert running[: part[0]].sum() > 3
    found.run_s[running] *= 50
    after, _ = boosted(found, parts)
    assert after[part[0]] == before[part[0]]
    assert (after[part] != before[part]).any()  # on-line features of those that come later


@pytest.mark.slow
def test_boosting_learns_again_before_each_part(tmp_path):
    found = jobs(tmp_path)
    once, later = boosted(found)
    part = np.array_split(np.flatnonzero(later), 2)
    again, _ = boosted(found, 2)
    assert (again[part[0]] == once[part[0]]).all()
    assert (again[part[1]] != once[part[1]]).any()


def test_statistics_of_alike_jobs_are_of_those_that_had_ended(tmp_path):
    rows = "id,submit_time,run_s,user\n" + "".join(
        f"j{i},{submit},{run_s},{user}\n"
        for i, (submit, run_s, user) in enumerate(
            [(0, 10, "a"), (5, 50, "a"), (20, 7, "b"), (60, 1, "a"), (60, 1, "c"), (70, 1, "a")]
        )
    )
    found = history(tmp_path, rows)
    table = job_table.table_of(found)
    columns = dict(
        zip(alike.COLUMNS, alike.statistics(table, alike.codes_of(found.user)).T, strict=True)
    )
    np.testing.assert_allclose(np.exp(columns["last"]), [np.nan] * 3 + [50, np.nan, 1])
    np.testing.assert_allclose(np.exp(columns["last two"])[[3, 5]], [30, 25.5])
    np.testing.assert_allclose(np.exp(columns["mean"])[[3, 5]], [500**0.5, 500 ** (1 / 3)])
    np.testing.assert_allclose(np.exp(columns["median"])[[3, 5]], [50, 10])
    np.testing.assert_allclose(np.exp(columns["count"])[[3, 5]], [2, 3])
    np.testing.assert_allclose(np.expm1(columns["age"])[[3, 5]], [5, 9])  # ended at 55 and 61


def test_codes_tell_combinations_apart():
    codes = alike.codes_of(np.array([1.0, 1, np.nan, np.nan, 2]), np.array([0, 1, 0, 0, 0]))
    assert len(set(codes.tolist())) == 4
    assert codes[2] == codes[3]


def test_boosting_is_taken_from_the_cache_only_for_the_same_jobs(tmp_path):
    found = jobs(tmp_path, 40)
    table, later = job_table.table_of(found), later_part(found, 0.5)
    mark = boosting.fingerprint(found, table, later, 4)
    path = tmp_path / "kept" / "b.npz"
    assert boosting.cached(path, mark) is None
    made = boosting.Boosted(np.arange(40.0), 1.5)
    boosting.store(path, mark, made)
    again = boosting.cached(path, mark)
    assert again.cpu_s == 1.5
    np.testing.assert_array_equal(again.log_s, made.log_s)
    assert boosting.fingerprint(found, table, later, 5) != mark
    found.requested_s[3] += 1
    other = boosting.fingerprint(found, table, later, 4)
    assert boosting.cached(path, other) is None
    path.write_bytes(b"no archive")
    assert boosting.cached(path, mark) is None


def test_without_lightgbm_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ConfigError, match="pip install lightgbm"):
        boosted(jobs(tmp_path, 20))


def test_without_its_data_it_ends_with_status_2_and_one_line(tmp_path):
    environment = {**os.environ, "ADLRO_SHARED": str(tmp_path / "absent")}
    path = FOLDER / "run.py"
    asked = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment)
    assert asked.returncode == 2
    assert asked.stderr.count("\n") == 1
    assert "absent: no such folder" in asked.stderr


def errors(**mae):
    usual = dict.fromkeys((*run.RIVALS, "user mean"), 2.0) | {"gradient boosting": 1.0}
    found = usual | {name.replace("_", " "): value for name, value in mae.items()}
    return {name: Errors(10, value, 0.5, 0.5) for name, value in found.items()}


@pytest.mark.parametrize(
    ("name", "found", "said"),
    [
        ("Mira", errors(memory=1.09), "met"),
        ("Mira", errors(memory=1.2), "met; boosting is better by 17%"),  # 1 - 1 / 1.2
        ("Mira", errors(memory=1.0, request=1.0), "**missed**"),
        ("Mira", errors(memory=1.0, last_two_alike=0.9), "**missed**"),
        ("Mira", errors(memory=1.0, user_mean=0.9), "met"),
        ("PAI", errors(memory=1.0, user_mean=0.9), "**missed**"),
    ],
)
def test_the_verdict_is_by_the_rivals_and_by_boosting(name, found, said):
    assert run._verdict(name, found) == said


def test_the_published_figures_hold_the_bars():
    figures = {
        (one.row, one.column): one.value
        for one in common.load_expected(FOLDER / "expected.json").figures
    }
    for name in run.FILES:
        memory = figures[f"{name}, memory", "mae_log"]
        for rival in run.RIVALS:
            assert memory < figures[f"{name}, {rival}", "mae_log"], (name, rival)
        assert memory < 1.1 * figures[f"{name}, gradient boosting", "mae_log"], name


@pytest.mark.slow
def test_the_quick_run_is_as_expected(tmp_path):
    try:
        data = common.shared() / "data"
    except ConfigError as exc:
        pytest.skip(str(exc))
    if not (data / run.FILES["ThetaGPU"]).is_file():
        pytest.skip(f"{data}: has no ThetaGPU")
    figures = run.make(True, ComparisonCache(tmp_path, False)).figures
    wanted = common.load_expected(FOLDER / "expected.json")
    some = [one for one in wanted.figures if one.row.partition(",")[0] in run.QUICK]
    assert some
    assert common.misses(figures, wanted.model_copy(update={"figures": tuple(some)})) == []


def test_the_tables_of_intervals_and_confidences_hold_every_measured_job(tmp_path):
    found = jobs(tmp_path)
    predicted, later = {"toy": prediction_errors(found)}, {"toy": later_part(found, 0.5)}
    figures = {}
    cover = reliability.coverage_table(predicted, later, figures)
    assert cover.head[1:] == ("memory", "request", "last two", "last two alike", "user mean")
    assert cover.lines[0][0] == "toy"
    assert 0.5 < figures["toy, intervals"]["memory"] <= 1  # run times within 500 to 1,400 s
    table = reliability.reliability_table(predicted, later, figures)
    counted = [cell.split("(")[1].rstrip(")") for cell in table.lines[0][1:-1] if cell]
    assert sum(int(cell.replace(",", "")) for cell in counted) == later["toy"].sum()
    assert 0 <= figures["toy, confidence"]["mean_gap"] < 0.3
