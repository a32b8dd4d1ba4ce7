"""A synthetic truth, read back by the importer and replayed: the same waits, on allowed GPUs.

The truth (tests/truth) was written without sight of the importer: Slurm's own texts of jobs that an
independent plain scheduler ran.
"""

import numpy as np
import pytest
from click.testing import CliRunner

import adlro
from adlro.cli.main import cli
from adlro.evaluate import compare
from adlro.evaluate.metrics import measure
from adlro.policies import registry
from adlro.workloads import history_file
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests import truth

QUICK, ALL = range(2), range(5)


def imported(folder, seed, drop=(), requeues=True):
    """The files of a truth, and the scenario that the commands make of them."""
    true = truth.write(folder, seed, drop, requeues=requeues)
    cluster, scenario = folder / "cluster.toml", folder / "scenario.toml"
    done(["cluster", "import", str(true.nodes), "--out", str(cluster)])
    options = ["--cluster", str(cluster), "--out", str(scenario), "--jobs", str(gpu_runs(true))]
    done(["trace", "scenario", str(true.sacct), *options])
    return true, adlro.load_scenario(scenario, estimates="request")


def gpu_runs(true):
    """Number of runs with GPUs, those that requeued jobs lost included."""
    return sum(run.job.gpus > 0 for run in true.runs)


def done(words):
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result.output


class Replayed:
    """How jobs of a truth waited and where they ran in a simulation of its files."""

    def __init__(self, true, scenario, policy="easy-backfill"):
        setting = prepare(scenario)
        workload = generate(setting, 0)
        run = compare.run_one(setting, workload, registry.load(policy, setting), 0, keep_spans=True)
        history = history_file.history_of(scenario.history)
        jobs = {job.id: job for job in true.jobs}
        self.jobs = [jobs[history.id[row]] for row in setting.played.rows]  # of each run
        self.wait = float((run.outcome["start"] - workload.jobs["arrival"])[~workload.lost].mean())
        self.measured = measure(setting, workload, run).mean_wait_s
        self.count = int((~workload.lost).sum())
        names = np.array(setting.layout.node_names)[setting.layout.gpus["node"][run.spans["gpu"]]]
        self.nodes = [set(names[run.spans["job"] == j]) for j in range(len(self.jobs))]

    def misplaced(self):
        """Jobs on a node that their partitions or type do not permit."""
        pairs = zip(self.jobs, self.nodes, strict=True)
        return [job.id for job, nodes in pairs if not nodes <= job.allowed]

    def torn(self):
        """Gangs asked for on one node that ran on several."""
        pairs = zip(self.jobs, self.nodes, strict=True)
        return [job.id for job, nodes in pairs if job.one_node and len(nodes) > 1]


def replays(folder, seeds, requeues):
    """(truth, replay) of each seed."""
    found = []
    for seed in seeds:
        own = folder / str(seed)
        own.mkdir()
        true, scenario = imported(own, seed, requeues=requeues)
        found.append((true, Replayed(true, scenario)))
    return found


def assert_replayed(found, within):
    for true, replay in found:
        assert len(replay.jobs) == gpu_runs(true)
        assert replay.count == len(true.jobs)
        assert replay.measured == pytest.approx(replay.wait)
        assert replay.misplaced() == []
        assert replay.torn() == []
    recorded = sum(true.mean_wait for true, _ in found)
    assert sum(replay.wait for _, replay in found) == pytest.approx(recorded, rel=within)


@pytest.mark.parametrize("seeds", [QUICK, pytest.param(ALL, marks=pytest.mark.slow)])
def test_the_waits_are_those_of_the_truth_and_every_gpu_is_allowed(tmp_path, seeds):
    assert_replayed(replays(tmp_path, seeds, requeues=False), within=0.05)


@pytest.mark.slow
def test_waits_are_those_of_the_truth_also_with_requeues(tmp_path):
    # Of a requeued job the last record counts: its earlier runs are load that is not measured.
    found = replays(tmp_path, ALL, requeues=True)
    assert all(gpu_runs(true) > len(true.jobs) for true, _ in found)
    assert_replayed(found, within=0.05)


@pytest.mark.parametrize("drop", ["partition", "type", "one-node"])
def test_a_file_that_lacks_a_constraint_is_found_out(drop, tmp_path):
    true, scenario = imported(tmp_path, 0, [drop])
    replay = Replayed(true, scenario)
    assert replay.misplaced() if drop != "one-node" else replay.torn()
    assert replay.wait != pytest.approx(true.mean_wait, rel=0.05)
