"""Shared code of the experiments, and the experiments that can run here."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from adlro.errors import ConfigError
from experiments import common
from experiments.common import Expected, Figure, Result, Table
from experiments.versus import percent

ROOT = Path(__file__).parents[2]
FIGURE = {"row": "a", "column": "x", "value": 10.0, "tolerance": 0.5}


def expected(**changes):
    return Expected(figures=(Figure(**{**FIGURE, **changes}),), command="c", made_with="m")


def run(folder, found, *arguments, figures=(FIGURE,)):
    """Return the exit status of an experiment that finds this figure."""
    holds = {"figures": figures, "command": "c", "made_with": "m"}
    (folder / "expected.json").write_text(json.dumps(holds))
    return run_again(folder, found, *arguments)


def run_again(folder, found, *arguments):
    """The same with the existing expected.json."""

    def make(quick):
        return Result(("row", "x"), [("a", str(found))], {"a": {"x": found}}, {"quick": quick})

    return common.main("about", folder, make, arguments)


@pytest.mark.parametrize("found", [9.5, 10.0, 10.5])
def test_a_figure_within_its_tolerance_is_as_expected(found):
    assert common.misses({"a": {"x": found}}, expected()) == []


@pytest.mark.parametrize("found", [9.499, 10.501, float("nan")])
def test_a_figure_outside_of_its_tolerance_is_a_miss(found):
    (line,) = common.misses({"a": {"x": found}}, expected())
    assert line == f"a, x: {found:g} is not within 0.5 of 10"


@pytest.mark.parametrize("figures", [{}, {"a": {}}, {"b": {"x": 10.0}}])
def test_a_figure_that_was_not_found_is_a_miss(figures):
    assert common.misses(figures, expected()) == ["a, x: expected 10, but there is no such figure"]


@pytest.mark.parametrize(
    ("arguments", "found", "status"),
    [((), 99.0, 0), (("--check",), 10.1, 0), (("--check",), 10.6, 1)],
)
def test_only_a_check_that_fails_ends_with_status_1(tmp_path, arguments, found, status):
    assert run(tmp_path, found, *arguments) == status


def test_the_table_is_markdown_and_misses_are_printed_separately(tmp_path, capsys):
    run(tmp_path, 12.0, "--check", figures=(FIGURE, {**FIGURE, "value": 12.0}))
    shown = capsys.readouterr()
    assert shown.out == "| row | x |\n| --- | --- |\n| a | 12.0 |\n"
    assert shown.err == "a, x: 12 is not within 0.5 of 10\n1 of 2 figures are as expected\n"


def test_the_figures_are_written_with_the_version_that_made_them(tmp_path):
    assert run(tmp_path, 12.0, "--quick", "--json", str(tmp_path / "out.json")) == 0
    found = json.loads((tmp_path / "out.json").read_text())
    assert found == {
        "version": common.__version__,
        "figures": {"a": {"x": 12.0}},
        "details": {"quick": True},
    }


def test_a_user_error_is_one_line_and_status_2(tmp_path, capsys):
    assert run(tmp_path, 1.0, "--json", str(tmp_path / "no" / "out.json")) == 2
    assert run(tmp_path, 1.0, "--check", figures=()) == 2
    shown = capsys.readouterr()
    lines = shown.err.splitlines()
    assert "out.json: there is no folder" in lines[0]
    assert shown.out == ""  # a figure that could not be written is not worked out first
    assert "expected.json: figures: " in lines[1]
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file or directory; run without --check"),
        ("nonsense", "Invalid JSON"),
        ('{"figures": [], "command": "c", "made_with": "m"}', "figures: "),
        (json.dumps({"figures": [{**FIGURE, "tolerance": -1}]}), "figures.0.tolerance: "),
        (json.dumps({"figures": [FIGURE], "command": "c", "made_with": "m", "x": 1}), "x: "),
    ],
)
def test_an_invalid_expected_json_is_refused_in_one_line(tmp_path, text, said):
    path = tmp_path / "expected.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        common.load_expected(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")


def test_the_table_goes_between_the_marks_of_both_pages_and_nothing_else_changes(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(common, "ROOT", tmp_path)
    folder, results = tmp_path / "mine", tmp_path / "docs" / "results.md"
    folder.mkdir()
    results.parent.mkdir()
    for path in (folder / "README.md", results):
        path.write_text("before\n<!-- mine -->\nold\n<!-- end of mine -->\nafter\n")
    common.show(Result(("row", "x"), [("a", "1"), ("b", "2")], {}, brief=("b",)), folder)
    head, end = (
        "before\n<!-- mine -->\n| row | x |\n| --- | --- |\n",
        "<!-- end of mine -->\nafter\n",
    )
    assert (folder / "README.md").read_text() == f"{head}| a | 1 |\n| b | 2 |\n{end}"
    assert results.read_text() == f"{head}| b | 2 |\n{end}"


def test_further_tables_have_captions_and_only_some_go_into_the_results():
    more = [Table("In short:", ("x",), [("1",)], True), Table("At length:", ("y",), [], False)]
    result = Result(("row",), [("a",), ("b",)], {}, brief=("b",), more=more, note="Beware.")
    first, second = "In short:\n\n| x |\n| --- |\n| 1 |\n", "At length:\n\n| y |\n| --- |\n"
    head = "| row |\n| --- |\n"
    assert result.text() == f"{head}| a |\n| b |\n\n{first}\n{second}\nBeware.\n"
    assert result.text(is_brief=True) == f"{head}| b |\n\n{first}\nBeware.\n"


def test_expected_figures_match_the_run_that_wrote_them_and_nothing_further_off(tmp_path):
    found = {"a": {"x": 200.0}, "b": {"x": -3.0, "y": 0.0}}
    common.expect(found, tmp_path)
    wanted = common.load_expected(tmp_path / "expected.json")
    assert common.misses(found, wanted) == []
    # half a percent: 200 ± 1, -3 ± 0.015
    assert [figure.tolerance for figure in wanted.figures] == [1.0, 0.015, 0.0]
    assert wanted.command == f"python experiments/{tmp_path.name}/run.py --check"
    assert wanted.made_with == f"adlro {common.__version__}"


def test_a_tolerance_that_was_widened_by_hand_is_kept(tmp_path):
    figures = ({"row": "a", "column": "x", "value": 10.0, "tolerance": 0.5},)
    (tmp_path / "expected.json").write_text(
        json.dumps({"figures": figures, "command": "run", "made_with": "adlro"})
    )
    common.expect({"a": {"x": 20.0, "y": 20.0}}, tmp_path)
    wanted = common.load_expected(tmp_path / "expected.json").figures
    assert [one.tolerance for one in wanted] == [1.0, 0.1]


def test_expected_figures_are_written_only_on_demand(tmp_path):
    run(tmp_path, 12.0)
    assert run_again(tmp_path, 12.0, "--check") == 1  # 10 ± 0.5 as before
    run_again(tmp_path, 12.0, "--expect")
    assert run_again(tmp_path, 12.5, "--check") == 0
    assert run_again(tmp_path, 12.7, "--check") == 1  # 12 ± 0.6


def test_a_readme_without_a_place_is_refused_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(common, "ROOT", tmp_path)
    (tmp_path / "README.md").write_text("nothing\n")
    assert common.main("about", tmp_path, pytest.fail, ["--readme"]) == 2
    assert "README.md: has no lines" in capsys.readouterr().err


def test_a_readme_without_the_marks_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "ROOT", tmp_path)
    (tmp_path / "README.md").write_text("<!-- end of mine -->\n<!-- mine -->\n")
    with pytest.raises(ConfigError, match=r"README\.md: has no lines '<!-- "):
        common.show(Result(("row",), [("a",)], {}), tmp_path)


def test_a_mean_is_shown_with_half_of_its_interval():
    assert common.plus_minus(95.557, (95.43, 95.69)) == "95.56 ± 0.13"
    assert common.plus_minus(95.557, None, 1) == "95.6"
    assert common.plus_minus(11857.0, (8472.0, 15242.0), 0) == "11,857 ± 3,385"


def test_an_asymmetric_interval_is_shown_with_both_ends():
    assert percent(76.3, (38.9, 259.1)) == "+76.3 % (+38.9 to +259.1)"
    assert percent(1327.0, (998.0, 1842.0)) == "+1,327 % (+998 to +1,842)"
    assert percent(-4.0, None) == "-4.0 %"


def test_the_shared_data_is_beside_the_repository_unless_the_environment_says_where(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("ADLRO_SHARED", str(tmp_path))
    assert common.shared() == tmp_path
    monkeypatch.setenv("ADLRO_SHARED", str(tmp_path / "absent"))
    with pytest.raises(ConfigError, match="absent: no such folder; set ADLRO_SHARED"):
        common.shared()
    monkeypatch.delenv("ADLRO_SHARED")
    monkeypatch.setattr(common, "ROOT", tmp_path / "repository")
    (tmp_path / "shared").mkdir()
    assert common.shared() == tmp_path / "shared"


@pytest.mark.parametrize("path", sorted(ROOT.glob("experiments/*/run.py")), ids=str)
def test_every_experiment_says_what_it_expects_and_how_to_run_it(path):
    name = path.parent.name
    command = common.load_expected(path.parent / "expected.json").command
    assert command == f"python experiments/{name}/run.py --check"
    assert command in (path.parent / "README.md").read_text(encoding="utf-8")
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert f"<!-- {name} -->\n| " in results
    assert f"`python experiments/{name}/run.py`" in results


def quick_first(paths):
    """All experiments; all but the first are slow, because each is a process."""
    listed = [pytest.param(path, id=path.parent.name) for path in sorted(paths)]
    slow = [pytest.param(*one.values, id=one.id, marks=pytest.mark.slow) for one in listed[1:]]
    return [listed[0], *slow]


@pytest.mark.parametrize("path", quick_first(ROOT.glob("experiments/*/run.py")))
def test_every_experiment_is_a_program(path):
    asked = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True)
    assert asked.returncode == 0
    assert "--quick" in asked.stdout


def test_an_experiment_without_its_data_fails_with_one_line(tmp_path):
    path = ROOT / "experiments" / "openb_placement" / "run.py"
    environment = {**os.environ, "ADLRO_SHARED": str(tmp_path / "absent")}
    asked = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment)
    assert asked.returncode == 2
    assert asked.stderr == (
        f"error: {tmp_path}/absent: no such folder; set ADLRO_SHARED to the one that holds data/\n"
    )


@pytest.fixture
def openb():
    """The experiment, if its data is available."""
    from experiments.openb_placement import run as experiment

    try:
        folder = common.shared()
    except ConfigError as exc:
        pytest.skip(str(exc))
    if not (folder / experiment.PODS).is_file():
        pytest.skip(f"{folder / experiment.PODS}: no such file")
    return experiment


def test_placement_on_openb_is_as_expected_with_three_seeds(openb):
    folder = ROOT / "experiments" / "openb_placement"
    assert common.main("", folder, openb.make, ["--quick", "--check"]) == 0


@pytest.mark.slow
def test_placement_on_openb_is_as_expected_and_fgd_needs_its_tie_rule(openb):
    folder = ROOT / "experiments" / "openb_placement"
    wanted = common.load_expected(folder / "expected.json")
    figures = openb.make(False).figures
    assert common.misses(figures, wanted) == []
    fgd, luck, best_fit, rare = (
        figures[row]["allocation_pct"]
        for row in (
            "fgd, score in 100 steps, by name",
            "fgd, score in 100 steps, random",
            "best-fit, by name",
            "fgd-all, exact score, random",
        )
    )
    assert luck < best_fit < fgd
    assert best_fit < rare
