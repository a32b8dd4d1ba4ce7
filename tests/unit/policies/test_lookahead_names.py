"""Looking ahead as it is asked for: what stands behind a policy's name, and which can look."""

import re

import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.errors import PolicyError
from adlro.evaluate.compare import run_one
from adlro.policies import lookahead, registry
from adlro.policies.loading import user_file
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.trained import saved

SETTING = prepare(adjusted(find_scenario("paper16"), load=0.95, jobs=80))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("min-min+lookahead:0", "FUTURES is a whole number from 1 to 1,000, not '0'"),
        ("min-min+lookahead:1001:1", "FUTURES is a whole number from 1 to 1,000, not '1001'"),
        ("min-min+lookahead:x", "FUTURES is a whole number from 1 to 1,000, not 'x'"),
        ("min-min+lookahead:", "FUTURES is a whole number from 1 to 1,000, not ''"),
        ("min-min+lookahead:4:-1", "ARRIVALS is a whole number from 0 to 10,000, not '-1'"),
        ("min-min+lookahead:4:1.5", "ARRIVALS is a whole number from 0 to 10,000, not '1.5'"),
        ("min-min+lookahead:4:5:-1", "T is a number, 0 or more, not '-1'"),
        ("min-min+lookahead:4:5:nan", "T is a number, 0 or more, not 'nan'"),
        ("min-min+lookahead:4:5:2:1", "say +lookahead:FUTURES:ARRIVALS:T, three numbers"),
        ("min-min+lookahead:4", "without arrivals all futures are the same; say 1:0 or 4:10"),
        ("min-min+lookahead:11:10000", "FUTURES times ARRIVALS is at most 100,000, not 110,000"),
        ("min-min+lookahead:1:5:2", "T needs at least 2 futures to compare"),
        ("min-min+lookahead+lookahead", "say +lookahead once"),
    ],
)
def test_what_is_wrong_behind_the_name_is_said_in_one_line(name, said):
    for asked in (registry.facts, lambda text: registry.load(text, SETTING)):
        with pytest.raises(PolicyError, match=f"^{re.escape(f'policy {name!r}: {said}')}$"):
            asked(name)


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("", (1, 0, 0.0)),
        (":1:10", (1, 10, 0.0)),
        (":10:10000", (10, 10_000, 2.0)),
        (":8:20", (8, 20, 2.0)),
        (":8:20:0", (8, 20, 0.0)),
        (":8:20:1.5", (8, 20, 1.5)),
    ],
)
def test_how_to_look_ahead_stands_behind_the_name(text, wish):
    base, found = lookahead.split(f"./a+b.py+lookahead{text}")
    assert base == "./a+b.py"
    assert found == (*wish, f"+lookahead{text}")


def test_a_name_without_it_stays_as_it_is():
    for name in ("min-min", "./runs+lookahead:1:0/mine.py", "./runs+lookahead/mine.py"):
        assert lookahead.split(name) == (name, None)
    assert lookahead.split("./a+lookahead:1:0/b.py+lookahead")[0] == "./a+lookahead:1:0/b.py"
    with pytest.raises(PolicyError, match=r"^unknown policy 'min-min\+lookahed'"):
        registry.load("min-min+lookahed", SETTING)


NO_PREEMPTION = "it preempts, and copies are played on by policies that only start jobs"
NO_PYTHON = "it is plain Python, and copies are played on by compiled policies; use @njit"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tiresias", NO_PREEMPTION),
        ("hetero-srpt", NO_PREEMPTION),
        ("allox", NO_PYTHON),
        ("mine", NO_PYTHON),
    ],
)
def test_a_policy_that_cannot_look_ahead_is_refused_with_the_reason(tmp_path, name, reason):
    path = tmp_path / "mine.py"
    path.write_text(f"def decide({', '.join(user_file.ARGUMENTS)}):\n    return 0\n")
    full = f"{path if name == 'mine' else name}+lookahead"
    setting = prepare(find_scenario("paper16-single"))  # where allox has nothing to refuse
    assert registry.refusal(full, setting) == reason
    for asked in (registry.facts, lambda text: registry.load(text, setting)):
        with pytest.raises(PolicyError, match=f"^policy {name} cannot look ahead: {reason}$"):
            asked(full)


OWN = f"""
from adlro.compiled import njit
from adlro.model.feasibility import fits, start

@njit
def decide({", ".join(user_file.ARGUMENTS)}):
    queue, pools = view.queue, view.pools
    for q in range(len(queue)):
        for p in range(len(pools)):
            job = view.jobs[queue[q].job]
            if view.eligible[q, p] and fits(job, pools[p], view.nodes, view.gpus):
                return start(out, queue[q].job, p)
    return 0
"""


def test_a_users_compiled_file_can_look_ahead(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    workload = generate(SETTING, 0)
    plain, looking = (
        registry.load(f"{tmp_path}/mine.py{how}", SETTING) for how in ("", "+lookahead")
    )
    assert looking.name == "mine+lookahead"
    assert looking.file == plain.file
    means = [
        run_one(SETTING, workload, policy, 0).outcome["finish"].mean()
        for policy in (plain, looking)
    ]
    assert means[1] < means[0]


@pytest.mark.parametrize("how", ["", "+lookahead"])
def test_what_a_users_compiled_file_raises_is_named_by_its_line(tmp_path, how):
    path = tmp_path / "mine.py"
    path.write_text(
        OWN.replace("    for q", "    if view.arrived == 40:\n        queue[99].job\n    for q")
    )
    line = path.read_text().splitlines().index("        queue[99].job") + 1
    policy = registry.load(f"{path}{how}", SETTING)
    with pytest.raises(PolicyError, match=rf"^{re.escape(str(path))}:{line}: IndexError: "):
        run_one(SETTING, generate(SETTING, 0), policy, 0)


def test_a_learned_policys_file_can_look_ahead(tmp_path):
    ready = registry.load(f"{saved(tmp_path)}+lookahead:2:3", SETTING)
    assert ready.name == "toy+lookahead:2:3"
    assert len(run_one(SETTING, generate(SETTING, 0), ready, 0).outcome) == 80


def test_what_is_known_of_a_policy_that_looks_ahead():
    facts = registry.facts("min-min+lookahead:8:20:0")
    assert facts.name == "min-min+lookahead:8:20:0"
    assert facts.text.startswith(
        "Looks ahead: the best choice by the mean over 8 futures of 20 arrivals.\n\n"
        "The base policy: Min-Min"
    )
    assert not facts.is_compiled
    assert not facts.is_preemptive
    assert facts.memory.endswith(f"the base policy: {registry.facts('min-min').memory}")
    assert registry.facts("fcfs+lookahead").text.startswith(
        "Looks ahead until all jobs at hand are done; nobody else comes."
    )
    assert registry.facts("fcfs+lookahead:1:9").text.startswith(
        "Looks ahead: the best choice by one future of 9 arrivals.\n"
    )
    assert "if its gain is 2 standard errors above 0." in registry.facts("fcfs+lookahead:8:9").text
