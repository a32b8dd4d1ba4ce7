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


@pytest.mark.parametrize("options", [":", ":4", ":x", ":1:10", ":16:10:2", ":1:0:0", ":1:0:"])
def test_sampled_futures_are_refused_in_one_line_with_the_name_to_use(options):
    name = f"min-min+lookahead{options}"
    reason = "+lookahead has no options, as sampled futures of arrivals were removed"
    expected = f"policy {name!r}: {reason}; say 'min-min+lookahead'"
    for asked in (registry.facts, lambda text: registry.load(text, SETTING)):
        with pytest.raises(PolicyError, match=f"^{re.escape(expected)}$"):
            asked(name)


@pytest.mark.parametrize("name", ["min-min+lookahead+lookahead", "fcfs+lookahead:1:0+lookahead"])
def test_the_option_is_given_once(name):
    with pytest.raises(
        PolicyError, match=f"^{re.escape(f'policy {name!r}: say +lookahead once')}$"
    ):
        registry.facts(name)


@pytest.mark.parametrize("suffix", ["+lookahead", "+lookahead:1:0"])
def test_the_option_stands_behind_the_name(suffix):
    assert lookahead.split(f"./a+b.py{suffix}") == ("./a+b.py", True)
    assert registry.load(f"min-min{suffix}", SETTING).name == "min-min+lookahead"


def test_a_name_without_it_stays_as_it_is():
    for name in ("min-min", "./runs+lookahead:1:0/mine.py", "./runs+lookahead/mine.py"):
        assert lookahead.split(name) == (name, False)
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
    ready = registry.load(f"{saved(tmp_path)}+lookahead", SETTING)
    assert ready.name == "toy+lookahead"
    assert len(run_one(SETTING, generate(SETTING, 0), ready, 0).outcome) == 80


def test_the_facts_of_a_policy_that_looks_ahead_include_those_of_its_base():
    facts = registry.facts("min-min+lookahead")
    assert facts.name == "min-min+lookahead"
    assert facts.text.startswith(
        "Looks ahead until all present jobs are done, with no further arrivals.\n\n"
        "The base policy: Min-Min"
    )
    assert not facts.is_compiled
    assert not facts.is_preemptive
    assert facts.memory.endswith(f"the base policy: {registry.facts('min-min').memory}")
