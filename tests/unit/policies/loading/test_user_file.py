"""Policies by name and from a user's file, whose mistakes are named by file and line."""

import re
from pathlib import Path

import numpy as np
import pytest

import adlro.policies
from adlro.cli import main
from adlro.errors import PolicyError
from adlro.model.state import WHOLE
from adlro.policies import registry
from adlro.policies.loading import user_file
from tests.plain.cases import random_case
from tests.worlds import build, from_case, job, nodes, play

CALL = f"def decide({', '.join(user_file.ARGUMENTS)}):"
NJIT = "from numba import njit\n\n@njit\n"  # decide stands in line 4, its first statement in 5
PYTHON_FCFS = f"""\
{CALL}
    queue, eligible, pools, jobs = view.queue, view.eligible, view.pools, view.jobs
    allowed = [i for i in range(len(queue)) if eligible[i].any()]
    for i in allowed[:1]:
        q = queue[i]
        for p in range(len(pools)):
            rows = view.nodes[pools[p].first_node : pools[p].first_node + pools[p].nodes]
            job = jobs[q.job]
            room = rows.free
            if job.cores > 0:
                room = room.clip(max=rows.free_cores // job.cores)
            if job.memory > 0:
                room = room.clip(max=rows.free_memory // job.memory)
            if eligible[i, p] and room.sum() >= job.gpus:
                out[0] = (0, q.job, p, -1, -1, 0.0)
                return 1
    return 0
"""
NJIT_FCFS = f"""\
from adlro.model.feasibility import fits, start
{NJIT}{CALL}
    queue, eligible, pools, jobs = view.queue, view.eligible, view.pools, view.jobs
    q = 0
    while q < len(queue) and not eligible[q].any():
        q += 1
    if q == len(queue):
        return 0
    j = queue[q].job
    for p in range(len(pools)):
        if eligible[q, p] and fits(jobs[j], pools[p], view.nodes, view.gpus):
            return start(out, j, p)
    return 0
"""
TINY = build([nodes()], [job(0, 5), job(1, 5)])


def write(folder, text):
    path = folder / "mine.py"
    path.write_text(text, encoding="utf-8")
    return path


def load(path):
    return registry.load(str(path), TINY.setting)


def mistake(call):
    """The message of a PolicyError, which must be one line."""
    with pytest.raises(PolicyError) as caught:
        call()
    message = str(caught.value)
    assert message.splitlines() == [message]
    return message


def run_guarded(path):
    """Run a user's policy as the commands do."""
    policy = load(path)
    with user_file.mistakes(policy.file, policy.line):
        play(TINY, policy)


@pytest.mark.parametrize("text", [PYTHON_FCFS, NJIT_FCFS], ids=["python", "njit"])
def test_a_users_fcfs_is_our_fcfs(tmp_path, text):
    policy = load(write(tmp_path, text))
    cases = [random_case(seed) for seed in range(120)]
    plain = [case for case in cases if (case.jobs["share"] == WHOLE).all()]
    worlds = [from_case(case) for case in plain if not case.jobs["one_node"].any()]
    assert len(worlds) > 15
    mine = [play(world, policy) for world in worlds]
    ours = [play(world, "fcfs") for world in worlds]
    assert [run.spans.tolist() for run in mine] == [run.spans.tolist() for run in ours]
    assert [run.totals.tolist() for run in mine] == [run.totals.tolist() for run in ours]


def test_a_users_policy_is_called_as_its_file(tmp_path):
    policy = load(write(tmp_path, PYTHON_FCFS))
    assert (policy.name, policy.memory, policy.params.tolist()) == ("mine", 0, [])


def test_a_users_policy_may_have_params_and_memory_of_its_own(tmp_path):
    more = "def params(context):\n    return [[1, 2], [3, len(context.pools)]]\n"
    more += "def memory(context):\n    return 7\n"
    policy = load(write(tmp_path, PYTHON_FCFS + more))
    assert policy.params.tolist() == [1, 2, 3, 1]
    assert policy.params.dtype == np.float64
    assert policy.memory == 7


def test_memory_is_kept_from_call_to_call_and_starts_with_the_seed(tmp_path):
    text = f"seen = []\n{CALL}\n    seen.append(list(memory))\n    memory[1] += 1\n    return 0\n"
    path = write(tmp_path, text + "def memory(context):\n    return 2\n")
    policy = load(path)
    with pytest.raises(PolicyError, match="left 2 jobs waiting"):
        play(TINY, policy, seed=5)
    assert policy.decide.__globals__["seen"] == [[5, 0], [5, 1]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\ndef decide(:\n    pass\n", r":2: invalid syntax"),
        ("x = 1\n\n1 / 0\n", r":3: ZeroDivisionError: division by zero"),
        ("def f():\n    return [][3]\n\nf()\n", r":2: IndexError: list index out of range"),
        ("import nowhere_to_be_found\n", r":1: ModuleNotFoundError: No module named"),
        ("x = 1\n", r": has no function 'decide'; define decide\(view, params, memory, out\)"),
        ("decide = 3\n", r": has no function 'decide'; define decide\(view, params, memory, out\)"),
        (
            "\ndef decide(now, jobs):\n    return 0\n",
            r":2: decide takes 4 arguments: decide\(view, params, memory, out\)$",
        ),
        (f"{NJIT}def decide(now):\n    return 0\n", r":3: decide takes 4 arguments: decide"),
        (f"{CALL}\n    return 0\ndef params(s):\n    return s.x\n", r":4: AttributeError: "),
        (f"{CALL}\n    return 0\ndef memory(s):\n    return s.x\n", r":4: AttributeError: "),
        (
            f"{NJIT}{CALL}\n    x = view.queue + 'a'\n    return 0\n",
            r":5: decide cannot be compiled: No",
        ),
        (
            f"{NJIT}{CALL}\n    return view.queue[0].hours\n",
            r":5: decide cannot be compiled: there is no field 'hours'",
        ),
        (
            f"from adlro.model.feasibility import fits\n{NJIT}{CALL}\n"
            "    return fits(view.jobs[0], 1)\n",
            r":6: decide cannot be compiled: Cannot bind .{10,300}required argument: 'nodes'",
        ),
        (
            f"{NJIT}{CALL}\n    return nothing\n",
            r":[3-5]: decide cannot be compiled: NameError: name 'nothing'",
        ),
    ],
)
def test_a_mistake_that_shows_on_loading_is_named_by_file_and_line(tmp_path, text, said):
    path = write(tmp_path, text)
    assert re.match(re.escape(str(path)) + said, mistake(lambda: load(path)))


FORMER = "now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out"
FIRST = FORMER.split(", ")[:9]
INSTEAD = (
    "decide takes 4 arguments: decide(view, params, memory, out), not 12; begin it with: "
    f"{', '.join(FIRST)} = {', '.join(f'view.{name}' for name in FIRST)}"
)


@pytest.mark.parametrize(("before", "line"), [("", 2), (NJIT, 3)], ids=["python", "njit"])
def test_a_decide_of_former_times_is_told_what_to_write_instead(tmp_path, before, line):
    path = write(tmp_path, f"{before or chr(10)}def decide({FORMER}):\n    return len(queue) * 0\n")
    assert mistake(lambda: load(path)) == f"{path}:{line}: {INSTEAD}"


def test_what_it_is_told_to_write_is_all_that_it_takes(tmp_path):
    text = PYTHON_FCFS.replace(CALL, f"{CALL}\n    {INSTEAD.split('begin it with: ')[1]}")
    assert play(TINY, load(write(tmp_path, text))).outcome["start"].tolist() == [0, 5]


def test_a_decide_of_former_times_with_names_of_its_own_is_told_these(tmp_path):
    names = FORMER.replace("queue", "waiting").replace("now", "t")
    path = write(tmp_path, f"def decide({names}):\n    return 0\n")
    begin = "begin it with: t, jobs, est, waiting, eligible, running, pools, nodes, gpus = view.now"
    assert begin in mistake(lambda: load(path))


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "paper16", "--policies", "FILE", "--seeds", "1"],
        ["simulate", "paper16", "--policy", "FILE"],
        ["policy", "show", "FILE"],
    ],
    ids=["compare", "simulate", "show"],
)
def test_a_decide_of_former_times_ends_a_command_with_status_2(
    tmp_path, command, monkeypatch, capsys
):
    path = write(tmp_path, f"\ndef decide({FORMER}):\n    return 0\n")
    arguments = [str(path) if word == "FILE" else word for word in command]
    monkeypatch.setattr("sys.argv", ["adlro", *arguments])
    assert main._status() == 2
    assert capsys.readouterr().err == f"adlro: {path}:2: {INSTEAD}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{CALL}\n    x = 1\n    return x // 0\n", r":3: ZeroDivisionError: "),
        (f"{CALL}\n    return view.queue[99].job\n", r":2: IndexError: "),
        (f"{CALL}\n    raise SystemExit(3)\n", r":2: SystemExit: 3"),
        (f"{CALL}\n    return view.queue[0].hours\n", r":2: AttributeError: .*hours"),
        (f"{CALL}\n    pass\n", r":1: decide must return how many decisions it wrote, not None"),
        (f"{CALL}\n    return 'a'\n", r":1: decide must return how many decisions it .*, not 'a'"),
        (f"{NJIT}{CALL}\n    x = 1\n    return view.queue[99].job\n", r":6: IndexError: "),
        (f"{NJIT}{CALL}\n    out[99].kind = 0\n    return 1\n", r":5: IndexError: "),
        (f"{NJIT}{CALL}\n    return 1 // len(view.running)\n", r":5: ZeroDivisionError: "),
        (f"{CALL}\n    view.pools[0].free = 9\n    return 0\n", r":2: ValueError: .*read-only"),
        (f"{CALL}\n    view.est[0, 0] = 9\n    return 0\n", r":2: ValueError: .*read-only"),
        (f"{CALL}\n    return 99\n", r":1: policy mine answered 99, but 'out' holds at most 18 "),
        (f"{NJIT}{CALL}\n    return 99\n", r":[34]: policy mine answered 99, but 'out' holds at"),
    ],
)
def test_a_mistake_that_shows_in_a_run_is_named_by_file_and_line(tmp_path, text, said):
    path = write(tmp_path, text)
    assert re.match(re.escape(str(path)) + said, mistake(lambda: run_guarded(path)))


def test_a_name_that_the_disk_cannot_have_is_refused_in_one_line(tmp_path):
    path = tmp_path / ("x" * 300 + ".py")
    assert mistake(lambda: load(path)) == f"{path}: cannot be read: File name too long"


def test_a_helper_compiled_with_our_own_njit_is_bounds_checked_too(tmp_path):
    helper = (
        "from adlro.compiled import njit\n\n@njit\ndef peek(queue):\n    return queue[99].job\n"
    )
    path = write(tmp_path, f"{helper}\n@njit\n{CALL}\n    return peek(view.queue)\n")
    assert re.match(
        re.escape(str(path)) + r":(5|9): IndexError: ", mistake(lambda: run_guarded(path))
    )


def test_a_compiled_policy_that_writes_to_what_it_sees_is_found_out(tmp_path):
    lines = ["view.nodes[0].cores += 1", "if len(view.queue) == 0 or view.pools[0].free == 0:"]
    lines += ["    return 0", "out[0].kind, out[0].job, out[0].pool = 0, view.queue[0].job, 0"]
    lines += ["out[0].node = out[0].gpu = -1", "return 1"]
    path = write(tmp_path, NJIT + CALL + "".join(f"\n    {line}" for line in lines))
    message = mistake(lambda: run_guarded(path))
    assert message.endswith("policy mine changed the cluster's records by itself")


@pytest.mark.parametrize("name", ["params", "memory"])
def test_params_or_memory_that_are_no_numbers_are_named_by_a_line_that_exists(tmp_path, name):
    path = write(tmp_path, f"{CALL}\n    return 0\ndef {name}(context):\n    return 'many'\n")
    message = mistake(lambda: load(path))
    assert re.match(re.escape(str(path)) + r"(:[1-4])?: ValueError: ", message)


@pytest.mark.parametrize(
    "text",
    [
        "raise ValueError('one\\ntwo')\n",
        "from numba import njit\n\n@njit('int64(int64)')\ndef decide(x):\n    return 'a'\n",
    ],
)
def test_a_mistake_with_a_long_story_is_told_in_one_line(tmp_path, text):
    path = write(tmp_path, text)
    assert mistake(lambda: load(path)).startswith(f"{path}:")


@pytest.mark.parametrize("name", ["none.py", "./none", "some/folder/none.py"])
def test_a_file_that_is_not_there_is_named(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert mistake(lambda: load(name)) == f"{Path(name)}: there is no such file"


def test_a_file_that_is_not_python_is_refused(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(PYTHON_FCFS)
    assert mistake(lambda: load(path)).startswith(f"{path}: is not a Python file; ")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("minmin", "did you mean 'min-min'"),
        ("min_min", "did you mean 'min-min'"),
        ("FCFS", "did you mean 'fcfs'?"),
        ("static", "did you mean 'static-affinity'"),
        ("registry", f"known: {', '.join(registry.names())}"),  # a file of the folder, no policy
        ("", f"known: {', '.join(registry.names())}"),
        ("min.min", "did you mean 'min-min'"),
        ("fcfs.x", "did you mean 'fcfs'?"),
    ],
)
def test_an_unknown_policy_is_answered_with_near_misses_or_all_there_are(name, advice):
    assert mistake(lambda: load(name)).startswith(f"unknown policy {name!r}; {advice}")


def test_the_policies_are_the_files_with_a_decide():
    folder = Path(adlro.policies.__file__).parent
    with_decide = [path.stem for path in folder.glob("*.py") if "\ndef decide(" in path.read_text()]
    assert registry.names() == sorted(name.replace("_", "-") for name in with_decide)


@pytest.mark.parametrize("name", registry.names())
def test_a_policy_says_in_one_sentence_what_it_does(name):
    about = registry.about(name)
    assert about[0].isupper()
    assert not about.endswith(".")
    assert "\n" not in about
