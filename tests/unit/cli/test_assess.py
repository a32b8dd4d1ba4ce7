"""`adlro assess`: what is printed and written, what is refused, and what Ctrl-C leaves behind."""

import json
import os
import re
import shlex
import signal
import threading

import pytest

from adlro.cli.history_options import Given
from adlro.evaluate.run_store import RunStore
from tests.assessed import CLUSTER, HEAD, row, text
from tests.commands import called


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a history, its cluster, and files that are neither."""
    folder = tmp_path_factory.mktemp("assess")
    (folder / "cluster.toml").write_text(CLUSTER)
    strange = text().replace("speech", "[red]s\x1b[31m\u202e[/red]")
    (folder / "jobs.csv").write_text(strange)
    (folder / "short.csv").write_text(text(100))
    (folder / "wide.csv").write_text(text().replace(",1,main,", ",9,main,"))
    (folder / "cpu.csv").write_text(text().replace("gpus", "cores"))
    (folder / "elsewhere.csv").write_text(text().replace("main", "elsewhere"))
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text(HEAD)
    (folder / "nul.csv").write_text(HEAD + row(1, 0, 60).replace("j1", "j\0"))
    (folder / "own.py").write_text("def decide(view, params, memory, out):\n    return 0\n")
    (folder / "bad.npz").write_bytes(b"no archive")
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder of all stored runs of this module."""
    return tmp_path_factory.mktemp("stored")


@pytest.fixture(autouse=True)
def stored(runs, monkeypatch):
    """Runs are stored there; ADLRO_CACHE_DIR would move the compiled code, too."""
    monkeypatch.setattr(Given, "store", lambda given: RunStore(given.file, runs))


def assess(place, *args, file="jobs.csv"):
    return called("assess", file, "--cluster", "cluster.toml", "--threads", "2", *args, cwd=place)


def test_everything_an_operator_asks_is_there(place):
    result = assess(place, "--json", "out.json")
    assert result.returncode == 0, result.stderr
    asked = (
        "jobs.csv on cluster: 360 GPU jobs in 3.3 days, 4 GPUs", "recorded", "slurm", "multifactor",
        "4 windows of 67 jobs; the first 92 jobs lead in, and chose the estimator: ",
        "easy-backfill", "min-min", "drain-argmin", "Verdict", "How sure: ", "The strongest rival",
        "Who would wait longer", "How true: ", "What is assumed", "as a reference only",
        "adlro tune jobs.csv --cluster cluster.toml", "all figures: out.json",
    )  # fmt: skip
    assert [words for words in asked if words not in result.stdout] == []
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 120
    data = json.loads((place / "out.json").read_text())
    assert data["verdict"]["answer"] in ("gain", "likely gain", "open", "depends", "loss")
    assert {one["name"] for one in data["changes"] if one["grouping"] == "account"} == {
        "vision", "[red]s\x1b[31m\u202e[/red]",
    }  # fmt: skip
    assert {cell["estimates"] for cell in data["cells"] if cell["is_reference"]} == {"oracle"}
    assert data["losers"] == [one for one in data["changes"] if one["change_s"]["mean"] > 0]
    found = data["out_of_range"]
    assert (found["features"], found["problem"]) == (43, None)
    assert found["decisions"] > 0
    told = f"{100 * found['share']:.2g} % of what adlro looks at on this history lies outside of"
    assert sum(told in words for words in data["assumptions"]) == 1
    assert told in " ".join(result.stdout.split())


def test_json_can_be_printed_alone_and_is_the_same_again(place):
    first, second = (assess(place, "--json", "-") for _ in range(2))
    data = json.loads(first.stdout)
    assert json.loads(second.stdout) == data
    assert shlex.split(data["command"])[:2] == ["adlro", "assess"]
    assert "NaN" not in first.stdout


def test_a_policy_can_be_added(place):
    data = json.loads(assess(place, "--policies", "fcfs, slurm", "--json", "-").stdout)
    names = [one["name"] for one in data["pooled"]]
    assert sorted(names) == sorted(
        ["slurm", "multifactor", "easy-backfill", "min-min", "drain-argmin", "adlro", "fcfs"]
    )


def test_a_narrow_terminal_cuts_no_figure(place, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = assess(place).stdout.splitlines()
    assert max(map(len, lines)) <= 60
    assert any("adlro" in line and "…" not in line for line in lines)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("short.csv",), "100 GPU jobs in 0.9 days are too few"),
        (("wide.csv",), "fit no pool of the cluster"),
        (("cpu.csv",), "no job can be played"),
        (("elsewhere.csv",), "is this the cluster of another history?"),
        (("empty.csv",), "empty.csv"),
        (("header.csv",), "header.csv"),
        (("nul.csv",), "zero byte"),
        (("none.csv",), "none.csv"),
        ((".",), "folder"),
        (("jobs.csv", "--cluster", "none.toml"), "none.toml"),
        (("jobs.csv", "--cluster", "jobs.csv"), "jobs.csv"),
        (("jobs.csv", "--slurm-config", "none.conf"), "none.conf"),
        (("jobs.csv", "--policies", "nosuch"), "unknown policy 'nosuch'"),
        (("jobs.csv", "--policies", "./own.py"), "only policies of ADLRO and learned ones"),
        (("jobs.csv", "--policies", "./bad.npz"), "bad"),
        (("jobs.csv", "--policies", "./adlro.npz"), "another one is called 'adlro'"),
        (("jobs.csv", "--json", "nowhere/out.json"), "there is no folder 'nowhere'"),
        (("jobs.csv", "--json", "./jobs.csv"), "is the file that is read"),
        (("jobs.csv", "--json", "cluster.toml"), "is the file that is read"),
        (("jobs.csv", "--json", "x" * 300), "File name too long"),
        (("jobs.csv", "--threads", "0"), "--threads"),
        (("jobs.csv", "--column", "run_s"), "--column"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(args, said, place):
    before = {path: path.read_bytes() for path in place.iterdir()}
    usual = () if "--cluster" in args else ("--cluster", "cluster.toml")
    result = called("assess", *args, *usual, cwd=place)
    assert (result.returncode, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert said in line
    assert {path: path.read_bytes() for path in place.iterdir()} == before


@pytest.fixture
def whole(place):
    """What is printed without Ctrl-C."""
    return json.loads(assess(place, "--json", "-").stdout)


@pytest.fixture
def pressed(monkeypatch):
    """Presses Ctrl-C once, after the third run is stored; counts the runs that are stored."""
    puts, guard, put = [], threading.Lock(), RunStore.put

    def put_and_press(store, key, run):
        put(store, key, run)
        with guard:
            puts.append(key)
            if len(puts) == 3:
                os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(RunStore, "put", put_and_press)
    return puts


def test_ctrl_c_keeps_what_is_complete_and_the_same_command_goes_on(
    place, tmp_path, whole, pressed, monkeypatch
):
    monkeypatch.setattr(Given, "store", lambda given: RunStore(given.file, tmp_path / "own"))
    result = assess(place, "--json", "stopped.json")
    assert (result.returncode, result.stdout) == (130, "")
    kept, stopped = result.stderr.split("\n\n")  # click adds an empty line
    assert re.search(r"^\d of 42 runs are kept: the same command goes on from there$", kept)
    assert stopped == "adlro: stopped\n"
    assert not (place / "stopped.json").exists()
    for thread in threading.enumerate():  # a process would have ended; here they end their run
        if thread is not threading.current_thread() and "ThreadPool" in thread.name:
            thread.join()
    files = list((tmp_path / "own").rglob("*.npz"))
    assert 3 <= len(files) == len(pressed) < 42
    again = json.loads(assess(place, "--json", "-").stdout)
    assert len(pressed) == len(set(pressed)) == len(list((tmp_path / "own").rglob("*.npz")))
    assert list((tmp_path / "own").rglob(".adlro-*")) == []
    assert again == whole


def test_ctrl_c_does_not_promise_what_cannot_be_kept(place, tmp_path, pressed, monkeypatch):
    (tmp_path / "file").write_text("where a folder should be")
    monkeypatch.setattr(Given, "store", lambda given: RunStore(given.file, tmp_path / "file"))
    result = assess(place)
    assert result.returncode == 130
    assert "are lost: the cache cannot be written" in result.stderr


def test_the_next_command_repeats_the_options_that_were_given():
    plain = Given(file="a", cluster="my c.toml", slurm_config=None)
    assert plain.repeated() == " --cluster 'my c.toml'"
    assert plain.calibrated() == " --cluster 'my c.toml' --unfit drop"
    rich = plain._replace(
        slurm_config="s", columns=("run_s=m*60",), lenient=True, gpus=("v=V100 32GB",),
        unfit="refuse", gpu_types="ignore", format_="csv",
    )  # fmt: skip
    assert rich.repeated() == (
        " --cluster 'my c.toml' --slurm-config s --format csv --column 'run_s=m*60' --gpu "
        "'v=V100 32GB' --lenient --unfit refuse --gpu-types ignore"
    )
    assert rich.calibrated() is None
