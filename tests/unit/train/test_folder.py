import json
from pathlib import Path

import numpy as np
import pytest

from adlro.errors import ConfigError, OutputError
from adlro.train.expansion import Labels
from adlro.train.folder import TrainingFolder
from adlro.train.labelling import read_labels, write_labels
from tests import toys


@pytest.fixture
def folder(tmp_path):
    found = TrainingFolder(tmp_path / "mine-training")
    with found.locked():
        yield found


def labels(rows, value):
    return Labels(
        np.full((rows, 3), value, np.float32), np.full((rows, 5), float(value)),
        np.array([[rows, 0, 1_000_000]]),
    )  # fmt: skip


def plan(scenario=toys.bound_and_free(), used=toys.tiny(), **changes):  # noqa: B008  frozen records: sharing them is harmless
    return toys.plan(scenario, used, **changes)


def test_a_plan_comes_back_the_same(folder):
    assert folder.plan(plan()) is None
    scaled = plan().model_copy(update={"hyperparameters": toys.small()})
    folder.write_plan(scaled)
    assert folder.plan(plan()) == scaled


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"used": toys.tiny().model_copy(update={"objective": "energy"})}, "objective jct"),
        ({"seed": 1}, "seed 0"),
        ({"budget_s": 9.0}, "budget None"),
        ({"episodes": 9}, "episodes None"),
        ({"used": toys.small()}, r"other hyperparameters \(tuning\)"),
        ({"scenario": toys.bound_and_free(jobs=7)}, "another scenario"),
    ],
)
def test_a_folder_of_another_training_is_refused(folder, changes, said):
    folder.write_plan(plan())
    with pytest.raises(ConfigError, match=f"was begun with {said}") as caught:
        folder.plan(plan(**changes))
    assert len(str(caught.value).splitlines()) == 1


def test_a_folder_of_another_version_is_refused(folder):
    folder.write_plan(plan().model_copy(update={"version": "0.0.1"}))
    with pytest.raises(ConfigError, match=r"begun with adlro 0\.0\.1"):
        folder.plan(plan())


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ConfigError, match=r"holds thesis\.tex"), TrainingFolder(tmp_path).locked():
        pytest.fail("was taken")


def test_two_trainings_cannot_share_a_folder(folder):
    with (
        pytest.raises(ConfigError, match="another training is at work"),
        TrainingFolder(folder.path).locked(),
    ):
        pytest.fail("was taken")


def test_a_checkpoint_comes_back_bit_by_bit(folder):
    assert folder.checkpoint() is None
    arrays = {"a/x": np.array([0.1, 1e-300]), "n": np.array(7)}
    folder.write_checkpoint(arrays, {"stale": 3})
    found, meta = folder.checkpoint()
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in arrays.items()
    }
    assert meta == {"stale": 3, "journal_bytes": 0}


def test_a_broken_checkpoint_says_what_to_do(folder):
    (folder.path / "checkpoint.npz").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(ConfigError, match=r"checkpoint\.npz: cannot be read; say --fresh"):
        folder.checkpoint()


def test_a_write_that_fails_leaves_the_former_file(folder, monkeypatch):
    folder.write_checkpoint({"a": np.array(1)}, {})

    def fail(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OutputError, match="No space"):
        folder.write_checkpoint({"a": np.array(2)}, {})
    assert folder.checkpoint()[0]["a"] == 1


def test_labels_are_read_in_order_up_to_the_first_gap(folder):
    write_labels(folder, 0, 2, [labels(1, 3)])
    write_labels(folder, 0, 0, [labels(2, 1), labels(3, 2)])
    write_labels(folder, 0, 9, [labels(1, 9)])  # of a training that was killed in between
    write_labels(folder, 1, 0, [labels(1, 7)])
    done, parts = read_labels(folder, 0)
    assert done == 3
    assert np.concatenate([part.features[:, 0] for part in parts]).tolist() == [1, 1, 2, 2, 2, 3]
    assert np.concatenate([part.groups[:, 0] for part in parts]).tolist() == [2, 3, 1]


def test_metrics_after_the_checkpoint_are_forgotten_on_resume(folder):
    folder.open_journal(0)
    folder.log("tuning", 1, {"ratio": 0.9})
    folder.write_checkpoint({}, {})
    folder.log("tuning", 2, {"ratio": 0.8})
    again = TrainingFolder(folder.path)
    again.open_journal(folder.checkpoint()[1]["journal_bytes"])
    again.log("tuning", 2, {"ratio": 0.7})
    lines = [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]
    assert [(line["step"], line["ratio"]) for line in lines] == [(1, 0.9), (2, 0.7)]


def test_clearing_removes_all_but_the_lock(folder):
    folder.write_plan(plan())
    write_labels(folder, 0, 0, [labels(1, 1)])
    folder.open_journal(0)
    folder.log("a", 1, {"b": 1.0})
    folder.clear()
    assert [file.name for file in folder.path.iterdir()] == ["lock"]
