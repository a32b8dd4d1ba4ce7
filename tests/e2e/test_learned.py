"""Learned policies on the command line: a user's own files, good and bad."""

import json

import pytest

from tests.commands import called
from tests.trained import saved


def test_a_learned_policy_is_compared_and_reported(tmp_path):
    saved(tmp_path, "mine.npz")
    args = ("--policies", "./mine.npz,adlro,min-min", "--seeds", "2", "--jobs", "40")
    result = called("compare", *args, "--report", "page", "--json", "out.json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "out.json").read_text())["policies"]
    assert sorted(row["name"] for row in rows) == ["adlro", "min-min", "mine"]
    assert "mine" in (tmp_path / "page" / "report.html").read_text()


def test_simulate_plays_a_learned_policy_by_either_file_and_ours_by_default(tmp_path):
    saved(tmp_path, "mine.npz")
    few = ("simulate", "--jobs", "20", "--json", "-")
    wanted = ((), ("--policy", "mine.npz"), ("--policy", "./mine.json"))
    shown = [json.loads(called(*few, *args, cwd=tmp_path).stdout) for args in wanted]
    assert [run["policy"] for run in shown] == ["adlro", "mine", "mine"]
    assert shown[1] == shown[2]


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-100])


def lose_card(path):
    path.with_suffix(".json").unlink()


def improve(path):
    card = path.with_suffix(".json")
    card.write_text(card.read_text().replace("-7.25", "-17.25"))


def mix_up(path):
    path.write_bytes(saved(path.parent, "other.npz", seed=1).read_bytes())


@pytest.mark.parametrize(
    ("harm", "file", "said"),
    [
        (cut_short, "mine.npz", "is not an .npz file, or is cut short"),
        (lose_card, "mine.json", "there is no such file; mine.npz is of no use without it"),
        (improve, "mine.json", "was changed after it was written"),
        (mix_up, "mine.npz", "is not what mine.json describes"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("compare", "--policies", "fcfs,./mine.npz"),
        ("simulate", "--policy", "./mine.npz"),
        ("policy", "show", "./mine.npz"),
    ],
)
def test_a_bad_file_is_one_line_with_status_2(tmp_path, command, harm, file, said):
    harm(saved(tmp_path, "mine.npz"))
    result = called(*command, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert line.startswith(f"adlro: {file}: {said}")
