"""`adlro policy explain` as it is printed and written."""

import json

import pytest
from click.testing import CliRunner

from adlro.cli import policy
from adlro.cli.explain import _short

SMALL = ("paper16", "--jobs", "60", "--load", "1.2", "--seed", "4")


def explained(*args):
    result = CliRunner().invoke(policy.command, ["explain", *args])
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*args):
    result = CliRunner().invoke(policy.command, ["explain", *args])
    assert result.exit_code == 2
    return result.output


@pytest.fixture(scope="module")
def of_drain():
    return json.loads(explained("drain-argmin", *SMALL, "--json", "-"))


def test_the_decision_is_told_in_two_lines_a_table_and_sentences(of_drain):
    lines = explained("drain-argmin", *SMALL).splitlines()
    assert lines[0] == (
        f"paper16 · drain-argmin · load 1.2 · seed 4 · decision {of_drain['decision']}, "
        f"at {of_drain['time_s']:,.0f} s"
    )
    assert lines[1].startswith("Free: ")
    assert f"{of_drain['waiting']} jobs waiting, {of_drain['running']} running" in lines[1]
    assert any(line.startswith("Decided: ") for line in lines[2:4])
    heading = next(line for line in lines if "drain cost, s" in line)
    assert "predicted" not in heading
    text = " ".join(" ".join(lines).split())
    for sentence in of_drain["why"]:
        assert sentence in text


def test_the_table_marks_the_choice_and_min_mins(of_drain):
    lines = explained("drain-argmin", *SMALL, "--top", "1").splitlines()
    chosen = next(line for line in lines if line.rstrip().endswith("chosen"))
    planned = next(line for line in lines if line.rstrip().endswith("Min-Min"))
    assert f"{of_drain['chosen']['drain_s']:,.0f}" in chosen
    assert f"{of_drain['min_min']['drain_s']:,.0f}" in planned


def test_a_learned_policys_predictions_are_shown_against_the_choice():
    facts = json.loads(explained("adlro", *SMALL, "--decision", "20", "--json", "-"))
    assert facts["decision"] == 20
    assert facts["chosen"]["predicted_s"] == 0
    predicted = [option["predicted_s"] for option in facts["options"]]
    assert predicted == sorted(predicted)
    assert facts["options"][0] == facts["chosen"]
    shown = explained("adlro", *SMALL, "--decision", "20")
    assert "predicted cost, s" in shown
    assert "The network predicts that the other would cost" in shown


def test_features_outside_the_training_range_are_named_with_their_values():
    far = ("gavel16", "--jobs", "200", "--load", "3", "--seed", "1", "--decision", "120")
    facts = json.loads(explained("adlro", *far, "--json", "-"))["out_of_range"]
    assert (facts["features"], facts["problem"]) == (43, None)
    assert facts["outside"] == len(facts["values"]) > 0
    assert facts["share"] == facts["outside"] / 43
    text = " ".join(explained("adlro", *far).split())
    share = f"{facts['outside']} of 43 features ({100 * facts['share']:.1f} %): "
    assert f"Outside the training range: {share}" in text
    for one in facts["values"]:
        assert not one["low"] <= one["value"] <= one["high"]
        bounds = f"(trained on {one['low']:.3g} to {one['high']:.3g})"
        assert f"{one['feature']} {one['value']:.3g} {bounds}" in text


def test_nothing_is_said_of_training_ranges_for_a_policy_without_a_network(of_drain):
    assert of_drain["out_of_range"] is None
    assert "training range" not in explained("drain-argmin", *SMALL)


def test_the_table_counts_predicted_costs_from_the_choice():
    facts = json.loads(explained("adlro", *SMALL, "--json", "-"))
    assert facts["min_min"]["predicted_s"] > 0
    lines = explained("adlro", *SMALL).splitlines()
    chosen = next(line for line in lines if line.rstrip().endswith("chosen"))
    planned = next(line for line in lines if line.rstrip().endswith("Min-Min"))
    assert " +0 " in chosen
    assert f" {facts['min_min']['predicted_s']:+,.0f} " in planned


def test_json_has_both_plans_and_goes_to_a_file(tmp_path, of_drain):
    file = tmp_path / "why.json"
    printed = explained("drain-argmin", *SMALL, "--json", str(file))
    assert f"all figures: {file}" in " ".join(printed.split())
    assert json.loads(file.read_text()) == of_drain
    jobs = {planned["job"] for planned in of_drain["plan"]}
    assert jobs == {planned["job"] for planned in of_drain["plan_otherwise"]}
    ends = sum(planned["end_in_s"] for planned in of_drain["plan"])
    assert ends == pytest.approx(of_drain["chosen"]["drain_s"])
    assert of_drain["compared_with"] == of_drain["min_min"]


def test_a_policy_that_looks_ahead_is_explained_as_any_rule_is():
    said = json.loads(explained("min-min+lookahead", *SMALL, "--json", "-"))
    assert said["policy"] == "min-min+lookahead"
    assert said["why"]


def test_the_decision_that_started_a_job_is_found():
    facts = json.loads(explained("min-min", *SMALL, "--job", "17", "--json", "-"))
    assert facts["chosen"]["job"] == 17


@pytest.mark.parametrize("option", [("--at", "-1"), ("--decision", "0"), ("--job", "-1")])
def test_numbers_out_of_range_are_refused(option):
    assert f"Invalid value for '{option[0]}'" in refused("min-min", *SMALL, *option)


def test_a_time_must_be_a_number():
    assert "nan is not a number of seconds" in refused("min-min", *SMALL, "--at", "nan")


def test_only_one_decision_can_be_named():
    said = refused("min-min", *SMALL, "--at", "3", "--job", "0")
    assert "--at, --decision and --job exclude each other" in said


@pytest.mark.parametrize(
    ("pools", "short"),
    [
        (("V100 (main)", "T4 (main)"), ["V100", "T4"]),
        (("V100 (main)", "T4 (old)"), ["V100 (main)", "T4 (old)"]),
        (("V100 (main)", "V100 (main) #2"), ["V100 (main)", "V100 (main) #2"]),
    ],
)
def test_the_partition_is_left_out_if_there_is_but_one(pools, short):
    assert _short(pools) == short
