"""`--slurm-config`: a Slurm configuration as the settings of the policy slurm."""

from pathlib import Path

import pytest

from adlro.cli.options import changed_scenario
from adlro.config.files import load_scenario
from adlro.errors import ConfigError
from adlro.model.slurm import Slurm, TresWeights
from tests.commands import called
from tests.histories import write

SAMPLE = Path(__file__).parents[2] / "data" / "slurm" / "config.txt"
JOBS = "submit_time,run_s,gpus\n5,60,1\n9,70,2\n"
CLUSTER = """[[nodes]]
name = "v"
gpu = "V100"
gpus = 4
cores = 16
memory_gb = 64
partition = "short"
"""


def made(tmp_path, *options):
    """What `trace scenario` prints, and the scenario that it writes."""
    jobs, cluster = write(tmp_path, JOBS), write(tmp_path, CLUSTER, "cluster.toml")
    out = tmp_path / "mine.toml"
    args = ("trace", "scenario", jobs, "--cluster", cluster, "--out", out, *options)
    result = called(*map(str, args))
    return result, load_scenario(out) if out.exists() else None


def test_a_scenario_gets_the_settings_of_the_cluster(tmp_path):
    result, scenario = made(tmp_path, "--slurm-config", SAMPLE)
    assert result.returncode == 0
    assert f"{SAMPLE}: without effect here: bf_continue\n" in result.stderr
    assert scenario.slurm.weight_fairshare == 10_000
    assert scenario.slurm.weight_tres == TresWeights(cpu=10, gpu=400)
    assert scenario.slurm.partition_factors == {"short": 0.5}
    assert "[slurm]" in (tmp_path / "mine.toml").read_text()


def test_without_a_configuration_nothing_is_written_about_slurm(tmp_path):
    result, scenario = made(tmp_path)
    assert result.returncode == 0
    assert scenario.slurm == Slurm()
    assert "slurm" not in (tmp_path / "mine.toml").read_text()


def test_the_option_replaces_the_settings_of_a_scenario(tmp_path):
    text = 'base = "paper16"\n[slurm]\nweight_age = 5\nweight_qos = 7\n'
    path = str(write(tmp_path, text, "mine.toml"))
    assert changed_scenario(path, 0.5, None, None, None, None).slurm.weight_age == 5
    other = write(tmp_path, "SchedulerType = sched/builtin\n", "slurm.conf")
    assert changed_scenario(path, None, None, None, None, other).slurm == Slurm(scheduler="builtin")


@pytest.mark.parametrize("command", ["compare", "simulate", "explain"])
def test_a_wrong_file_is_one_line_and_status_2(tmp_path, command):
    path = write(tmp_path, "PriorityWeightAge = old\nSchedulerType = sched/backfill\n")
    words = ("policy", "explain", "slurm") if command == "explain" else (command,)
    result = called(*words, "paper16", "--slurm-config", str(path))
    assert (result.returncode, result.stdout) == (2, "")
    said = f"{path}:1: PriorityWeightAge: expected a whole number, got 'old'"
    assert result.stderr.strip().splitlines()[-1].endswith(said)
    assert len(result.stderr.strip().splitlines()) == 1


def test_nothing_is_written_where_the_configuration_is_wrong(tmp_path):
    result, scenario = made(tmp_path, "--slurm-config", tmp_path / "none.txt")
    assert (result.returncode, scenario) == (2, None)
    with pytest.raises(ConfigError, match="cannot be read"):
        changed_scenario("paper16", None, None, None, None, tmp_path / "none.txt")
