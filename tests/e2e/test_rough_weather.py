"""Failures, slices and telemetry as a user meets them on the command line."""

import csv
import json
import subprocess
import sys

ADLRO = (sys.executable, "-m", "adlro")


def adlro(*args):
    return subprocess.run([*ADLRO, *args], capture_output=True, text=True, check=False)


def test_simulate_tells_of_restarts_slices_and_time_down(tmp_path):
    page, series = tmp_path / "schedule.html", tmp_path / "series.csv"
    result = adlro(
        "simulate", "rough64", "--jobs", "150", "--policy", "fcfs", "--gantt", str(page),
        "--telemetry", str(series), "--telemetry-every", "300",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    words = ("restarts of a job", "work thrown away", "left over beside slices", "of them slices")
    words += ("busy % of time up", "down %", f"schedule: {page}", f"telemetry: {series}")
    assert [word for word in words if word not in result.stdout] == []
    assert page.read_text().startswith("<!doctype html>")
    rows = list(csv.DictReader(series.read_text().splitlines()))
    assert {float(row["time_s"]) % 300 for row in rows} == {0}
    assert f"({len(rows):,} rows)" in result.stdout


def test_a_calm_cluster_has_no_columns_for_what_did_not_happen():
    result = adlro("simulate", "paper16", "--jobs", "30")
    assert "busy %" in result.stdout
    assert [word for word in ("down %", "slices ", "time up") if word in result.stdout] == []


def test_telemetry_is_turned_on_where_the_scenario_has_none(tmp_path):
    series = tmp_path / "series.csv"
    result = adlro("simulate", "paper16", "--jobs", "20", "--telemetry", str(series), "--json", "-")
    assert json.loads(result.stdout)["jobs"] == 20
    assert f"telemetry: {series}" in result.stderr
    assert (
        max(float(row["power_w"]) for row in csv.DictReader(series.read_text().splitlines())) > 100
    )


def test_a_place_that_cannot_be_written_is_refused_before_the_work():
    result = adlro("simulate", "--telemetry", "nowhere/series.csv")
    assert result.returncode == 2
    assert "nowhere/series.csv" in result.stderr


def test_an_interval_of_nothing_is_refused():
    result = adlro("simulate", "--telemetry", "series.csv", "--telemetry-every", "0")
    assert result.returncode == 2
    assert "--telemetry-every" in result.stderr


def test_the_table_has_columns_for_restarts_only_where_there_are_any():
    few = ("--seeds", "2", "--policies", "fcfs,static-affinity-lp,min-min")
    rough, calm = (adlro("compare", name, *few).stdout for name in ("rough64", "paper16"))
    assert max(len(line) for line in rough.splitlines()) <= 120
    headings = ("restarts", "lost", "GPU-h", "left", "over %")
    assert [word for word in headings if word not in rough] == []
    assert [word for word in headings if word in calm] == []
    row = next(line for line in rough.splitlines() if "static-affinity-lp" in line)
    assert len(row.replace("±", "").split()) == 12  # in one line, nothing folded
