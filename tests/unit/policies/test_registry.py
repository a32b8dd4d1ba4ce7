"""What a policy's file may say of itself besides `decide`."""

import re
from types import SimpleNamespace

import pytest

from adlro.errors import PolicyError
from adlro.policies import own, registry

DECIDE = f"def decide({', '.join(own.ARGUMENTS)}):\n    return 0\n"
SETTING = SimpleNamespace(scenario=SimpleNamespace(name="hand"), gangs=4)


def write(folder, text):
    path = folder / "mine.py"
    path.write_text(DECIDE + text)
    return str(path)


def test_of_ours_tiresias_alone_preempts_and_says_so():
    ready = SimpleNamespace(pools=[], affinity=())
    assert registry.load("tiresias", ready).is_preemptive
    assert not registry.load("fcfs", ready).is_preemptive


@pytest.mark.parametrize(
    ("text", "said"), [("", False), ("PREEMPTIVE = True\n", True), ("PREEMPTIVE = False\n", False)]
)
def test_a_users_file_says_whether_it_preempts(tmp_path, text, said):
    assert registry.load(write(tmp_path, text), SETTING).is_preemptive is said


def test_whether_it_preempts_is_yes_or_no(tmp_path):
    said = "policy mine: PREEMPTIVE must be True or False, not 'often'"
    with pytest.raises(PolicyError, match=f"^{re.escape(said)}$"):
        registry.load(write(tmp_path, "PREEMPTIVE = 'often'\n"), SETTING)


REFUSES = "def refuses(setting):\n    return 'no gangs, please' if setting.gangs > 1 else None\n"


def test_a_policy_that_cannot_run_a_scenario_says_so_before_the_run(tmp_path):
    path = write(tmp_path, REFUSES)
    assert registry.refusal(path, SETTING) == "no gangs, please"
    with pytest.raises(PolicyError, match=r"^policy mine cannot run hand: no gangs, please$"):
        registry.load(path, SETTING)


def test_a_policy_that_can_run_a_scenario_is_loaded(tmp_path):
    path, single = write(tmp_path, REFUSES), SimpleNamespace(gangs=1)
    assert registry.refusal(path, single) is None
    assert registry.load(path, single).name == "mine"


def test_a_policy_that_refuses_nothing_need_not_say_so(tmp_path):
    assert registry.refusal(write(tmp_path, ""), SETTING) is None


def test_a_mistake_in_refuses_is_named_by_its_line(tmp_path):
    path = write(tmp_path, "def refuses(setting):\n    return setting.nothing\n")
    with pytest.raises(PolicyError, match=r"mine\.py:4: AttributeError"):
        registry.refusal(path, SETTING)
