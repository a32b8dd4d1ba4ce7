"""Odd names of files, and odd names within files: printed literally, and no result is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import called

ODD = os.fsdecode(b"caf\xe9 [red]\x1b[31m\xe2\x80\xae")
NAME = "[v2] [red]x[/] \\u001b[31m\\u202e :smile:"  # as TOML
PRINTED = "[v2] [red]x[/] \\x1b[31m\\u202e :smile:"
FEW = ("--jobs", "5", "--seeds", "1", "--policies", "fcfs")
IN_ORDER = """from adlro.model.feasibility import smallest_feasible, start


def decide(view, params, memory, out):
    q, p = smallest_feasible(view)
    return start(out, view.queue[q].job, p) if q >= 0 else 0
"""


def adlro(*args, cwd):
    command = [sys.executable, "-m", "adlro", *args]
    return subprocess.run(command, capture_output=True, cwd=cwd, check=False)


def is_clean(text):
    return all(line.isprintable() for line in text.splitlines())


@pytest.fixture
def scenario(tmp_path):
    """A scenario whose every name is odd."""
    (tmp_path / "odd.toml").write_text(
        f"""name = "{NAME}"
jobs = 5
accounts = ["{NAME}"]
[cluster]
[[cluster.nodes]]
name = "{NAME}"
partition = "{NAME}"
gpu = "V100"
gpus = 4
cores = 64
memory_gb = 512
[[types]]
name = "{NAME}"
share = 1.0
kind = "ml"
size = {{ median_s = 10 }}
"""
    )
    return "./odd.toml"


def test_a_comparison_with_names_that_are_not_utf_8_is_written_and_printed(tmp_path):
    (tmp_path / f"{ODD[:9]}.py").write_text(IN_ORDER)
    args = ("--policies", f"fcfs,./{ODD[:9]}.py", "--json", f"{ODD[:9]}.json", "--report", ODD[:9])
    done = adlro("compare", "--jobs", "5", "--seeds", "2", *args, cwd=tmp_path)
    out = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert is_clean(out)
    assert "all figures: caf\\xe9 [red.json" in out
    assert "report: caf\\xe9 [red/report.html" in out
    data = json.loads((tmp_path / f"{ODD[:9]}.json").read_text())
    assert sorted(row["name"] for row in data["policies"]) == ["caf\\xe9 [red", "fcfs"]
    assert "caf\\xe9 [red" in data["command"]
    assert (tmp_path / ODD[:9] / "report.html").read_text().startswith("<!doctype html>")


def test_a_simulation_is_written_to_odd_places(tmp_path):
    places = [f"{n}{ODD}" for n in range(3)]
    args = ("--json", places[0], "--gantt", places[1], "--telemetry", places[2])
    result = called("simulate", "--jobs", "5", "--policy", "fcfs", *args, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert is_clean(result.stdout)
    for n, label in enumerate(("all figures", "schedule", "telemetry")):
        assert f"{label}: {n}caf\\xe9 [red]\\x1b[31m\\u202e" in result.stdout
        assert (tmp_path / places[n]).stat().st_size > 0


def test_a_cluster_is_written_to_an_odd_place(tmp_path):
    (tmp_path / "nodes").write_text(
        "NodeName=n1 CPUTot=64 RealMemory=512000 Gres=gpu:volta:4 Partitions=p\n"
    )
    args = ("nodes", "--gpu", "volta=V100 32GB", "--out", f"{ODD}.toml")
    result = called("cluster", "import", *args, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "caf\\xe9 [red]\\x1b[31m\\u202e.toml: 4 GPUs on 1 node" in result.stdout
    assert is_clean(result.stdout)


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".swf"])
def test_a_history_is_converted_between_odd_places(tmp_path, suffix):
    (tmp_path / f"{ODD}.csv").write_text("submit,run,gpus\n0,5,1\n1,5,1\nx,5,1\n")
    columns = [f"--column={pair}" for pair in ("submit_s=submit", "run_s=run", "gpus=gpus")]
    args = (f"{ODD}.csv", f"2{ODD}{suffix}")
    result = called(
        "trace", "convert", *args, "--format", "csv", "--lenient", *columns, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert is_clean(result.stdout)
    assert is_clean(result.stderr)
    assert "caf\\xe9 [red]\\x1b[31m\\u202e" in result.stdout


@pytest.mark.parametrize(
    "args",
    [
        ("compare", ODD + ".toml"),
        ("compare", "--policies", f"./{ODD}.py"),
        ("compare", "--json", f"{ODD}/out.json"),
        ("compare", "--report", f"{ODD}/out/report"),
        ("simulate", "--gantt", f"{ODD}/out.html"),
        ("cluster", "show", f"./{ODD}"),
        ("cluster", "import", ODD, "--out", "out.toml"),
        ("scenario", "show", f"./{ODD}"),
        ("policy", "show", f"{ODD}.npz"),
        ("policy", "explain", f"{ODD}.npz"),
        ("trace", "info", ODD),
        ("comp" + ODD,),
        ("compare", "--seeds", ODD),
    ],
)
def test_an_odd_name_in_an_error_is_escaped(tmp_path, args):
    result = called(*args, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert line.isprintable()
    assert "caf\\xe9 [red]\\x1b[31m" in line or "caf\\udce9 [red]\\x1b[31m" in line


@pytest.mark.parametrize(
    "args",
    [
        ("compare", "FILE", *FEW),
        ("simulate", "FILE", "--policy", "fcfs"),
        ("scenario", "show", "FILE"),
        ("cluster", "show", "FILE"),
        ("policy", "explain", "min-min", "FILE", "--decision", "1"),
    ],
)
def test_odd_names_within_a_file_are_printed_literally(tmp_path, scenario, monkeypatch, args):
    monkeypatch.setenv("COLUMNS", "400")
    result = called(*(scenario if arg == "FILE" else arg for arg in args), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert is_clean(result.stdout + result.stderr)
    assert PRINTED in result.stdout


def test_the_name_of_a_policys_file_is_printed_literally(tmp_path):
    (tmp_path / "[v2] [red].py").write_text(IN_ORDER)
    args = ("--jobs", "5", "--seeds", "2", "--policies", "fcfs,./[v2] [red].py")
    result = called("compare", *args, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "[v2] [red]" in result.stdout
    shown = called("policy", "show", "./[v2] [red].py", cwd=tmp_path)
    assert "[v2] [red]" in shown.stdout


OUTPUTS = [
    ("compare", "--jobs", "5", "--seeds", "1", "--policies", "fcfs", "--json"),
    ("compare", "--jobs", "5", "--seeds", "1", "--policies", "fcfs", "--report"),
    ("simulate", "--jobs", "5", "--policy", "fcfs", "--json"),
    ("simulate", "--jobs", "5", "--policy", "fcfs", "--gantt"),
    ("simulate", "--jobs", "5", "--policy", "fcfs", "--telemetry"),
    ("policy", "explain", "min-min", "--jobs", "20", "--json"),
    ("cluster", "import", "nodes", "--out"),
    ("telemetry", "check", "--nvml", "--json"),
    ("trace", "convert", "jobs.csv"),
]


@pytest.mark.parametrize("args", OUTPUTS, ids=" ".join)
def test_a_place_that_is_a_loop_of_links_or_too_long_is_refused_in_one_line(tmp_path, args):
    (tmp_path / "loop").symlink_to("loop")
    for place in ("loop", "loop/out", "x" * 300, "/".join(["y" * 200] * 30)):
        result = called(*args, place, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (2, "")
        [line] = result.stderr.splitlines()
        assert line.startswith("adlro: ")
        assert [path.name for path in tmp_path.iterdir()] == ["loop"]


@pytest.mark.parametrize(
    "args",
    [
        *((*args, "out") for args in OUTPUTS),
        ("compare", "./mine.toml"),
        ("compare", "--policies", "./mine.py"),
        ("scenario", "show", "./mine.toml"),
        ("cluster", "show", "./mine.toml"),
        ("policy", "show", "./mine.npz"),
        ("trace", "info", "jobs.csv"),
    ],
    ids=" ".join,
)
def test_a_working_folder_that_is_gone_is_one_line(tmp_path, args):
    gone = tmp_path / "gone"
    gone.mkdir()
    before = Path.cwd()
    os.chdir(gone)
    try:
        gone.rmdir()
        result = called(*args, cwd=None)
    finally:
        os.chdir(before)
    assert (result.returncode, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert line.startswith("adlro: ")
