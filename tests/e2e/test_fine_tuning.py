"""`adlro train` on a history, as a user calls it."""

import json

import pytest

from adlro.policies.loading import learned
from tests import own_history
from tests.commands import called, interrupted

ARGS = ("train", "./mine.toml", "--out", "mine", "--episodes", "250", "--threads", "1")


@pytest.fixture
def place(tmp_path):
    """A folder with a scenario that plays a history."""
    own_history.write(tmp_path)
    return tmp_path


def test_a_history_is_fine_tuned_on_from_the_shipped_weights(place):
    result = called(*ARGS, "--json", "out.json", cwd=place)
    assert result.returncode == 0, result.stderr
    assert "mine · fine-tuned from shipped" in result.stdout
    data = json.loads((place / "out.json").read_text())
    assert (data["algorithm"], data["from"], data["file"]) == ("fine-tuning", "shipped", "mine.npz")
    assert data["jobs"] == {"training": 450, "selection": 180, "held_out": 270}
    assert data["held_out"]["windows"] == 5
    card = learned.load(place / "mine.npz").card
    is_shipped = data["is_shipped"]
    assert card.about.startswith("Tuned on mine" if is_shipped else "Unchanged weights")
    assert ("unchanged, since" in result.stdout) == (not is_shipped)
    shown = called("policy", "show", "./mine.npz", cwd=place)
    assert "sha256 of weights" in shown.stdout
    assert "on jobs that nothing was chosen by" in shown.stdout
    assert "Held out:" in " ".join(shown.stdout.split())
    played = called("simulate", "./mine.toml", "--policy", "./mine.npz", cwd=place)
    assert played.returncode == 0, played.stderr
    again = called(*ARGS, cwd=place)
    assert again.returncode == 0, again.stderr


def test_ctrl_c_keeps_the_best_and_the_same_command_goes_on(place):
    result = interrupted(*ARGS, cwd=place, once=place / "mine-training" / "metrics.jsonl")
    assert (result.returncode, result.stdout) == (130, ""), result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("adlro: stopped; mine.npz holds the best so far, from ")
    assert "not compared on the held-out jobs yet" in last
    assert last.endswith("to go on: " + "adlro train ./mine.toml --out mine --episodes 250 "
                         "--objective jct --seed 0")  # fmt: skip
    assert learned.load(place / "mine.npz").card.final == ()
    resumed = called(*ARGS, cwd=place)
    assert resumed.returncode == 0, resumed.stderr
    assert learned.load(place / "mine.npz").card.final != ()


WRONG = {
    "--from shiped": "adlro: --from: unknown 'shiped'; did you mean 'shipped'?",
    "--from none.npz": "adlro: none.npz: there is no such file",
    "--objective energy": "adlro: --objective energy: fine-tuning from shipped keeps inputs and",
    "--inputs sketches": "adlro: --inputs sketches: fine-tuning from shipped keeps inputs and",
    "--from shipped --algorithm paper-dqn": "adlro: --from: is for --algorithm adlro; leave it",
}


@pytest.mark.parametrize("options", WRONG)
def test_what_cannot_be_is_said_in_one_line(place, options):
    result = called("train", "./mine.toml", "--out", "mine", *options.split(), cwd=place)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith(WRONG[options])
    assert sorted(file.name for file in place.iterdir()) == ["jobs.csv", "mine.toml"]


def test_a_history_that_is_too_short_is_refused_in_one_line(tmp_path):
    own_history.write(tmp_path, own_history.rows_of(200))
    result = called(*ARGS, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("adlro: mine: fine-tuning needs 834 jobs that can be played")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["jobs.csv", "mine.toml"]


def test_scenarios_without_a_history_are_trained_from_nothing(tmp_path):
    result = called("train", "paper16", "--from", "shipped", "--out", "mine", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(
        "adlro: --from shipped: fine-tuning is for scenarios that play a history, and paper16"
    )
    assert list(tmp_path.iterdir()) == []
