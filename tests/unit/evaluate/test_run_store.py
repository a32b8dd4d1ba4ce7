"""Finished runs on disk: what they are found by, and what becomes of damaged ones."""

import os

import numpy as np
import pytest

from adlro.config.files import adjusted
from adlro.evaluate import run_store
from adlro.evaluate.metrics import Metrics
from adlro.evaluate.run_store import RunStore, run_key
from adlro.evaluate.variants import Variant, restricted, rows_of, windows_of
from adlro.files import pack_arrays
from tests.assessed import run_of, text, variants


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    whole = variants(tmp_path_factory.mktemp("store")).setting(Variant())
    return restricted(whole, rows_of(whole), windows_of(360))


def store_of(folder, content="a history"):
    history = folder / "jobs.txt"
    history.write_text(content)
    return RunStore(history, folder / "runs")


def files_of(folder):
    return sorted((folder / "runs").glob("*/*"))


def test_a_run_is_found_again_as_it_was_by_another_process_too(tmp_path):
    run = run_of([1.5, 0.0, np.inf])
    store_of(tmp_path).put("k", run)
    found = store_of(tmp_path).get("k")
    np.testing.assert_array_equal(found.wait_s, run.wait_s)
    np.testing.assert_array_equal(found.jct_s, run.jct_s)
    assert found.metrics == run.metrics
    assert store_of(tmp_path).get("another") is None
    assert store_of(tmp_path, "another history").get("k") is None


WAITS, FIGURES = np.array([1.0, 2.0]), np.arange(float(len(Metrics._fields)))
GOOD = {"wait_s": WAITS, "jct_s": WAITS, "metrics": FIGURES}


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"PK\3\4 is no archive",
        pack_arrays(GOOD)[:-40],
        pack_arrays(GOOD).replace(b"wait_s", b"wait_x"),
        pack_arrays(GOOD | {"metrics": FIGURES[1:]}),
        pack_arrays(GOOD | {"wait_s": WAITS[1:]}),
        pack_arrays(GOOD | {"wait_s": WAITS.astype(np.int64)}),
        pack_arrays(GOOD | {"wait_s": np.array(["a", "b"])}),
        pack_arrays(GOOD | {"jct_s": WAITS[:, None]}),
    ],
)
def test_a_damaged_file_counts_as_none_and_is_replaced(damaged, tmp_path):
    store = store_of(tmp_path)
    store.put("k", run_of([1.0]))
    [file] = files_of(tmp_path)
    file.write_bytes(damaged)
    assert store.get("k") is None
    store.put("k", run_of([1.0, 2.0]))
    assert store.get("k").wait_s.tolist() == [1, 2]
    assert files_of(tmp_path) == [file]  # nothing half-written is left


def test_where_nothing_can_be_written_the_work_goes_on_and_the_store_says_so(tmp_path):
    (tmp_path / "runs").write_text("a file, where a folder should be")
    store = store_of(tmp_path)
    store.put("k", run_of([1.0]))
    store.put("k", run_of([1.0]))
    assert not store.is_usable
    assert store.get("k") is None


def test_without_a_home_nothing_is_stored(tmp_path, monkeypatch):
    def unknown(_):
        raise RuntimeError("Could not determine home directory.")

    for name in ("ADLRO_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(run_store.Path, "expanduser", unknown)
    store = RunStore(tmp_path / "jobs.txt")
    store.put("k", run_of([1.0]))
    assert not store.is_usable
    assert store.get("k") is None


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"ADLRO_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, "/a/adlro-runs"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/adlro-runs"),
        ({"HOME": "/c"}, "/c/.cache/adlro-runs"),
    ],
)
def test_the_folder_follows_from_the_environment(variables, folder, monkeypatch):
    for name in ("ADLRO_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(run_store.default_folder()) == folder


def test_the_histories_least_recently_used_are_forgotten(tmp_path):
    for number in range(8):
        store_of(tmp_path, f"history {number}").put("k", run_of([float(number)]))
        newest = max((tmp_path / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (1_000 + number, 1_000 + number))
    assert store_of(tmp_path, "history 0").get("k") is not None  # now the most recent
    store_of(tmp_path, "history 8").put("k", run_of([8.0]))
    kept = [store_of(tmp_path, f"history {number}").get("k") is not None for number in (0, 2, 8)]
    assert kept == [True, True, True]
    assert store_of(tmp_path, "history 1").get("k") is None


def test_the_key_changes_with_all_that_a_run_depends_on(setting, tmp_path, monkeypatch):
    played, policy = setting.played, tmp_path / "mine.npz"
    policy.write_bytes(b"weights")

    def changed(**keys):
        return setting._replace(scenario=adjusted(setting.scenario, **keys))

    keys = [
        run_key(setting, "slurm", 0),
        run_key(setting, "slurm", 1),
        run_key(setting, "adlro", 0),
        run_key(changed(load=setting.scenario.load * 1.01), "slurm", 0),
        run_key(changed(estimates="oracle"), "slurm", 0),
        run_key(changed(measure="all"), "slurm", 0),
        run_key(changed(slurm={"weight_age": 1}), "slurm", 0),
        run_key(setting._replace(played=played._replace(rows=played.rows[::-1])), "slurm", 0),
        run_key(setting._replace(played=played._replace(stride=7)), "slurm", 0),
        run_key(setting, str(policy), 0),
    ]
    ahead = f"{policy}+lookahead"
    keys.append(run_key(setting, ahead, 0))
    policy.write_bytes(b"other weights")
    keys += [run_key(setting, str(policy), 0), run_key(setting, ahead, 0)]
    policy.with_suffix(".json").write_text("{}")  # the other file of the same policy
    keys += [run_key(setting, str(policy), 0), run_key(setting, ahead, 0)]
    monkeypatch.setattr(run_store, "_source", lambda: b"another version")
    keys.append(run_key(setting, "slurm", 0))
    assert len(set(keys)) == len(keys)


def test_the_key_is_the_same_for_the_same_run_and_changes_with_the_history(tmp_path):
    keys = []
    for content in (text(), text(), text().replace("ann", "eve")):
        whole = variants(tmp_path, content).setting(Variant())
        keys.append(run_key(restricted(whole, rows_of(whole), windows_of(360)), "slurm", 0))
    assert keys[0] == keys[1] != keys[2]
