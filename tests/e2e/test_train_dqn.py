"""`adlro train --algorithm paper-dqn` as a process."""

import json

import pytest

from tests.commands import called, interrupted

TRAIN = ("train", "paper16-single", "--algorithm", "paper-dqn")


def test_ctrl_c_keeps_the_network_and_the_same_command_goes_on(tmp_path):
    args = (*TRAIN, "--episodes", "600", "--backbone", "mlp", "--idle-weight", "0.25")
    metrics = tmp_path / "paper-dqn-training" / "metrics.jsonl"
    result = interrupted(*args, cwd=tmp_path, once=metrics)
    assert (result.returncode, result.stdout) == (130, ""), result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert "episodes; paper-dqn.npz holds the network as it is (" in last
    assert last.endswith(
        "to go on: adlro train paper16-single --algorithm paper-dqn --episodes 600 "
        "--idle-weight 0.25 --backbone mlp --seed 0"
    )
    resumed = called(*args, "--json", "out.json", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    lines = [line for line in resumed.stderr.splitlines() if "mean JCT" in line]
    assert "(fcfs " in lines[-1]
    assert "of 600 episodes" in lines[-1]
    assert "the last network vs min-min on 100 of them" in resumed.stdout
    data = json.loads((tmp_path / "out.json").read_text())
    assert (data["file"], data["algorithm"]) == ("paper-dqn.npz", "paper-dqn")
    assert data["curve"][-1]["episodes"] >= 600
    shown = called("simulate", "paper16-single", "--policy", "./paper-dqn.npz", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr


WRONG = {
    "--objective jct": "adlro: --objective: is for --algorithm adlro; leave it out, or say that",
    "--threads 2": "adlro: --threads: is for --algorithm adlro or adlro-preemptive; ",
    "--budget 5 --episodes 5": "adlro: --budget and --episodes: name one of them",
    "--budget nan": "adlro: adlro train: budget_s: ",
    "--idle-weight nan": "adlro: --algorithm paper-dqn: idle_weight: ",
    "--json paper-dqn.npz": "adlro: --json paper-dqn.npz: is a file of the policy itself",
}
OTHERS = ("--window 2", "--idle-weight 0.5", "--backbone cnn", "--single", "--dueling", "--jobs 9")


@pytest.mark.parametrize("options", WRONG)
def test_what_cannot_be_is_said_in_one_line(tmp_path, options):
    result = called(*TRAIN, *options.split(), cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith(WRONG[options])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", OTHERS)
def test_the_other_algorithm_knows_none_of_its_options(tmp_path, options):
    result = called("train", "paper16", *options.split(), cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    option = "--double" if options == "--single" else options.split()[0]
    assert result.stderr.startswith(f"adlro: {option}: is for --algorithm paper-dqn; leave it out")
