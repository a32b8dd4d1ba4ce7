"""Failures, slices and telemetry as a user meets them on the command line."""

import csv
import json

import pytest

from tests.commands import called


def test_simulate_tells_of_restarts_slices_and_time_down(tmp_path):
    page, series = tmp_path / "schedule.html", tmp_path / "series.csv"
    result = called(
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
    result = called("simulate", "paper16", "--jobs", "30")
    assert "busy %" in result.stdout
    assert [word for word in ("down %", "slices ", "time up") if word in result.stdout] == []


def test_telemetry_is_turned_on_where_the_scenario_has_none(tmp_path):
    series = tmp_path / "series.csv"
    result = called(
        "simulate", "paper16", "--jobs", "20", "--telemetry", str(series), "--json", "-"
    )
    assert json.loads(result.stdout)["jobs"] == 20
    assert f"telemetry: {series}" in result.stderr
    assert (
        max(float(row["power_w"]) for row in csv.DictReader(series.read_text().splitlines())) > 100
    )


def test_a_place_that_cannot_be_written_is_refused_before_the_work():
    result = called("simulate", "--telemetry", "nowhere/series.csv")
    assert result.returncode == 2
    assert "nowhere/series.csv" in result.stderr


@pytest.mark.parametrize("every", ["0", "nan", "inf", "1e-300", "1e10", "0.001"])
def test_an_interval_that_makes_no_series_is_refused_before_the_work(every, tmp_path):
    series, own = tmp_path / "series.csv", tmp_path / "own.py"
    own.write_text("def decide(view, params, memory, out):\n    raise RuntimeError('it ran')\n")
    args = ("--policy", str(own), "--telemetry", str(series), "--telemetry-every", every)
    result = called("simulate", *args)
    assert result.returncode == 2
    [line] = result.stderr.splitlines()
    assert "--telemetry-every" in line
    assert len(line) < 250
    assert "it ran" not in line


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--telemetry", "-"), "--telemetry: it cannot be printed; name a file"),
        (("--gantt", "-"), "--gantt: it cannot be printed; name a file"),
        (("--gantt", "f", "--telemetry", "./f"), "--telemetry: f is the file of --gantt too"),
        (("--json", "f", "--gantt", "f"), "--gantt: f is the file of --json too"),
    ],
)
def test_two_outputs_in_one_place_are_refused_before_the_work(args, said):
    result = called("simulate", *args)
    assert (result.returncode, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert said in line


def test_the_table_has_columns_for_restarts_only_where_the_scenario_is_rough():
    few = ("--seeds", "2", "--policies", "fcfs,static-affinity-lp,min-min")
    rough, calm = (called("compare", name, *few).stdout for name in ("rough64", "paper16"))
    assert max(len(line) for line in (rough + calm).splitlines()) <= 110
    headings = ("starts ", "lost", "GPU-h", "left", "over %")
    assert [word for word in headings if word not in rough] == []
    assert [word for word in headings if word in calm] == []
    assert "Score" in calm
    row = next(line for line in rough.splitlines() if "static-affinity-lp" in line)
    versus = row.split("(")[0].split()
    assert versus[:1] + versus[2:3] == ["static-affinity-lp", "±"]  # in one line, nothing folded


@pytest.mark.parametrize(
    ("extra", "is_rough"),
    [
        ("", False),
        ("failures = { mtbf_h = 1e6, repair_h = 1 }", True),
        ('[[changes]]\nkind = "wear"\nto_h = 1e6\nspeed = 0.9', True),
        ('[[types]]\nname = "ml"\ngpus = 1\ngpu_share = 0.5', True),
    ],
)
def test_the_columns_follow_from_the_scenario_not_from_the_figures(extra, is_rough, tmp_path):
    (tmp_path / "mine.toml").write_text(f'base = "paper16"\njobs = 5\n{extra}\n')
    result = called("compare", str(tmp_path / "mine.toml"), "--seeds", "1", "--policies", "fcfs")
    assert ("starts " in result.stdout) == is_rough
    assert ("Score " in result.stdout) != is_rough


def test_what_joins_and_leaves_is_shown():
    cluster = called("cluster", "show", "rough64").stdout
    assert "volta-old leaves at 5 h" in cluster
    assert "cdna3 joins at 2 h" in cluster
    assert "comes and goes" not in called("cluster", "show", "paper16").stdout
    shown = called("scenario", "show", "rough64").stdout
    assert "GPUs up 60.2 of 64 on average (failures only)" in shown


def test_a_policy_is_not_told_of_what_is_to_come(tmp_path):
    own = tmp_path / "own.py"
    own.write_text(
        "import sys\n"
        "def params(context):\n"
        "    print('told', *context._fields, file=sys.stderr)\n"
        "    print(*(hasattr(context, n) for n in ('scenario', 'colocation')), file=sys.stderr)\n"
        "    return []\n"
        "def decide(view, params, memory, out):\n"
        "    return 0\n"
    )
    result = called("simulate", "rough64", "--jobs", "5", "--policy", str(own))
    told = "name rows models pools nodes gpus types affinity type_shares lp_prices demands"
    assert f"told {told} placement rules partitions slurm\nFalse False\n" in result.stderr
