"""`adlro train` as a process."""

import json
import subprocess
import sys

import pytest

from adlro.config.scenario import Scenario
from adlro.policies.loading import learned
from tests import toys
from tests.commands import called, interrupted


@pytest.fixture
def place(tmp_path):
    """A folder with a scenario file of a toy in it."""
    (tmp_path / "toy.toml").write_text(as_toml(toys.bound_and_free()))
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a policy trained by a process, and what that printed."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "toy.toml").write_text(as_toml(toys.bound_and_free()))
    args = ("train", "./toy.toml", "--out", "mine.npz", "--episodes", "10", "--json", "out.json")
    command = [sys.executable, "-m", "adlro", *args]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return folder, result


def as_toml(scenario: Scenario) -> str:
    nodes = "".join(
        f"[[cluster.nodes]]\nname = {group.name!r}\ngpu = {group.gpu!r}\ngpus = {group.gpus}\n"
        f"cores = {group.cores}\nmemory_gb = {group.memory_gb}\n"
        for group in scenario.cluster.nodes
    )
    types = "".join(
        f"[[types]]\nname = {kind.name!r}\nshare = {kind.share}\nmodels = {list(kind.models)}\n"
        "size = { law = 'constant', seconds = 60 }\n"
        "speed = { " + ", ".join(f"{name!r} = {x}" for name, x in kind.speed.items()) + " }\n"
        for kind in scenario.types
    )
    return f"jobs = 30\nload = {scenario.load}\n[cluster]\nname = 'toy'\n{nodes}{types}"


def test_ctrl_c_keeps_the_best_and_the_same_command_goes_on(place):
    args = ("train", "./toy.toml", "--out", "mine", "--episodes", "200", "--threads", "2")
    whole = called("train", "./toy.toml", "--out", "whole", *args[4:], cwd=place)
    assert whole.returncode == 0, whole.stderr
    result = interrupted(*args, cwd=place, once=place / "mine-training" / "metrics.jsonl")
    assert (result.returncode, result.stdout) == (130, ""), result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("adlro: stopped; mine.npz holds the best so far (")
    assert last.endswith(
        "to go on: adlro train ./toy.toml --out mine --episodes 200 --objective jct --seed 0"
    )
    learned.load(place / "mine.npz")
    resumed = called(*args, cwd=place)
    assert resumed.returncode == 0, resumed.stderr
    assert (place / "mine.npz").read_bytes() == (place / "whole.npz").read_bytes()


def test_the_table_and_the_figures_are_handed_out(trained):
    folder, result = trained
    assert "vs drain-argmin" in result.stdout
    data = json.loads((folder / "out.json").read_text())
    assert [row["load"] for row in data["table"]] == [0.6, 0.9, 0.95]
    assert data["file"] == "mine.npz"
    shown = called("simulate", "./toy.toml", "--policy", "./mine.npz", cwd=folder)
    assert shown.returncode == 0, shown.stderr


def test_a_policy_that_looks_at_sketches_says_so_and_plays(place):
    args = ("train", "./toy.toml", "--out", "mine", "--episodes", "10")
    result = called(*args, "--inputs", "sketches", cwd=place)
    assert result.returncode == 0, result.stderr
    plan = json.loads((place / "mine-training" / "plan.json").read_text())
    assert plan["hyperparameters"]["fit"]["features"][-1] == "queue_7"
    again = called(*args, cwd=place)
    assert again.returncode == 2
    assert "was begun with other hyperparameters (fit)" in again.stderr


WRONG = {
    "--objective speed": "adlro: --objective: unknown 'speed'; known: jct,",
    "--inputs sketch": "adlro: --inputs: unknown kind 'sketch'; did you mean 'sketches'?",
    "--inputs sketches,telemetry": "adlro: --inputs telemetry: toy has none; say telemetry = true",
    "--inputs sketches --algorithm paper-dqn": "adlro: --inputs: is for --algorithm adlro; leave",
    "--budget 5 --episodes 5": "adlro: --budget and --episodes: name one of them",
    "--json mine.json": "adlro: --json mine.json: is a file of the policy itself; choose another",
    "--out .npz": "adlro: --out .npz: '' is no name for a policy; take one of 1 to 80 printable",
    f"--out {'x' * 81}": f"adlro: --out {'x' * 81}: '{'x' * 81}' is no name for a policy",
    "--out no/mine": "adlro: no/mine.npz: there is no folder 'no'; make it first",
}


@pytest.mark.parametrize("options", WRONG)
def test_what_cannot_be_is_said_in_one_line(place, options):
    result = called("train", "./toy.toml", "--out", "mine", *options.split(), cwd=place)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith(WRONG[options])
    assert [file.name for file in place.iterdir()] == ["toy.toml"]


WITHOUT = "import runpy, sys; sys.modules['torch'] = None; sys.argv = ['adlro', *sys.argv[1:]]; "
WITHOUT += "runpy.run_module('adlro', run_name='__main__')"


def without_torch(*args, cwd):
    run = [sys.executable, "-c", WITHOUT, *args]
    return subprocess.run(run, cwd=cwd, capture_output=True, text=True)


def test_without_torch_training_says_what_to_install(place):
    result = without_torch("train", "--out", "mine", cwd=place)
    assert result.returncode == 2
    assert result.stderr == "adlro: adlro train needs the extra: pip install 'adlro[train]'\n"


@pytest.mark.parametrize("args", [("--help",), ("train", "--help"), ("policy", "list")])
def test_without_torch_all_else_works(place, args):
    result = without_torch(*args, cwd=place)
    assert result.returncode == 0, result.stderr


def test_progress_is_told_in_plain_lines_where_there_is_no_terminal(trained):
    lines = trained[1].stderr.splitlines()
    phases = [line.split(" · ")[0] for line in lines if " CPU" in line]
    assert phases[0] == "first evaluation"
    assert {"labels, round 1", "fit, round 1", "final evaluation"} <= set(phases)
    assert all(line.isprintable() for line in lines)


def test_adlro_preemptive_is_trained_by_the_same_command(place):
    args = ("train", "./toy.toml", "--algorithm", "adlro-preemptive", "--episodes", "300")
    result = called(*args, "--json", "out.json", cwd=place)
    assert result.returncode == 0, result.stderr
    assert "vs start" in result.stdout
    data = json.loads((place / "out.json").read_text())
    assert (data["file"], data["algorithm"]) == ("adlro-preemptive.npz", "adlro-preemptive")
    assert set(data["table"][0]) == {"load", "jct_vs_min_min", "jct_vs_start", "p99_vs_min_min"}
    shown = called("simulate", "./toy.toml", "--policy", "./adlro-preemptive.npz", cwd=place)
    assert shown.returncode == 0, shown.stderr
