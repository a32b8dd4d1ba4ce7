"""The cache of compiled code: a change anywhere in our source makes it a new one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import adlro
from adlro import compiled

PACKAGE = Path(adlro.__file__).parent
# fill_free_times is compiled from encode/plan.py; whom it calls, expected_end, from model/room.py.
SCRIPT = """
import numpy as np
import adlro
from adlro.encode.plan import fill_free_times
from adlro.model.state import JOB, POOL, RUNNING

jobs, running, pools = np.zeros(1, JOB), np.zeros(1, RUNNING), np.zeros(1, POOL)
jobs["gpus"], jobs["share"], pools["gpus"] = 1, 1000, 1
counts, times = np.zeros(1), np.zeros(1)
fill_free_times(50.0, 1, jobs, running, pools, counts, times)  # an overdue run of 50 s
print(adlro.__file__, times[0])
"""


@pytest.fixture
def tree(tmp_path):
    """A folder of source files, some of them not Python."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "one.py").write_text("a = 1\n")
    (tmp_path / "inner" / "two.py").write_text("b = 2\n")
    (tmp_path / "notes.md").write_text("c\n")
    return tmp_path


def edit(tree):
    (tree / "inner" / "two.py").write_text("b = 3\n")


def add(tree):
    (tree / "three.py").write_text("")


def remove(tree):
    (tree / "one.py").unlink()


def rename(tree):
    (tree / "one.py").rename(tree / "uno.py")


def move(tree):
    (tree / "one.py").rename(tree / "inner" / "one.py")


def shift_text_to_another_file(tree):
    (tree / "one.py").write_text("a = 1\nb = 2\n")
    (tree / "inner" / "two.py").write_text("")


def touch(tree):
    os.utime(tree / "one.py", (1, 1))


def write_notes(tree):
    (tree / "notes.md").write_text("d\n")


def write_a_command(tree):
    (tree / "cli").mkdir()
    (tree / "cli" / "three.py").write_text("d = 4\n")


def write_the_same(tree):
    (tree / "one.py").write_text("a = 1\n")


@pytest.mark.parametrize("change", [edit, add, remove, rename, move, shift_text_to_another_file])
def test_the_fingerprint_changes_with_any_source_file(tree, change):
    before = compiled.source_hash(tree)
    change(tree)
    assert compiled.source_hash(tree) != before


@pytest.mark.parametrize("folder", compiled.NOT_COMPILED)
def test_folders_left_out_of_the_fingerprint_hold_no_compiled_code(folder):
    files = list((PACKAGE / folder).rglob("*.py"))
    assert files
    assert [path.name for path in files if "jit" in path.read_text()] == []


@pytest.mark.parametrize("change", [touch, write_notes, write_a_command, write_the_same])
def test_the_fingerprint_stays_as_long_as_the_source_does(tree, change):
    before = compiled.source_hash(tree)
    change(tree)
    assert compiled.source_hash(tree) == before


def test_the_fingerprint_does_not_depend_on_where_the_source_lies(tree):
    copy = shutil.copytree(tree, tree.parent / "elsewhere")
    assert compiled.source_hash(copy) == compiled.source_hash(tree)


def test_the_cache_lies_where_the_user_says_under_the_fingerprint(tmp_path, monkeypatch):
    monkeypatch.setenv("ADLRO_CACHE_DIR", str(tmp_path))
    folder = tmp_path / "adlro-numba" / compiled.source_hash(PACKAGE)
    assert compiled.cache_folder() == folder
    assert compiled.cache_state() == f"empty ({folder})"


def test_the_cache_lies_in_the_users_cache_folder_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv("ADLRO_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compiled.cache_folder().parent == tmp_path / "adlro-numba"


def run_copy(folder):
    """What the script prints with the copy of the package in `folder`, and its cache there."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "ADLRO_CACHE_DIR": str(folder / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    where, result = done.stdout.split()
    assert Path(where).parent == folder / "adlro"
    return float(result)


def compiled_files(folder):
    return sorted(path.name for path in (folder / "cache").rglob("*.nbc"))


def test_an_edit_of_a_callee_in_another_module_is_seen_and_so_is_its_undoing(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "adlro", ignore=shutil.ignore_patterns("__pycache__"))
    callee = tmp_path / "adlro" / "model" / "room.py"
    text = callee.read_text()
    times = callee.stat()
    first = run_copy(tmp_path)
    callee.write_text(text.replace("max(0.1 * (now", "max(0.2 * (now"))
    os.utime(callee, ns=(times.st_atime_ns, times.st_mtime_ns))
    second = run_copy(tmp_path)
    files = compiled_files(tmp_path)
    callee.write_text(text)
    third = run_copy(tmp_path)
    assert (first, second, third) == (55, 60, 55)  # 50 s and a tenth, a fifth, a tenth of its age
    assert files
    assert compiled_files(tmp_path) == files  # the third run found the first one's code again


def test_only_a_few_caches_of_other_versions_are_kept_and_nothing_else_is_touched(tmp_path):
    folder = tmp_path / "adlro"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    caches = tmp_path / "cache" / "adlro-numba"
    for age in range(10):
        old = caches / f"{age:016x}"
        old.mkdir(parents=True)
        os.utime(old, (1000 - age, 1000 - age))
    (caches / "notes").mkdir()
    (tmp_path / "cache" / "numba-0.60").mkdir()
    run_copy(tmp_path)
    kept = {path.name for path in caches.iterdir()}
    assert kept == {compiled.source_hash(folder), "notes", *(f"{age:016x}" for age in range(4))}
    assert (tmp_path / "cache" / "numba-0.60").is_dir()
