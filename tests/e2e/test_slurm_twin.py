"""The policy slurm against a real Slurm: the same jobs, as its accounting recorded them."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import CliRunner

import adlro
from adlro.cli.main import cli
from adlro.workloads import history_file
from adlro.workloads.setting import prepare
from tests.tools.slurm_cluster import missing

SEEDS = range(5)
AT_ONCE = 3  # real clusters on this machine; nearly all of their time is sleep
START_DELAY_S = 0.5  # from a finish to the next start, measured on these clusters: .46 to .59 s
TYPES = ("volta=V100 32GB", "turing=T4", "radeon=MI100")


def done(words):
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, (words, result.output, result.exception)


def record(folder, seed):
    """Run a workload of 160 jobs on a real Slurm and store what it recorded (nine minutes)."""
    command = [sys.executable, "-m", "tests.tools.slurm_workload", str(folder), "--seed", str(seed)]
    subprocess.run(command, check=True, timeout=1800)
    return folder


def replayed(folder):
    """(simulated, recorded) mean JCT in seconds of the jobs in a folder of `record`."""
    cluster, scenario = folder / "cluster.toml", folder / "scenario.toml"
    types = [word for one in TYPES for word in ("--gpu", one)]
    done(["cluster", "import", str(folder / "nodes.txt"), "--out", str(cluster), *types])
    options = ["--cluster", str(cluster), "--slurm-config", str(folder / "config.txt")]
    done(["trace", "scenario", str(folder / "sacct.txt"), "--out", str(scenario), *options])
    wanted = adlro.load_scenario(scenario, start_delay_s=START_DELAY_S)
    result = adlro.simulate(wanted, "slurm")
    history = history_file.history_of(wanted.history)
    rows = prepare(wanted).played.rows
    outcome, arrival = result.run.outcome, result.workload.jobs["arrival"]
    assert len(rows) >= 150
    return (outcome["finish"] - arrival).mean(), (history.end_s - history.ready_s())[rows].mean()


@pytest.mark.slow
def test_the_twin_reproduces_a_real_slurm(tmp_path):
    if why := missing():
        pytest.skip(why)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        folders = list(pool.map(lambda seed: record(tmp_path / str(seed), seed), SEEDS))
    found = [replayed(folder) for folder in folders]
    errors = [simulated / recorded - 1 for simulated, recorded in found]
    print("simulated and recorded mean JCT, s:", found)  # noqa: T201  figures of make slow
    assert max(map(abs, errors)) <= 0.15, errors
    assert abs(sum(errors) / len(errors)) <= 0.10, errors
