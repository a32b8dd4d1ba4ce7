"""The experiment on what operators are told."""

from pathlib import Path

import pytest

from experiments import common
from experiments.operator import run

FOLDER = Path(run.__file__).parent


def test_the_example_is_the_first_of_its_histories(tmp_path):
    run._write(tmp_path, run.SEEDS[0])
    example = common.ROOT / "examples" / "history"
    assert (tmp_path / "jobs.txt").read_text() == (example / "jobs.sacct.txt").read_text()
    assert (tmp_path / "nodes.txt").read_text() == (example / "nodes.txt").read_text()


@pytest.mark.slow
def test_the_figures_are_as_expected():
    assert common.main("", FOLDER, run.make, ["--check"]) == 0
