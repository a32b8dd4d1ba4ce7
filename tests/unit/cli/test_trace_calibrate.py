"""`adlro trace calibrate`: what is printed, and what is refused."""

import json
import re

import pytest
from click.testing import CliRunner

from adlro.cli import trace
from adlro.config.files import adjusted
from adlro.config.to_toml import as_toml
from adlro.errors import ConfigError
from tests.recorded import WAITS, rows, scenario, setting

CLUSTER = """
[[nodes]]
name = "volta"
gpu = "V100"
gpus = 4
cores = 64
memory_gb = 64
partitions = ["main"]
"""


def run(*args):
    words = ["calibrate", *map(str, args), "--policy", "fcfs"]
    return CliRunner().invoke(trace.command, words)


def printed(*args):
    result = run(*args)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


@pytest.fixture
def files(tmp_path):
    """A history, a cluster and a scenario of both; the cluster is never full."""
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    ready = setting(tmp_path, rows([0] * 8))
    (tmp_path / "played.toml").write_text(as_toml(ready.scenario))
    return tmp_path


def test_a_record_without_waits_is_met_by_a_cluster_that_is_never_full(files):
    for args in (
        (files / "played.toml",),
        (files / "jobs.csv", "--cluster", files / "cluster.toml"),
    ):
        text = " ".join(printed(*args).split())
        assert "With fcfs, this simulation reproduces your cluster within 0 %" in text
        found = json.loads(printed(*args, "--json"))
        assert (found["within_pct"], found["jobs"]) == (pytest.approx(0, abs=1e-9), 8)


def test_waits_that_the_simulation_does_not_have_are_a_warning(files):
    (files / "jobs.csv").write_text(rows([500 + wait for wait in WAITS]))
    text = " ".join(printed(files / "jobs.csv", "--cluster", files / "cluster.toml").split())
    assert re.search("WARNING: with fcfs, this simulation is .* % off your cluster", text)
    assert "Likely reason: " in text


def test_a_history_without_starts_is_refused(files):
    (files / "jobs.csv").write_text(rows([None] * 8))
    result = run(files / "jobs.csv", "--cluster", files / "cluster.toml")
    assert isinstance(result.exception, ConfigError)
    assert "cannot be calibrated: the history records no starts" in str(result.exception)


def test_another_load_and_a_scenario_without_a_history_are_refused(files):
    wanted = scenario(files, rows([0] * 8))
    (files / "played.toml").write_text(as_toml(adjusted(wanted, load=0.25)))
    assert "recorded waits do not apply" in str(run(files / "played.toml").exception)
    alone = wanted.model_copy(update={"history": None})
    (files / "alone.toml").write_text(as_toml(alone))
    assert "has no history to compare with" in str(run(files / "alone.toml").exception)


def test_a_history_needs_a_cluster_and_a_scenario_has_one(files):
    assert "a history needs one" in run(files / "jobs.csv").output
    result = run(files / "played.toml", "--cluster", files / "cluster.toml")
    assert "the scenario has a cluster" in result.output
