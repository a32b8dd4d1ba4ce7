"""The commands name what is planted in histories that were written without sight of their code.

tests/planted/verdicts.py says what counts as named and what is a false alarm.
"""

import collections
import json

import pytest
from click.testing import CliRunner

from adlro.cli.main import cli
from tests import planted
from tests.planted import verdicts

ENOUGH = 18  # of 20 cases in which each thing must be named
TOLERATED = 2  # of 20 cases in which a command may name something else of a kind


def done(words):
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == 0, (words, result.output, result.exception)


def answers_of(true, folder):
    """The JSON of the three commands on a history."""
    cluster = folder / "cluster.toml"
    done(["cluster", "import", true.nodes, "--out", cluster])
    more = {"plan": [word for model in true.models for word in ("--remove", model)]}
    answers = {}
    for command in ("assess", "plan", "tune"):
        file = folder / f"{command}.json"
        given = ["--cluster", cluster, "--slurm-config", true.config, "--json", file]
        done([command, true.sacct, *given, *more.get(command, [])])
        answers[command] = json.loads(file.read_text())
    return answers


def test_the_commands_name_what_is_planted_in_one_history(tmp_path):
    true = planted.write(tmp_path, 0)
    answers = answers_of(true, tmp_path)
    told = verdicts.named(true, answers)
    assert [thing for thing, found in told.items() if not found] == []
    assert verdicts.false_alarms(true, answers) == []


@pytest.mark.slow
def test_the_commands_name_what_is_planted_in_nearly_all_histories(tmp_path, capsys):
    named, alarmed, notes = collections.Counter(), collections.Counter(), []
    for seed in planted.SEEDS:
        folder = tmp_path / str(seed)
        true = planted.write(folder, seed)
        answers = answers_of(true, folder)
        told, wrong = verdicts.named(true, answers), verdicts.false_alarms(true, answers)
        named.update(told)
        alarmed.update({(command, kind) for command, kind, _ in wrong})
        missed = [thing for thing, found in told.items() if not found]
        notes += [f"seed {seed}: missed {missed}, false alarms {wrong}"] if missed or wrong else []
    with capsys.disabled():
        print(f"\nnamed in so many of {len(planted.SEEDS)}: {dict(named)}")  # noqa: T201  for whoever runs make slow
        print(f"false alarms in so many: {dict(alarmed)}", *notes, sep="\n")  # noqa: T201  as above
    assert all(count >= ENOUGH for count in named.values()), (named, notes)
    assert all(count <= TOLERATED for count in alarmed.values()), (alarmed, notes)
