"""`adlro simulate` on a history: what happened stands beside what was simulated."""

import json

import pytest
from click.testing import CliRunner

from adlro.cli import simulate
from adlro.config.files import adjusted
from adlro.config.to_toml import as_toml
from tests.recorded import rows, setting


def simulated(folder, ready, *args):
    (folder / "played.toml").write_text(as_toml(ready.scenario))
    words = [str(folder / "played.toml"), "--policy", "fcfs", *args]
    result = CliRunner().invoke(simulate.command, words)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_what_happened_stands_beside_what_was_simulated(tmp_path):
    ready = setting(tmp_path, rows([10] * 8))
    lines = simulated(tmp_path, ready).splitlines()
    (line,) = (line for line in lines if "mean wait" in line)
    assert line.split() == ["mean", "wait,", "s", "0", "10"]
    (line,) = (line for line in lines if "HyperScore" in line)
    assert len(line.split()) == 2  # the record has none
    found = json.loads(simulated(tmp_path, ready, "--json", "-"))
    assert found["recorded"]["mean_jct_s"] == 210
    assert found["calibration"] is None  # only for slurm
    assert "all jobs: priority = 0.5" in found["notes"]


@pytest.mark.parametrize(
    ("text", "load", "said"),
    [
        (rows([None] * 8), 1.0, "What happened is not shown: the history records no starts."),
        (rows(), 2.0, "recorded waits do not apply"),
    ],
)
def test_without_it_the_reason_is_said(tmp_path, text, load, said):
    ready = setting(tmp_path, text)
    ready = ready._replace(scenario=adjusted(ready.scenario, load=load * ready.scenario.load))
    found = json.loads(simulated(tmp_path, ready, "--json", "-"))
    assert found["recorded"] is None
    assert said in " ".join(found["notes"])


def test_run_times_known_in_advance_are_marked(tmp_path):
    text = simulated(tmp_path, setting(tmp_path), "--estimates", "oracle")
    assert "no real scheduler has them" in " ".join(text.split())
