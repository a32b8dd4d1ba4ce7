"""`adlro policy`: what is printed of policies."""

import json

import pytest
from click.testing import CliRunner

from adlro import __version__
from adlro.cli import policy, simulate
from adlro.errors import PolicyError
from adlro.policies import registry
from adlro.policies.loading import learned
from tests.trained import NAMES, ORIGIN, network, saved


def printed(*args):
    result = CliRunner().invoke(policy.command, args)
    assert result.exit_code == 0, result.output
    return result.output


def rows(text):
    """Label -> text of a table of two columns, folded lines joined."""
    found, label = {}, ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().split("   ", 1)]
        if line.startswith("  ") and not line.startswith("    ") and len(cells) == 2:
            label = cells[0]
            found[label] = cells[1]
        elif label:
            found[label] = f"{found[label]} {line.strip()}".strip()
    return found


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_the_card_of_a_learned_policy_is_shown(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    path = saved(tmp_path, "mine.npz")
    shown, card = printed("show", f"./mine{suffix}"), learned.load(path).card
    found = rows(shown.partition("on the seeds")[0])
    assert found == {
        "file": "mine.npz",
        "policy": "toy",
        "about": "five features, two small layers",
        "objective": "mean JCT",
        "trained on": "paper16, load 0.5 to 1.1",
        "training seeds": "1000000 to 1000500",
        "budget": "1.5 CPU-minutes, 1,200 labelled states, 34 episodes",
        "network": "5 features, hidden layers of 4 and 3 units",
        "features": ", ".join(NAMES),
        "training ranges": "none",
        # 2 + 5 * 4 + 4 + 4 * 3 + 3 + 3 = 44 weights
        "size": f"44 weights, {path.stat().st_size:,} bytes",
        "written": f"2026-11-16 by adlro {__version__}, format 1",
        "sha256 of weights": card.sha256_weights,
        "sha256 of card": card.sha256_card,
    }


def test_figures_are_shown_with_their_intervals_and_seeds(tmp_path):
    shown = printed("show", str(saved(tmp_path)))
    lines = [line.split() for line in shown.splitlines() if line.startswith("  paper16")]
    assert lines == [
        ["paper16", "0.8", "min-min", "-6.50", "%", "-7.25", "to", "-5.75", "wins"],
        ["paper16", "0.95", "min-min", "-8.00", "%", "-9.50", "to", "-6.50", "wins", "500-599"],
    ]
    assert "on the seeds by which it was chosen" in shown
    assert "on seeds that nothing was chosen by" not in shown


def test_final_figures_stand_in_a_table_of_their_own(tmp_path):
    origin = ORIGIN.model_copy(update={"selection": (), "final": ORIGIN.selection})
    learned.save(tmp_path / "toy.npz", network(), origin)
    shown = printed("show", str(tmp_path / "toy.npz"))
    assert "on the seeds by which it was chosen" not in shown
    assert "on seeds that nothing was chosen by" in shown


def test_what_a_card_says_is_text_and_no_markup(tmp_path):
    [figure, _] = ORIGIN.selection
    told = {
        "about": "[/red] [bold]x",
        "selection": (figure.model_copy(update={"scenario": "[/]"}),),
    }
    learned.save(tmp_path / "toy.npz", network(), ORIGIN.model_copy(update=told))
    shown = printed("show", str(tmp_path / "toy.npz"))
    assert rows(shown)["about"] == "[/red] [bold]x"
    assert "  [/] " in shown


def test_the_card_is_printed_as_json(tmp_path):
    path = saved(tmp_path)
    shown = json.loads(printed("show", str(path), "--json"))
    assert shown == json.loads(path.with_suffix(".json").read_text())


def test_the_policy_that_comes_with_the_package_is_learned():
    shown = json.loads(printed("show", "adlro", "--json"))
    assert shown["sha256_card"] == learned.shipped().card.sha256_card


def test_any_other_policy_shows_its_rule_and_what_it_is():
    found = rows(printed("show", "tiresias"))
    assert (found["policy"], found["kind"], found["preempts"]) == ("tiresias", "compiled", "yes")
    assert found["parameters"].startswith("GPU-seconds of service at which a job leaves")
    assert found["refuses"] == "no scenario"
    assert found["rule"].endswith("are not preempted.")


def test_the_facts_of_any_other_policy_are_printed_as_json():
    shown = json.loads(printed("show", "allox", "--json"))
    assert shown == registry.facts("allox")._asdict()
    assert (shown["is_compiled"], shown["is_preemptive"]) == (False, False)


def test_the_list_tells_learned_policies_from_rules():
    words = [line.split() for line in printed("list").splitlines()]
    kinds = {row[0]: row[1] for row in words if row and row[0] in registry.names()}
    assert list(kinds) == registry.names()
    learnt = [name for name, kind in kinds.items() if kind == "learned"]
    assert learnt == ["adlro", "adlro-preemptive", "paper-dqn"]
    assert (kinds["fcfs"], kinds["allox"]) == ("compiled", "Python")


def test_the_list_says_that_policies_can_look_ahead():
    assert "can look ahead: min-min+lookahead (see" in printed("list")


def test_a_policy_that_looks_ahead_is_shown_with_its_base():
    shown = rows(printed("show", "adlro+lookahead"))
    assert shown["policy"] == "adlro+lookahead"
    assert shown["kind"] == "looks ahead"
    assert shown["rule"].startswith("Looks ahead until all present jobs are done")


@pytest.mark.parametrize("name", ["sia+lookahead", "allox+lookahead", "min-min+lookahead:16:10:2"])
def test_who_cannot_look_ahead_so_is_refused_in_one_line(name):
    result = CliRunner().invoke(policy.command, ["show", name])
    assert isinstance(result.exception, PolicyError)
    assert "\n" not in str(result.exception)


def test_the_learned_policy_is_what_simulate_plays_unless_told_otherwise():
    [option] = [option for option in simulate.command.params if option.name == "policy"]
    assert option.default == "adlro"
