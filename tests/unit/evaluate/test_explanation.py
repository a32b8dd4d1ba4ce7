"""Finding a decision of a run, its options, and the reasons for the choice."""

import math

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.errors import ConfigError, PolicyError
from adlro.evaluate import explanation
from adlro.evaluate.compare import run_one
from adlro.evaluate.explanation import (
    GROUPS,
    DecisionQuery,
    decision_of,
    explain,
    find,
    ranked,
    watch,
)
from adlro.features.start_kernel import FEATURES
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.explained import (
    FAST_AND_SLOW,
    TWO,
    WAITS,
    by_drain,
    found,
    learned,
    summing,
    without_layers,
)
from tests.worlds import Scripted, build, job, nodes, preempt, start


def starts(decision):
    """Job and pool of each option, by ascending cost."""
    return [decision.options[i][:2] for i in ranked(decision)]


def test_a_decision_is_found_by_its_number():
    decision = found(build(FAST_AND_SLOW, WAITS), "drain-argmin", decision=2)
    assert (decision.number, decision.view.now) == (2, 0)
    assert decision.options[decision.chosen].job == -1


def test_only_decisions_with_something_to_start_are_counted():
    # Job 0 starts (1), job 1 waits (2); at 5 nothing waits but job 1, at 40 it starts (4).
    world = build(FAST_AND_SLOW, [*WAITS, job(5, 1, 1)])
    decision = found(world, "drain-argmin", job=1)
    assert (decision.number, decision.view.now) == (5, 40)  # 3: job 2 starts on the T4, 4: wait


def test_a_decision_is_found_by_its_time():
    world = build(FAST_AND_SLOW, WAITS)
    assert found(world, "drain-argmin", at=0.0).number == 1
    late = found(world, "drain-argmin", at=0.5)
    assert (late.number, late.view.now) == (3, 40)


def test_a_decision_is_found_by_the_job_that_it_starts():
    decision = found(build(FAST_AND_SLOW, WAITS), "drain-argmin", job=1)
    assert decision.options[decision.chosen][:2] == (1, 0)


def test_without_a_query_the_decision_that_saves_most_over_min_min_is_found():
    # As in test_drain_argmin: at 1, Min-Min plans job 1 first and costs 12.5 s, job 2 now 10 s. At
    # 101 the same with all times doubled, 25 and 20 s: that is the larger difference.
    jobs = [job(0, 4), job(1, 1, gpus=2), job(1, 4.5)]
    jobs += [job(100, 8), job(102, 2, gpus=2), job(102, 9)]
    decision = found(build(TWO, jobs), "drain-argmin")
    assert decision.view.now == 102
    assert decision.options[decision.chosen].drain_s == pytest.approx(20)
    assert decision.options[decision.planned].drain_s == pytest.approx(25)
    jobs[3:] = [job(100, 2), job(100.5, 0.5, gpus=2), job(100.5, 2.25)]
    assert found(build(TWO, jobs), "drain-argmin").view.now == 1


def test_the_options_are_waiting_and_every_feasible_start():
    decision = found(build(FAST_AND_SLOW, WAITS), "drain-argmin", decision=1)
    # Nothing runs yet, so nobody can wait.
    assert sorted(option[:2] for option in decision.options) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    decision = found(build(FAST_AND_SLOW, WAITS), "drain-argmin", decision=2)
    assert starts(decision) == [(-1, -1), (1, 1)]
    assert [option.drain_s for option in decision.options] == [140, 310]


def test_a_predicted_cost_is_the_score_in_seconds_above_min_mins_choice():
    # The score is the squeezed difference of drain costs; in seconds it is that difference.
    world = build(FAST_AND_SLOW, WAITS)
    decision = found(world, by_drain(world), decision=2)
    assert [option.cost_s for option in decision.options] == pytest.approx([0, 170])
    tau = math.sqrt(40 * 100)  # of what runs and what waits
    assert decision.options[1].score == pytest.approx(math.log(1 + 170 / tau))


def test_an_option_predicted_to_beat_min_min_has_a_negative_cost():
    # As in test_drain_argmin: Min-Min waits, 12.5 s; job 2 now costs 10 s.
    world = build(TWO, [job(0, 4), job(1, 1, gpus=2), job(1, 4.5)])
    decision = found(world, by_drain(world))
    assert decision.options[decision.chosen].cost_s == pytest.approx(-2.5)
    assert decision.options[decision.planned].cost_s == 0


def test_a_score_common_to_all_choices_costs_nothing():
    # The score is the run time, squeezed, and half a tau of pressure that all choices share.
    world = build(FAST_AND_SLOW, WAITS)
    plain = found(world, learned(world, summing(wait=2.0, seconds=1.0)), decision=2)
    more = learned(world, summing(wait=2.0, seconds=1.0, waiting=3.0))
    decision = found(world, more, decision=2)
    assert decision.options[decision.planned].cost_s == 0
    costs = [option.cost_s for option in plain.options]
    assert [option.cost_s for option in decision.options] == pytest.approx(costs)


def test_a_huge_score_is_clipped_to_a_thousand_tau():
    world = build(FAST_AND_SLOW, WAITS)
    policy = learned(world, without_layers(1e6, 0.0))
    decision = found(world, policy, decision=2)
    assert decision.options[1].cost_s == pytest.approx(1000 * math.sqrt(40 * 100))


def test_a_choice_is_compared_with_min_mins_or_else_with_the_next_best():
    jobs = [job(0, 4), job(1, 1, gpus=2), job(1, 4.5)]
    said = explain(found(build(TWO, jobs), "drain-argmin"))
    assert said.rival == said.decision.planned != said.decision.chosen
    said = explain(found(build(FAST_AND_SLOW, WAITS), "drain-argmin", decision=2))
    assert said.decision.planned == said.decision.chosen
    assert said.decision.options[said.rival][:2] == (1, 1)


def test_a_single_option_is_not_compared():
    said = explain(found(build([nodes("V100")], [job(0, 5)]), "drain-argmin", decision=1))
    assert (said.rival, said.rival_plan, said.shares) == (None, {}, {})
    assert said.plan == {0: (0, 0, 5)}


def test_the_plans_after_both_options_are_given_by_job():
    said = explain(found(build(FAST_AND_SLOW, WAITS), "drain-argmin", decision=2))
    assert said.plan == {1: (0, 40, 140)}
    assert said.rival_plan == {1: (1, 0, 310)}


def explained_by(**weights):
    """Shares of the groups in the score of job 2 against job 1, and of each feature."""
    # One of two GPUs is busy until 51, the other is wanted by job 1 (900 s) and job 2 (30 s).
    world = build(TWO, [job(0, 51), job(0.5, 900), job(1, 30)])
    decision = found(world, learned(world, summing(**weights)), at=1.0)
    theirs, ours = (
        [option.job for option in decision.options].index(j) for j in (1, 2)
    )  # fmt: skip
    more = decision.features[theirs] - decision.features[ours]
    parts = [weight * more[FEATURES.index(name)] for name, weight in weights.items()]
    return explain(decision._replace(chosen=ours, planned=theirs)).shares, parts


def test_the_score_difference_is_attributed_to_feature_groups():
    shares, (longer, waited) = explained_by(seconds=1.0, waited=1.0)
    assert longer > waited > 0
    total = longer + waited
    both = {"run time": longer / total, "time waited and priority": waited / total}
    assert {name: share for name, share in shares.items() if share} == pytest.approx(both)
    assert list(shares)[:2] == ["run time", "time waited and priority"]


def test_features_of_one_group_are_attributed_together():
    shares, _ = explained_by(seconds=1.0, area=1.0)
    assert shares["run time"] == pytest.approx(1)


def test_groups_that_favour_the_rival_are_negative():
    shares, (longer, waited) = explained_by(seconds=1.0, waited=-0.5)
    assert longer > 0 > waited
    assert shares["run time"] == pytest.approx(longer / (longer - waited))
    assert shares["time waited and priority"] == pytest.approx(waited / (longer - waited))


@pytest.mark.parametrize(
    ("scores", "values"),
    [
        ([0, 3, 5, 8], [3, 5]),  # independent: each its own part
        ([0, 0, 0, 6], [3, 3]),  # only together: half and half
        ([0, 0, 0, 4, 0, 4, 0, 4], [8 / 3, 2 / 3, 2 / 3]),  # the first with one of the others
    ],
)
def test_interacting_parts_share_their_effect(scores, values):
    found = [explanation._shapley(bit, np.array(scores)) for bit in range(len(values))]
    assert found == pytest.approx(values)


def test_every_feature_is_in_one_group():
    members = [name for group in GROUPS.values() for name in group]
    assert sorted(members) == sorted(FEATURES)


def decisions_of(name, policy, seed=1, **changes):
    setting = prepare(adjusted(find_scenario(name), **changes))
    ready, all_of_them = registry.load(policy, setting), []

    def see(view, answered, out):
        all_of_them.append(decision_of(view, answered, out, ready))
        return False

    workload = generate(setting, seed)
    watch(setting, workload, ready, seed, see)
    real = run_one(setting, workload, ready, seed).totals["real_decisions"]
    return [decision for decision in all_of_them if decision is not None], real


@pytest.mark.parametrize(
    ("scenario", "changes"),
    [("paper16", {"load": 1.0}), ("rough64", {}), ("quotas64", {"load": 1.2})],
)
def test_options_agree_with_what_the_policy_does_all_through_a_run(scenario, changes):
    decisions, real = decisions_of(scenario, "adlro", jobs=80, **changes)
    assert len(decisions) == real
    for decision in decisions:
        scores = [option.score for option in decision.options]
        assert scores[decision.chosen] == min(scores)
        assert ranked(decision)[0] == decision.chosen
        for i, option in enumerate(decision.options):
            plan = explanation._plan_after(decision, i)
            assert sum(planned.end for planned in plan.values()) == pytest.approx(option.drain_s)


def test_the_last_decision_is_found_and_one_more_is_refused():
    setting = prepare(adjusted(find_scenario("paper16"), jobs=40))
    workload, policy = generate(setting, 3), registry.load("min-min", setting)
    real = int(run_one(setting, workload, policy, 3).totals["real_decisions"])
    assert find(setting, workload, policy, 3, DecisionQuery(decision=real)).number == real
    with pytest.raises(ConfigError, match=f"^--decision {real + 1}: .* this run has {real}$"):
        find(setting, workload, policy, 3, DecisionQuery(decision=real + 1))


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"job": 2}, "--job 2: there is no such job; this run has 0 to 1"),
        ({"at": 41.0}, "--at 41: nothing is decided then; the last time is 40 s"),
        ({}, "min-min never decides otherwise than Min-Min in this run"),
    ],
)
def test_a_decision_that_the_run_does_not_have_is_refused(wish, said):
    with pytest.raises(ConfigError, match=f"^{said}"):
        found(build(FAST_AND_SLOW, WAITS), "min-min", **wish)


@pytest.mark.parametrize("answer", [[start(0), start(1, 1)], [start(0), preempt(0)]])
def test_an_answer_other_than_a_single_start_is_refused(answer):
    world = build(FAST_AND_SLOW, WAITS)
    policy = Policy("odd", Scripted(answer).decide, np.zeros(0), 0, None, 1, False)
    with pytest.raises(PolicyError, match=r"^policy odd did at 0 s what cannot be explained: "):
        found(world, policy, decision=1)
