"""The examples with stable-baselines3, as their users run them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
POLICY = EXAMPLES / "03_policy_of_sb3.py"


def run(*args, cwd):
    words = [sys.executable, *map(str, args)]
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd, check=False)


@pytest.mark.slow
def test_both_learners_are_trained_shown_in_a_table_and_played_by_compare(tmp_path):
    from stable_baselines3 import DQN

    learner = EXAMPLES / "02_stable_baselines3.py"
    shown = run(learner, "--steps", 128, "--seeds", 1, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "of its actions were forbidden; the nearest allowed ones were played" in shown.stdout
    table = dict(re.findall(r"^  (\S+) +([\d,]+)$", shown.stdout, re.MULTILINE))
    assert list(table) == ["fcfs", "min-min", "dqn", "maskable_ppo"]
    assert DQN.load(tmp_path / "dqn.zip")._n_updates > 0  # the least there is to learning
    policies = ("--policies", f"fcfs,{POLICY}")
    compared = run("-m", "adlro", "compare", "paper16-single", *policies, "--seeds", 1, "--json",
                   "out.json", cwd=tmp_path)  # fmt: skip
    assert compared.returncode == 0, compared.stderr
    rows = json.loads((tmp_path / "out.json").read_text())["policies"]
    found = {row["name"]: row["metrics"]["mean_jct_s"]["mean"] for row in rows}
    assert f"{found['fcfs']:,.0f}" == table["fcfs"]
    assert f"{found['03_policy_of_sb3']:,.0f}" == table["maskable_ppo"]


@pytest.mark.slow
def test_a_scenario_of_ones_own_is_learned_and_played(tmp_path):
    (tmp_path / "mine.toml").write_text('base = "paper16-single"\njobs = 20\n')
    learner = EXAMPLES / "02_stable_baselines3.py"
    args = ("--steps", 128, "--seeds", 1, "--scenario", "./mine.toml")
    shown = run(learner, *args, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "Mean JCT on ./mine.toml" in shown.stdout


@pytest.mark.slow
def test_a_model_that_is_not_there_is_named(tmp_path):
    args = ("compare", "paper16-single", "--policies", f"fcfs,{POLICY}", "--seeds", 1)
    refused = run("-m", "adlro", *args, cwd=tmp_path)
    assert refused.returncode == 2
    said = "there is no maskable_ppo.zip here; run 02_stable_baselines3.py first"
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
