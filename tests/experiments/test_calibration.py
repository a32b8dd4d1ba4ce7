"""The experiment that compares the twin of Slurm with public histories."""

import pytest

from experiments.calibration import run
from tests.recorded import rows


def test_without_its_data_it_ends_with_status_2_and_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ADLRO_SHARED", str(tmp_path / "nowhere"))
    assert run.run(["--quick"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: ")


def test_a_machine_that_was_never_full_is_met(tmp_path):
    (tmp_path / "jobs.csv").write_text(rows([0] * 8))
    machine = run.Machine("toy", "jobs.csv", 2, 2, "gpus", "made up", window=4)
    found = run.calibrate(machine, tmp_path / "jobs.csv", 2)
    assert (found.policy, found.jobs) == ("slurm", 8)
    assert found.within_pct == pytest.approx(0, abs=1e-6)
    assert run._line(machine, found)[:3] == ["toy", "4 GPUs (made up)", "8"]
