"""Experiments that compare trainings: their quick runs."""

import json

import pytest

pytest.importorskip("torch")

from experiments.ablations import run as ablations
from experiments.ablations import variants as ablation_variants
from experiments.inputs import run as inputs
from experiments.inputs import variants as input_variants


@pytest.mark.parametrize("experiment", [ablations, inputs])
def test_a_quick_run_is_not_checked_against_the_published_figures(experiment, capsys):
    assert experiment.main(["--quick", "--expect"]) == 2
    assert "leave out --quick" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("experiment", "variants", "cases"),
    [(ablations, ablation_variants, 5), (inputs, input_variants, 10)],
)
def test_a_quick_run_goes_through_and_its_results_are_kept(
    experiment, variants, cases, tmp_path, capsys
):
    arguments = ["--quick", "--keep", str(tmp_path), "--json", str(tmp_path / "out.json")]
    assert experiment.main(arguments) == 0
    shown = capsys.readouterr()
    assert experiment.main([*arguments, "--resume"]) == 0
    again = capsys.readouterr()
    assert again.out == shown.out
    assert again.err.count(": from ") == cases
    details = json.loads((tmp_path / "out.json").read_text())["details"]
    assert set(details["cpu_s"]) == {one.key for one in variants.variants()}
