"""Shell completion: names of scenarios and policies, lists, files; quick enough to wait for."""

import os
import subprocess
import sys

import pytest

from adlro.cli import completion
from adlro.cli.main import cli
from adlro.config.files import shipped
from adlro.policies import registry


def completed(*words, cwd="."):
    """What the shell is offered for the last of the words."""
    code = (
        "import sys\nfrom click.shell_completion import ShellComplete\n"
        "from adlro.cli.main import cli\n"
        "shell = ShellComplete(cli, {}, 'adlro', '_ADLRO_COMPLETE')\n"
        "*before, last = sys.argv[1:]\n"
        "print(*(item.value for item in shell.get_completions(before, last)), sep='\\n')\n"
        "assert 'numba' not in sys.modules and 'pydantic' not in sys.modules\n"
    )
    path = os.pathsep.join(sys.path)
    run = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True,
                         cwd=cwd, check=True, env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    return run.stdout.split()


def offered(*words):
    """The same in this process."""
    from click.shell_completion import ShellComplete

    *before, last = words
    shell = ShellComplete(cli, {}, "adlro", "_ADLRO_COMPLETE")
    return [item.value for item in shell.get_completions(list(before), last)]


def test_the_names_are_those_of_the_registry_and_of_the_scenarios():
    assert completion.policy_names() == registry.names()
    assert completion.scenario_names() == sorted(shipped())


def test_completing_imports_neither_the_compiler_nor_the_registry():
    assert completed("compare", "paper16-s") == ["paper16-single", "paper16-surge"]


@pytest.mark.parametrize(
    "words",
    [("compare",), ("simulate",), ("train",), ("scenario", "show"), ("policy", "explain", "adlro")],
)
def test_scenarios_are_completed_wherever_one_is_named(words):
    assert offered(*words, "gav") == ["gavel16"]


@pytest.mark.parametrize(
    "words", [("simulate", "--policy"), ("policy", "show"), ("policy", "explain")]
)
def test_policies_are_completed_wherever_one_is_named(words):
    assert offered(*words, "pair") == ["pair-sjf"]


def test_the_last_of_a_list_is_completed_and_offered_once():
    ask = ("compare", "paper16", "--policies")
    assert offered(*ask, "a") == ["adlro", "adlro-preemptive", "allox", "all"]
    assert offered(*ask, "min-min,fc") == ["min-min,fcfs"]
    assert offered(*ask, "adlro,fcfs,a") == ["adlro,fcfs,adlro-preemptive", "adlro,fcfs,allox"]
    assert len(offered(*ask, "min-min,")) == len(registry.names()) - 1


def test_files_are_completed_by_kind_and_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    for name in ("own/rule.py", "own/net.npz", "own/notes.md", "own/one.toml", "own/.hidden.py"):
        (tmp_path / name).touch()
    assert offered("simulate", "--policy", "ow") == ["own/"]
    assert offered("simulate", "--policy", "own/") == ["own/net.npz", "own/rule.py"]
    assert offered("compare", "--policies", "fcfs,./own/r") == ["fcfs,./own/rule.py"]
    assert offered("compare", "own/") == ["own/one.toml"]
    assert offered("compare", "nowhere/") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_command_prints_the_script_of_each_shell(shell):
    run = subprocess.run(
        [sys.executable, "-m", "adlro"], capture_output=True, text=True, check=True,
        env={**os.environ, "_ADLRO_COMPLETE": f"{shell}_source",
             "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert "_ADLRO_COMPLETE" in run.stdout
    assert f"{shell}_complete" in run.stdout
