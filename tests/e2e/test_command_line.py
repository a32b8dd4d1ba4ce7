"""The command line as a user meets it, with real files; where it matters, as a real process."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.commands import called

ADLRO = (sys.executable, "-m", "adlro")


def adlro(*args, cwd=None):
    return subprocess.run([*ADLRO, *args], capture_output=True, text=True, cwd=cwd, check=False)


def assert_one_line(result, *words):
    lines = result.stderr.strip().splitlines()
    assert result.returncode == 2
    assert len(lines) == 1
    assert lines[0].startswith("adlro: ")
    assert result.stdout == ""
    assert [word for word in words if word not in lines[0]] == []


def test_compare_prints_the_table_and_writes_the_contract(tmp_path):
    out = tmp_path / "out.json"
    result = adlro("compare", "--policies", "fcfs,min-min", "--seeds", "3", "--json", str(out))
    assert result.returncode == 0, result.stderr
    assert "paper16 · load 0.8 · 400 jobs" in result.stdout
    data = json.loads(out.read_text())
    keys = ("version", "scenario", "seeds", "load", "estimates", "measure", "jobs", "policies")
    assert set(keys) <= set(data)
    row = data["policies"][0]
    assert set(row) == {
        "name", "is_preemptive", "metrics", "per_seed", "versus", "gap_closed", "decision_us",
        "decisions", "real_decisions", "jitter_sd_pct", "out_of_range", "pooled",
        "seeds_below_look_ahead", "times_lower_bound",
    }  # fmt: skip
    asked = (
        "mean_jct_s", "p99_jct_s", "throughput_jobs_per_h", "gpu_utilisation", "hyperscore",
    )  # fmt: skip
    for name in asked:
        assert set(row["metrics"][name]) == {"mean", "sd", "ci95"}
    assert set(row["versus"]["min-min"]["p99_jct_pct"]) == {"mean", "sd", "ci95"}
    assert set(row["versus"]["min-min"]["mean_jct_pct"]) == {
        "mean", "sd", "ci95", "p_wilcoxon", "p_holm", "dz", "rank_biserial", "seeds_to_settle",
    }  # fmt: skip
    assert data["command"] == f"adlro compare --policies fcfs,min-min --seeds 3 --json {out}"
    assert data["regression"]["pooled"]["n"] == 6


def test_compare_prints_json_alone_when_asked():
    result = adlro("compare", "--policies", "fcfs", "--seeds", "1", "--json", "-")
    assert json.loads(result.stdout)["seeds"] == 1


def test_seeds_can_be_a_range():
    result = called("compare", "--policies", "fcfs", "--seeds", "7:9", "--json", "-")
    data = json.loads(result.stdout)
    assert (data["first_seed"], data["seeds"]) == (7, 2)


def test_seeds_can_be_as_many_as_it_takes():
    args = ("compare", "--policies", "sjf,pair-sjf", "--jobs", "40", "--seeds", "auto:0.001%:22")
    data = json.loads(called(*args, "--json", "-").stdout)
    assert (data["first_seed"], data["seeds"]) == (0, 22)
    assert "at the limit of 22 seeds" in data["notes"][0]


def test_those_that_preempt_have_a_table_of_their_own():
    args = ("--policies", "tiresias,fcfs,sjf", "--seeds", "7", "--jobs", "40", "--regression")
    result = called("compare", *args)
    lines = result.stdout.splitlines()
    tables = [line.split()[0] for line in lines if line.strip()]
    assert [word for word in tables if word in ("policy", "fcfs", "tiresias")] == [
        "policy", "fcfs", "policy", "tiresias",
    ]  # fmt: skip
    assert max(len(line.rstrip()) for line in lines) <= 110
    assert "the same under every policy" in result.stdout
    assert "mean JCT in seconds by least squares · 21 runs" in result.stdout


def test_a_policy_that_cannot_run_the_scenario_is_refused_before_the_run(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def decide(view, params, memory, out):\n    return 0\n\n\n"
        "def refuses(context):\n    return 'it has gangs'\n"
    )
    result = called("compare", "--policies", "fcfs,./mine.py", cwd=tmp_path)
    assert_one_line(result, "policy mine cannot run paper16: it has gangs")


def test_simulate_draws_the_schedule(tmp_path):
    page, out = tmp_path / "schedule.html", tmp_path / "run.json"
    result = called(
        "simulate", "paper16-single", "--jobs", "50", "--gantt", str(page), "--json", str(out)
    )
    assert result.returncode == 0, result.stderr
    assert page.read_text().startswith("<!doctype html>")
    assert json.loads(out.read_text())["metrics"]["mean_jct_s"] > 0


def test_a_users_own_scenario_and_policy_run(tmp_path):
    (tmp_path / "mine.toml").write_text('base = "paper16"\njobs = 30\nmeasure = "middle 70 %"\n')
    (tmp_path / "mine.py").write_text(
        "from adlro.model.feasibility import smallest_feasible, start\n\n\n"
        "def decide(view, params, memory, out):\n"
        "    q, p = smallest_feasible(view)\n"
        "    return start(out, view.queue[q].job, p) if q >= 0 else 0\n"
    )
    args = ("./mine.toml", "--policies", "pair-sjf,./mine.py", "--seeds", "2", "--json", "-")
    data = json.loads(called("compare", *args, cwd=tmp_path).stdout)
    theirs, own = data["policies"]
    assert (data["scenario"], data["measure"], own["name"]) == ("mine", "middle 70 %", "mine")
    assert own["metrics"] == theirs["metrics"]


HELPER = """import numba
from dataclasses import dataclass


@dataclass
class Settings:
    place: int = {place}


@numba.njit(cache=True)
def youngest(queue):
    return queue[len(queue) - 1 + {place}].job


@numba.njit
def decide(view, params, memory, out):
    queue = view.queue
    if len(queue) == 0 or view.pools[0].free < view.jobs[youngest(queue)].gpus:
        return 0
    out[0].kind, out[0].job, out[0].pool = 0, youngest(queue), 0
    return 1
"""


def test_a_policy_with_a_compiled_helper_runs_again_in_the_next_process(tmp_path):
    (tmp_path / "mine.py").write_text(HELPER.format(place=0))
    args = ("compare", "--policies", "./mine.py", "--seeds", "1", "--json", "-")
    first, second = (adlro(*args, cwd=tmp_path) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), second.stderr
    figures = [json.loads(run.stdout)["policies"][0]["metrics"] for run in (first, second)]
    assert figures[0] == figures[1]


def test_a_helper_that_reads_out_of_bounds_is_named_and_does_not_crash(tmp_path):
    (tmp_path / "mine.py").write_text(HELPER.format(place=100_000_000))
    result = adlro("compare", "--policies", "./mine.py", "--seeds", "1", cwd=tmp_path)
    assert_one_line(result, "mine.py:18: IndexError")


def test_what_a_policy_prints_does_not_spoil_the_json(tmp_path):
    (tmp_path / "loud.py").write_text(
        "from adlro.model.feasibility import smallest_feasible, start\n\n"
        "def decide(view, params, memory, out):\n"
        "    print('hello')\n"
        "    q, p = smallest_feasible(view)\n"
        "    return start(out, view.queue[q].job, p) if q >= 0 else 0\n"
    )
    args = ("compare", "--policies", "./loud.py", "--seeds", "1", "--jobs", "5", "--json", "-")
    assert json.loads(adlro(*args, cwd=tmp_path).stdout)["jobs"] == 5


@pytest.mark.parametrize(
    "args",
    [
        ("scenario", "list"),
        ("scenario", "show", "paper16-surge"),
        ("cluster", "show", "datacenter"),
        ("scenario", "show", "hetero64", "--json"),
        ("cluster", "show", "hetero64", "--json"),
        ("policy", "list"),
        ("policy", "show", "adlro"),
        ("policy", "show", "min-min", "--json"),
        ("--version",),
        ("--help",),
        ("compare", "--help"),
    ],
)
def test_what_can_be_looked_at(args):
    result = called(*args)
    assert result.returncode == 0
    assert result.stdout
    assert result.stderr == ""


def test_version_tells_numba_numpy_and_the_cache():
    text = adlro("--version").stdout
    assert [word for word in ("adlro 0.", "numba ", "numpy ", "cache: ") if word not in text] == []


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("compare", "paper61"), ["paper61", "did you mean 'paper16'"]),
        (("compare", "--policies", "minmin"), ["minmin", "did you mean 'min-min'"]),
        (("compare", "--policies", ","), ["--policies"]),
        (("compare", "--policies", "./none.py"), ["none.py", "no such file"]),
        (("compare", "--seeds", "0"), ["--seeds", "'0'"]),
        (("compare", "--seeds", "9:3"), ["--seeds", "'9:3'"]),
        (("compare", "--seeds", "auto"), ["--seeds", "'auto'", "auto:1%"]),
        (("compare", "--seeds", "auto:0%"), ["--seeds", "'auto:0%'"]),
        (("compare", "--seeds", "auto:1%:1"), ["--seeds", "'auto:1%:1'"]),
        (("compare", "--load", "nan"), ["--load", "nan"]),
        (("compare", "--load", "-1"), ["--load", "-1"]),
        (("compare", "--jobs", "0"), ["--jobs", "0"]),
        (("compare", "--estimates", "noise"), ["--estimates", "noise"]),
        (("compare", "--json", "nowhere/out.json"), ["nowhere/out.json", "no folder"]),
        (("simulate", "--gantt", "."), ["is a folder"]),
        (("simulate", "--seed", "-1"), ["--seed", "-1"]),
        (("simulate", "--polici", "x"), ["--polici"]),
        (("comparee",), ["comparee", "did you mean 'compare'"]),
        (("cluster", "show", "none.toml"), ["none.toml", "cannot be read"]),
    ],
)
def test_a_mistake_is_one_line_with_status_2(args, words, tmp_path):
    assert_one_line(called(*args, cwd=tmp_path), *words)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_file_is_named_with_key_and_value(tmp_path):
    (tmp_path / "bad.toml").write_text('base = "paper16"\nloud = 0.5\n')
    assert_one_line(
        called("compare", "./bad.toml", cwd=tmp_path), "bad.toml", "loud", "unknown key"
    )


def test_an_unwritable_place_is_refused_before_the_work(tmp_path):
    if os.geteuid() == 0:
        target = "/proc/adlro.json"  # root may write anywhere else
    else:
        tmp_path.chmod(0o500)
        target = str(tmp_path / "out.json")
    result = called("compare", "--policies", "fcfs", "--seeds", "1", "--json", target)
    assert result.returncode == 2
    assert target in result.stderr.splitlines()[-1]


LONG = (  # one run of minutes in a worker thread; the same alone
    ("compare", "datacenter", "--seeds", "2", "--policies", "min-min", "--json", "out.json"),
    ("simulate", "datacenter", "--policy", "min-min", "--json", "out.json"),
)


@pytest.mark.parametrize("args", LONG)
def test_ctrl_c_ends_cleanly_and_writes_nothing(args, tmp_path):
    process = subprocess.Popen(
        [*ADLRO, *args],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=5)
    assert process.returncode == 130
    assert (out, err.strip().splitlines()[-1]) == ("", "adlro: stopped")
    assert list(tmp_path.iterdir()) == []


PRESSES_CTRL_C = """import os
import signal

from adlro.model.feasibility import smallest_feasible, start


def decide(view, params, memory, out):
    if memory[0] == 26 and view.arrived == len(view.queue) == 1:
        os.kill(os.getpid(), signal.SIGINT)
    q, p = smallest_feasible(view)
    return start(out, view.queue[q].job, p) if q >= 0 else 0
"""


@pytest.mark.parametrize("seeds", ["2000", "auto:0.0001%:2000"])
def test_ctrl_c_prints_and_writes_what_is_complete(seeds, tmp_path):
    (tmp_path / "mine.py").write_text(PRESSES_CTRL_C)
    args = ("--seeds", seeds, "--policies", "./mine.py,sjf", "--jobs", "99", "--json", "out.json")
    result = adlro("compare", *args, cwd=tmp_path)
    assert (result.returncode, result.stderr.splitlines()[-1]) == (130, "adlro: stopped")
    data = json.loads((tmp_path / "out.json").read_text())
    assert 20 <= data["seeds"] <= 30
    assert len(data["policies"][0]["per_seed"]["mean_jct_s"]) == data["seeds"]
    assert f"Note: Stopped by Ctrl-C: these are the first {data['seeds']}" in result.stdout
    assert "  mine  " in result.stdout


def test_ctrl_c_before_the_second_seed_writes_nothing(tmp_path):
    (tmp_path / "mine.py").write_text(PRESSES_CTRL_C.replace("26", "1"))
    args = ("--seeds", "9", "--policies", "./mine.py", "--json", "out.json")
    result = adlro("compare", *args, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (130, "")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["mine.py"]
