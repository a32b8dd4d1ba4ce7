"""The cache of compiled code: a change in whatever that depends on makes it a new one."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import adlro
from adlro import compile_cache

PACKAGE = Path(adlro.__file__).parent
# frees_at is in planning/min_min.py, and calls expected_end of model/feasibility.py.
SCRIPT = """
import numpy as np
import adlro
from adlro.planning.min_min import frees_at
from adlro.model.state import JOB, RUNNING

jobs, running = np.zeros(1, JOB), np.zeros(1, RUNNING)
jobs["share"] = 1000
print(adlro.__file__, frees_at(0, 50.0, jobs, running))  # an overdue run of 50 s
"""


TREE = {  # one.py is compiled; two, three, four and five are what it imports, by some way or other
    "one.py": "from adlro.compiled import njit, wide\nfrom adlro.inner import two as second\n",
    "inner/__init__.py": "",
    "inner/two.py": "from adlro.three import (\n  a,\n  b,\n)\nfrom . import four\n",
    "inner/four.py": "def later():\n    import adlro.five\n",
    "three.py": "a, b = 1, 2\n",
    "five.py": "",
    "outside.py": "from adlro.one import run\nfrom adlro.compiled import dispatcher\n",
    "notes.md": "c\n",
}


@pytest.fixture
def tree(tmp_path):
    """A folder of source files, some of them not Python."""
    (tmp_path / "inner").mkdir()
    for name, text in TREE.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def change(tree, name, text="x = 1\n"):
    file = tree / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(TREE.get(name, "") + text)


INSIDE = [name for name in TREE if name not in ("outside.py", "notes.md")]


@pytest.mark.parametrize("name", INSIDE)
def test_the_fingerprint_changes_with_whatever_compiled_code_imports(tree, name):
    before = compile_cache.source_hash(tree)
    change(tree, name)
    assert compile_cache.source_hash(tree) != before


@pytest.mark.parametrize("name", ["outside.py", "notes.md", "cli/new.py"])
def test_the_fingerprint_stays_whatever_is_written_elsewhere(tree, name):
    before = compile_cache.source_hash(tree)
    change(tree, name, "from adlro.three import a\n")
    assert compile_cache.source_hash(tree) == before


def add_compiled(tree):
    change(tree, "new.py", "from adlro.compiled import njit_apart\n")


def compile_what_was_not(tree):
    change(tree, "outside.py", "from adlro import compiled\n")


def import_one_more(tree):
    change(tree, "inner/four.py", "from ..outside import x\n")


def remove(tree):
    (tree / "five.py").unlink()


def move(tree):
    (tree / "one.py").rename(tree / "inner" / "one.py")


def exchange_texts(tree):
    (tree / "three.py").write_text(TREE["five.py"])
    (tree / "five.py").write_text(TREE["three.py"])


SHIFTS = [add_compiled, compile_what_was_not, import_one_more, remove, move, exchange_texts]


@pytest.mark.parametrize("shift", SHIFTS)
def test_the_fingerprint_changes_with_what_is_compiled_and_imported(tree, shift):
    before = compile_cache.source_hash(tree)
    shift(tree)
    assert compile_cache.source_hash(tree) != before


def test_the_fingerprint_stays_as_long_as_the_text_does(tree):
    before = compile_cache.source_hash(tree)
    os.utime(tree / "one.py", (1, 1))
    (tree / "three.py").write_text(TREE["three.py"])
    assert compile_cache.source_hash(tree) == before


def imported_by_python(name):
    """Our modules that Python has loaded after importing this one."""
    code = f"import {name}, sys; print(*(n for n in sys.modules if n.split('.')[0] == 'adlro'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def with_decorators():
    """Modules in whose text a function is decorated."""
    for path in PACKAGE.rglob("*.py"):
        if re.search(r"^ *@njit", path.read_text(), re.MULTILINE):
            yield ".".join(("adlro", *path.relative_to(PACKAGE).with_suffix("").parts))


def test_all_that_python_loads_for_compiled_code_is_in_the_fingerprint():
    modules = set(with_decorators())
    loaded = imported_by_python(", ".join(sorted(modules)))
    found = compile_cache.closure(PACKAGE)
    assert len(modules) > 50
    assert modules <= loaded
    folders = {name for name in loaded if (PACKAGE.parent / name.replace(".", "/")).is_dir()}
    assert loaded - folders - {"adlro.gymnasium_plugin"} <= found.keys()  # of every start of Python


def test_commands_and_benchmarks_are_not_in_the_fingerprint():
    found = {name for name in compile_cache.closure(PACKAGE) if not name.endswith("_kernel")}
    outside = ("adlro.cli.", "adlro.evaluate.", "adlro.train.")
    assert [name for name in found if name.startswith(outside)] == []


def test_imports_for_type_checkers_alone_do_not_count(tree):
    before = compile_cache.closure(tree).keys()
    change(tree, "one.py", "if TYPE_CHECKING:\n    from adlro.outside import x\n\nx = 1\n")
    assert compile_cache.closure(tree).keys() == before
    change(tree, "one.py", "if TYPE_CHECKING:\n    x = 1\nfrom adlro.outside import x\n")
    assert compile_cache.closure(tree).keys() == {*before, "adlro.outside"}


def test_the_fingerprint_does_not_depend_on_where_the_source_lies(tree):
    copy = shutil.copytree(tree, tree.parent / "elsewhere")
    assert compile_cache.source_hash(copy) == compile_cache.source_hash(tree)


def test_the_cache_lies_where_the_user_says_under_the_fingerprint(tmp_path, monkeypatch):
    monkeypatch.setenv("ADLRO_CACHE_DIR", str(tmp_path))
    folder = tmp_path / "adlro-numba" / compile_cache.source_hash(PACKAGE)
    assert compile_cache.cache_folder() == folder
    assert compile_cache.cache_state() == f"empty ({folder})"


def test_the_cache_lies_in_the_users_cache_folder_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv("ADLRO_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compile_cache.cache_folder().parent == tmp_path / "adlro-numba"


def start_copy(folder, **environment):
    """The script, started with the copy of the package in `folder`, and its cache there."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "ADLRO_CACHE_DIR": str(folder / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
        **environment,
    }
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result_of(process, folder):
    """What the script found, and what it said beside it."""
    output, said = process.communicate()
    assert process.returncode == 0, said
    where, result = output.split()
    assert Path(where).parent == folder / "adlro"
    return float(result), said


def run_copy(folder, **environment):
    result, said = result_of(start_copy(folder, **environment), folder)
    assert said == ""
    return result


@pytest.fixture
def package(tmp_path):
    """A folder with a copy of the package in it."""
    shutil.copytree(PACKAGE, tmp_path / "adlro", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def compiled_files(folder):
    return sorted(path.name for path in (folder / "cache").rglob("*.nbc"))


def test_an_edit_of_a_callee_in_another_module_is_seen_and_so_is_its_undoing(package):
    callee = package / "adlro" / "model" / "feasibility.py"
    text = callee.read_text()
    times = callee.stat()
    first = run_copy(package)
    callee.write_text(text.replace("max(0.1 * (now", "max(0.2 * (now"))
    os.utime(callee, ns=(times.st_atime_ns, times.st_mtime_ns))
    second = run_copy(package)
    files = compiled_files(package)
    callee.write_text(text)
    third = run_copy(package)
    assert (first, second, third) == (55, 60, 55)  # 50 s and a tenth, a fifth, a tenth of its age
    assert files
    assert compiled_files(package) == files  # the third run found the first one's code again


def cut_short(entry):
    entry.write_bytes(entry.read_bytes()[:-100])


def empty(entry):
    entry.write_bytes(b"")


def change_one_byte(entry):
    data = bytearray(entry.read_bytes())
    data[len(data) // 2] ^= 1
    entry.write_bytes(bytes(data))


def test_a_damaged_entry_is_dropped_and_compiled_again(package):
    assert run_copy(package) == 55
    (caller,) = (package / "cache").rglob("frees_at*.nbc")
    (callee,) = (package / "cache").rglob("expected_end*.nbc")
    sizes = [entry.stat().st_size for entry in (caller, callee)]
    for damage, other in ((cut_short, empty), (change_one_byte, cut_short)):
        damage(caller)
        other(callee)
        assert run_copy(package) == 55
        assert [entry.stat().st_size for entry in (caller, callee)] == sizes


def test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_one_and_a_line_says_so(package):
    in_the_way = package / "file"
    in_the_way.write_text("")
    result, said = result_of(start_copy(package, ADLRO_CACHE_DIR=str(in_the_way)), package)
    assert result == 55
    assert said.startswith("adlro: the compile cache cannot be written (")
    assert said.count("\n") == 1


def test_an_entry_that_cannot_be_written_goes_to_a_temporary_folder(package):
    folder = package / "cache" / "adlro-numba" / compile_cache.source_hash(package / "adlro")
    folder.mkdir(parents=True)
    (folder / "adlro.planning.min_min").write_text("")  # where the folder of the module would be
    result, said = result_of(start_copy(package), package)
    assert result == 55
    assert "this run keeps its own in" in said
    assert said.count("\n") == 1


def test_two_processes_may_compile_at_once(package):
    both = [start_copy(package) for _ in range(2)]
    assert [result_of(process, package) for process in both] == [(55, ""), (55, "")]
    files = compiled_files(package)
    assert run_copy(package) == 55
    assert compiled_files(package) == files


def test_installations_with_the_same_source_share_the_cache(package):
    run_copy(package)
    files = compiled_files(package)
    shutil.copytree(package / "adlro", package / "second" / "adlro")
    assert run_copy(package / "second", ADLRO_CACHE_DIR=str(package / "cache")) == 55
    assert compiled_files(package) == files


def test_kernels_are_compiled_even_where_numba_is_told_to_compile_nothing(package):
    assert run_copy(package, NUMBA_DISABLE_JIT="1") == 55
    assert compiled_files(package)


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
    assert kept == {
        compile_cache.source_hash(folder),
        "notes",
        *(f"{age:016x}" for age in range(4)),
    }
    assert (tmp_path / "cache" / "numba-0.60").is_dir()
