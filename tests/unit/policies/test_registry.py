"""What a policy's file may say of itself besides `decide`."""

import re
from pathlib import Path

import pytest

from adlro.errors import PolicyError
from adlro.evaluate.compare import compare
from adlro.nets.q_network import flat
from adlro.policies import registry
from adlro.policies.loading import learned, user_file
from tests.trained import network, saved
from tests.worlds import build, job, nodes, play

DECIDE = f"def decide({', '.join(user_file.ARGUMENTS)}):\n    return 0\n"
WORLD = build([nodes("V100", 2), nodes("T4")], [job(0, 5, 9)])


def write(folder, text):
    path = folder / "mine.py"
    path.write_text(DECIDE + text)
    return str(path)


def test_of_ours_tiresias_alone_preempts_and_says_so():
    assert registry.load("tiresias", WORLD.setting).is_preemptive
    assert not registry.load("fcfs", WORLD.setting).is_preemptive


@pytest.mark.parametrize(
    ("text", "said"), [("", False), ("PREEMPTIVE = True\n", True), ("PREEMPTIVE = False\n", False)]
)
def test_a_users_file_says_whether_it_preempts(tmp_path, text, said):
    assert registry.load(write(tmp_path, text), WORLD.setting).is_preemptive is said


def test_whether_it_preempts_is_yes_or_no(tmp_path):
    said = "policy mine: PREEMPTIVE must be True or False, not 'often'"
    with pytest.raises(PolicyError, match=f"^{re.escape(said)}$"):
        registry.load(write(tmp_path, "PREEMPTIVE = 'often'\n"), WORLD.setting)


REFUSES = "def refuses(known):\n    return 'one pool, please' if len(known.pools) > 1 else None\n"


def test_a_policy_that_cannot_run_a_scenario_says_so_before_the_run(tmp_path):
    path = write(tmp_path, REFUSES)
    assert registry.refusal(path, WORLD.setting) == "one pool, please"
    said = f"policy mine cannot run {WORLD.setting.name}: one pool, please"
    with pytest.raises(PolicyError, match=f"^{said}$"):
        registry.load(path, WORLD.setting)


def test_a_policy_that_can_run_a_scenario_is_loaded(tmp_path):
    path, single = write(tmp_path, REFUSES), build([nodes()], [job(0, 5)]).setting
    assert registry.refusal(path, single) is None
    assert registry.load(path, single).name == "mine"


def test_a_policy_that_refuses_nothing_need_not_say_so(tmp_path):
    assert registry.refusal(write(tmp_path, ""), WORLD.setting) is None


def test_a_mistake_in_refuses_is_named_by_its_line(tmp_path):
    path = write(tmp_path, "def refuses(context):\n    return context.nothing\n")
    with pytest.raises(PolicyError, match=r"mine\.py:4: AttributeError"):
        registry.refusal(path, WORLD.setting)


@pytest.mark.parametrize("name", ["toy.npz", "toy.json", "toy.v2.npz"])
def test_a_learned_policys_files_are_the_policy_adlro_with_other_weights(tmp_path, name):
    path = saved(tmp_path, name)
    ready, ours = (registry.load(policy, WORLD.setting) for policy in (str(path), "adlro"))
    assert ready.name == path.stem
    assert ready.decide is ours.decide
    assert ready.params.tolist() == flat(network()).tolist()
    assert ready.params.tolist() != ours.params.tolist()
    assert ready.memory == ours.memory > 0
    assert ready.file is None  # no stranger's code
    assert not ready.is_preemptive


def test_a_learned_policy_plays(tmp_path):
    result = play(WORLD, str(saved(tmp_path)))
    assert result.outcome["finish"].tolist() in ([5], [9])


def test_a_broken_learned_policy_can_neither_be_loaded_nor_asked_what_it_refuses(tmp_path):
    path = saved(tmp_path)
    path.with_suffix(".json").unlink()
    for asked in (registry.load, registry.refusal):
        with pytest.raises(PolicyError, match=r"toy\.json: there is no such file"):
            asked(str(path), WORLD.setting)


def test_two_files_of_one_name_are_not_compared_under_it(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    paths = [saved(tmp_path / "a"), saved(tmp_path / "b", seed=1)]
    twins = [registry.load(str(path), WORLD.setting) for path in paths]
    with pytest.raises(PolicyError, match=r"^two policies are called 'toy'; rename a file$"):
        compare(WORLD.setting, twins, range(2))


def test_learned_policies_are_known_by_their_files(tmp_path):
    assert registry.weights_file("x/toy.json") == Path("x/toy.json")
    assert registry.weights_file("adlro") == learned.shipped_file()
    assert registry.weights_file("min-min") is None
    assert registry.weights_file("./adlro.py") is None


def test_what_is_known_of_a_policy_of_ours():
    facts = registry.facts("tiresias")
    assert facts.text.startswith("Tiresias, two-queue least attained service")
    assert (facts.name, facts.is_compiled, facts.is_preemptive) == ("tiresias", True, True)
    assert "GPU-seconds" in facts.params
    assert "next round" in facts.memory
    assert facts.refuses is None


def test_what_is_known_of_a_users_file(tmp_path):
    facts = registry.facts(write(tmp_path, REFUSES))
    assert facts == registry.Facts("mine", "", False, False, None, None, "yes")
