"""The judge of the commands' answers on planted histories, with answers made by hand."""

import json

import pytest

from tests import planted
from tests.planted import verdicts

SIZE, PARTITION = 0, 1  # seeds of the two ways to starve an account


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    return {seed: planted.write(folder / str(seed), seed) for seed in (SIZE, PARTITION)}


def finding(kind, name):
    return {"kind": kind, "name": name, "text": f"{name} stands out."}


def perfect(true):
    """Answers that name all that was planted."""
    found = {kind: finding(kind, verdicts.planted_name(true, kind)) for kind in verdicts.KINDS}
    others = [model for model in true.models if model != true.idle_model]
    ranked = ["as it is", *(f"remove {model}" for model in (true.idle_model, *others))]
    gain = {"grouping": "account", "name": true.starved_account}
    answers = {
        "assess": {"findings": list(found.values())},
        "plan": {"findings": [found["idle-gpus"]], "options": [{"name": name} for name in ranked]},
        "tune": {"findings": [found["starved-account"]], "gainers": [gain], "changes": []},
    }
    return json.loads(json.dumps(answers))  # nothing is shared: tests change one finding alone


@pytest.mark.parametrize("seed", [SIZE, PARTITION])
def test_perfect_answers_are_all_right(written, seed):
    answers = perfect(written[seed])
    assert set(verdicts.named(written[seed], answers).values()) == {True}
    assert verdicts.false_alarms(written[seed], answers) == []


@pytest.mark.parametrize("seed", [SIZE, PARTITION])
def test_answers_about_another_history_are_all_wrong(written, seed):
    answers = perfect(written[SIZE + PARTITION - seed])
    told = verdicts.named(written[seed], answers)
    assert set(told.values()) == {False}
    assert len(verdicts.false_alarms(written[seed], answers)) == 5


def test_an_empty_answer_names_nothing(written):
    empty = {"findings": [], "options": [], "gainers": [], "changes": []}
    told = verdicts.named(written[SIZE], dict.fromkeys(("assess", "plan", "tune"), empty))
    assert set(told.values()) == {False}


def test_a_finding_without_text_or_of_another_kind_does_not_count(written):
    true = written[SIZE]
    answers = perfect(true)
    answers["assess"]["findings"][0]["text"] = " "
    answers["assess"]["findings"][1]["kind"] = "overloaded-partition"
    told = verdicts.named(true, answers)
    assert not told["assess: idle-gpus"]
    assert not told["assess: starved-account"]
    wrong = ("assess", "overloaded-partition", true.starved_account)
    assert verdicts.false_alarms(true, answers) == [wrong]


def test_the_first_removal_of_the_ranking_counts_and_names_are_whole_words(written):
    true = written[SIZE]
    ranked = [f"remove {model}" for model in true.models]
    for first in true.models:
        order = sorted(ranked, key=lambda name: name != f"remove {first}")
        told = {"options": [{"name": "as it is"}, *({"name": name} for name in order)]}
        assert verdicts.cheapest_removal(true, told) == first
    assert verdicts.cheapest_removal(true, {"options": [{"name": f"x{first}"}]}) is None


def test_the_idle_partition_and_the_one_on_the_overloaded_nodes_are_no_false_alarms(written):
    true = written[PARTITION]
    answers = perfect(true)
    legitimate = [("idle-gpus", true.site.idle), ("overloaded-partition", true.site.low)]
    answers["assess"]["findings"] += [finding(*each) for each in legitimate]
    answers["assess"]["findings"].append(finding("of-another-kind", "anything"))
    assert verdicts.false_alarms(true, answers) == []
    answers["assess"]["findings"].append(finding("overloaded-partition", true.site.calm))
    assert len(verdicts.false_alarms(true, answers)) == 1


@pytest.mark.parametrize(
    ("seed", "key", "before", "after", "good"),
    [
        (SIZE, "PriorityWeightJobSize", 1_000_000, 0, True),
        (SIZE, "PriorityWeightJobSize", 1_000_000, 2_000_000, False),
        (SIZE, "PriorityFavorSmall", "No", "Yes", True),
        (SIZE, "PriorityWeightPartition", 1000, 0, False),
        (PARTITION, "PriorityWeightPartition", 1_000_000, 1000, True),
        (PARTITION, "PartitionName=low PriorityJobFactor", 1, 100, True),
        (PARTITION, "PriorityWeightJobSize", 100, 0, False),
    ],
)
def test_a_remedy_without_gainers_must_change_the_guilty_setting(
    written, seed, key, before, after, good
):
    answers = perfect(written[seed])
    change = {"key": key, "from": before, "to": after}
    answers["tune"] |= {"gainers": [], "changes": [change]}
    assert verdicts.named(written[seed], answers)["tune: remedy"] is good
