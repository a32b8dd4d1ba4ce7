"""The ablations: what each training leaves out, the TD learner, and the tables."""

import functools
import json

import numpy as np
import pytest

pytest.importorskip("torch")

from adlro.evaluate.compare import run_one
from adlro.features.start_kernel import MOST_CHOICES, PLAIN, PLANNED, SECONDS, WAIT
from adlro.nets.q_network import UNITS, flat, predict
from adlro.train import weights
from adlro.train.episodes import EpisodeSource, policy
from adlro.train.folder import TrainingFolder
from adlro.train.labelling import read_labels
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from experiments.ablations import run, td, training, variants
from tests import toys, trained
from tests.comparisons import STEADY, compared

TOY = prepare(toys.bound_and_free())
BY_NAME = {one.name: one for one in variants.variants() if one.run == 1}
TINY_TD = td.Td(turns=2, episodes=2, steps=3, batch=8, hidden=(4, 3), family_share=0.0)


def changed(name):
    """The paths of the recipe in which a variant is not the reference, with their values."""

    def leaves(value, path=""):
        if isinstance(value, dict):
            return {
                k: v for key, one in value.items() for k, v in leaves(one, f"{path}/{key}").items()
            }
        if isinstance(value, tuple | list) and value and isinstance(value[0], dict):
            return leaves(dict(enumerate(value)), path)
        return {path: value}

    ours, theirs = (leaves(BY_NAME[one].recipe.model_dump()) for one in (name, "reference"))
    return {path: value for path, value in ours.items() if value != theirs[path]}


def recorded(network, *, as_min_min=False, stray=0.0, seed=3):
    """A toy episode: its jobs, what became of them, and the tape."""
    workload = generate(TOY, seed)
    policy = td.recorder(
        network, TOY, as_min_min=as_min_min, stray=stray, rng=np.random.default_rng(0)
    )
    return workload, run_one(TOY, workload, policy, seed).outcome, td.tape(policy)


def some_transitions(states=400, seed=0):
    """Nothing follows; a start costs 3 tau less than to wait where `seconds` > 0, else 3 more."""
    rng = np.random.default_rng(seed)
    features = np.zeros((2 * states, len(PLAIN)), np.float32)
    features[0::2, WAIT] = features[0::2, PLANNED] = 1
    features[1::2, SECONDS] = rng.normal(size=states)
    taken = rng.integers(0, 2, states)
    cost = np.where(taken == 1, -3 * np.sign(features[1::2, SECONDS]), 0) + 5
    place = np.arange(MOST_CHOICES)[None]
    return td.Transitions(
        features, 2 * np.arange(states)[:, None] + np.minimum(place, 1),
        np.repeat(place < 2, states, axis=0), np.zeros(states, int), taken,
        np.zeros(2 * states, np.float32), cost.astype(np.float32), np.zeros(states, np.float32),
        np.ones(states, np.float32), np.arange(states),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("TD targets", {}),
        ("no residual", {"/fit/residual": (0.0, 0.0)}),
        ("no plan features", {"/fit/features": variants.OTHERS}),
        ("neither of the two", {"/fit/residual": (0.0, 0.0), "/fit/features": variants.OTHERS}),
        ("short horizon", {"/rounds/0/horizon": 5, "/rounds/1/horizon": 5}),
        (
            "no randomisation",
            {f"/{part}/family_share": 0.0 for part in ("rounds/0", "rounds/1", "tuning")},
        ),
        (
            "on-policy data only",
            {f"/rounds/{k}/{key}": value for k in (0, 1) for key, value in
             {"behaviours": ("self",), "stray": 0.0}.items()},
        ),
    ],
)  # fmt: skip
def test_a_variant_leaves_out_one_thing_and_nothing_else(name, wanted):
    assert changed(name) == wanted


def test_only_trainings_that_need_no_labels_of_their_own_share_those_of_the_reference():
    shared = {name for name, one in BY_NAME.items() if one.shares_labels}
    assert shared == {"no residual", "no plan features", "neither of the two"}


def test_every_training_is_run_twice_and_the_reference_once_more():
    keys = [one.key for one in variants.variants()]
    assert len(set(keys)) == len(keys) == 2 * len(BY_NAME) + 1
    runs = [one.run for one in variants.variants() if one.name == "reference"]
    assert runs == [1, 2, 3]
    for one in variants.variants():  # whose labels are used is trained before
        assert not one.shares_labels or f"reference, run {one.run}" in keys[: keys.index(one.key)]


def test_what_stems_from_a_plan_is_no_feature_of_those_without_plan():
    assert set(variants.PLAN_FEATURES) == {
        "planned", "drain", "drain_log", "drain_regret", "drain_busy", "drain_wait", "drain_mean",
        "plan_end", "plan_gain", "plan_start", "plan_rank", "plan_here", "plan_now",
    }  # fmt: skip
    assert set(variants.OTHERS) | set(variants.PLAN_FEATURES) == set(PLAIN)


def test_job_seconds_are_the_time_that_all_jobs_have_spent_so_far():
    # Jobs are there from 0 to 10 and from 4 to 6: at 3 s 3, at 5 s 5 + 1, at 20 s 10 + 2.
    found = td.job_seconds(np.array([3.0, 5.0, 20.0]), np.array([0.0, 4]), np.array([10.0, 6]))
    assert found.tolist() == [3, 6, 12]


def test_a_transition_has_its_cost_above_the_mean_in_tau_and_what_follows():
    # Decisions at 2 s (tau 2, 2 choices, the second taken, plans 6 and 4 s) and at 6 s (tau 1, 3
    # choices, the first taken). Jobs are there from 0 to 8 and from 4 to 10.
    # Job-seconds: 2 at 2 s, 6 + 2 = 8 at 6 s, 8 + 6 = 14 at the end: 6 in 4 s, then 6 in 4 s.
    # Of these 12 the plan at the first decision knew 4, so 8 in 8 s come as surprises: 1 a second.
    steps = np.array([[2.0, 2, 2, 0, 1], [6.0, 1, 3, 2, 0]])
    plans = np.array([6.0, 4, 3, 5, 7])
    one = td.Tape(steps, np.arange(5.0)[:, None], plans)
    found = td.transitions(one, np.array([0.0, 4]), np.array([8.0, 10]), horizon=2.0)
    assert found.cost.tolist() == [(6 - 4) / 2, (6 - 4) / 1]
    assert found.plans.tolist() == [3, 2, 3, 5, 7]
    assert found.scale.tolist() == [0.5, 0]  # nothing follows the last
    assert found.fade == pytest.approx([np.exp(-4 / (2 * 2)), np.exp(-4 / (2 * 1))])
    assert found.next.tolist() == [1, 1]
    assert found.rows[:, :4].tolist() == [[0, 1, 1, 1], [2, 3, 4, 4]]
    assert found.known.sum(axis=1).tolist() == [2, 3]
    assert (found.planned.tolist(), found.taken.tolist()) == ([0, 2], [1, 0])


def test_episodes_are_joined_without_mixing_them_up():
    one, other = some_transitions(3), some_transitions(2, seed=1)
    both = td.joined([one, other])
    assert both.next.tolist() == [0, 1, 2, 3, 4]
    assert both.rows[3:].tolist() == (other.rows + 6).tolist()
    assert np.array_equal(both.features[both.rows[4, 1]], other.features[3])


@pytest.mark.parametrize(("as_min_min", "rival"), [(True, "min-min"), (False, "drain-argmin")])
def test_a_recorder_plays_as_it_is_told_to(as_min_min, rival):
    network = weights.like_drain_argmin((3, 2))
    workload, outcome, _ = recorded(network, as_min_min=as_min_min)
    assert np.array_equal(outcome, run_one(TOY, workload, policy(rival, TOY), 3).outcome)


def test_a_recorder_plays_a_network_as_the_policy_does():
    network = trained.network(PLAIN, (5, 4))
    workload, outcome, _ = recorded(network)
    policy = weights.policy(network, TOY)
    assert np.array_equal(outcome, run_one(TOY, workload, policy, 3).outcome)


def test_a_tape_holds_every_choice_and_the_one_taken():
    _, _, tape = recorded(weights.like_min_min((3, 2)))
    times, tau, count, planned, taken = tape.steps.T
    assert len(tape.features) == len(tape.plans) == count.sum() > len(times) > 0
    assert np.all(np.diff(times) >= 0)
    assert np.all(tau > 0)
    assert np.array_equal(planned, taken)
    first = (np.cumsum(count) - count).astype(int)
    assert tape.features[first, WAIT].tolist() == [1] * len(times)  # to wait comes first
    assert tape.features[:, WAIT].sum() == len(times)
    chosen = first + taken.astype(int)
    assert tape.features[chosen, PLANNED].tolist() == [1] * len(times)
    assert np.all(tape.plans > 0)


def test_the_plan_says_what_the_jobs_at_hand_will_cost():
    # Estimates are exact and Min-Min plays: after the last arrival all comes as it was planned.
    checked = 0
    for seed in range(12):
        workload, outcome, tape = recorded(weights.like_min_min((3, 2)), seed=seed)
        arrival, finish = workload.jobs["arrival"], outcome["finish"]
        now, _, count, _, taken = tape.steps[-1]
        if now >= arrival[-1]:
            spent, total = td.job_seconds(np.array([now, finish.max()]), arrival, finish)
            plan = tape.plans[len(tape.plans) - int(count) + int(taken)]
            assert plan == pytest.approx(total - spent)
            checked += 1
    assert checked > 3


def test_strays_are_taken_among_all_choices():
    seen = [recorded(weights.like_min_min((3, 2)), stray=1.0, seed=s)[2].steps for s in range(20)]
    count, _, taken = np.concatenate(seen)[:, 2:].T
    of_three = taken[count == 3]
    assert set(of_three.tolist()) == {0, 1, 2}
    assert np.all(taken < count)


def test_the_learner_finds_out_which_choice_is_the_cheaper_one():
    data = some_transitions()
    # The usual layers: of smaller ones, one in four initial weights leaves too few units active.
    learner = td.Learner(td.Td(turns=1, steps=800, batch=64, rate=4e-3), 0)
    learner.measure(data)
    errors = [learner.step(data) for _ in range(800)]
    assert np.mean(errors[-100:]) < 0.5 < np.mean(errors[:10])
    params = flat(learner.network())
    rows = np.zeros((3, len(PLAIN)))
    rows[0, [WAIT, PLANNED]] = 1
    rows[1:, SECONDS] = 1.0, -1.0
    wait, good, bad = (td_cost(row, params) for row in rows)
    assert good - wait == pytest.approx(-3, abs=0.6)
    assert bad - wait == pytest.approx(3, abs=0.6)


def td_cost(row, params):
    scratch = np.zeros(UNITS)
    predict(row, params, scratch)
    return scratch[0]


def test_what_follows_counts_by_the_choice_that_would_be_taken_there():
    # The next state's choices cost 7 and 2 by their plans, its tau is twice ours: with a network
    # that says 0, the target is 1 + 2 x 2.
    data = some_transitions(2)
    plans = np.array([0.0, 0, 7, 2], np.float32)
    data = data._replace(
        plans=plans, cost=np.ones(2, np.float32), scale=np.array([2.0, 0], np.float32),
        next=np.array([1, 1]),
    )  # fmt: skip
    learner = td.Learner(td.Td(hidden=(4, 3)), 0)
    for network in (learner._q, learner._slow):
        for weight in network.parameters():
            weight.data.zero_()
    assert learner._target(data, np.array([0, 1])).tolist() == [5, 1]


def test_learning_by_td_gives_the_same_bytes_by_seed():
    ground = EpisodeSource(toys.bound_and_free(), (0.9, 0.9))

    def weights_of(seed):
        *_, (_, _, network) = td.learned(td.Recording(ground, seed, TINY_TD))
        return flat(network).tobytes()

    assert weights_of(1) == weights_of(1) != weights_of(2)


def workshop(folder, *, is_resumed=False):
    return training.Workshop(folder, toys.bound_and_free(), is_resumed, 1)


def tiny(name="reference", run=1, **changes):
    return variants.Variant(name, run, toys.tiny(), **changes)


def test_a_training_that_is_done_is_taken_as_it_is_when_resumed_and_else_done_anew(tmp_path):
    first = workshop(tmp_path).train(tiny())
    mark = tmp_path / "reference-run-1-training" / "plan.json"
    written = mark.stat().st_mtime_ns
    again = workshop(tmp_path, is_resumed=True).train(tiny())
    assert mark.stat().st_mtime_ns == written
    assert flat(again.tuned).tobytes() == flat(first.tuned).tobytes()
    assert flat(again.fitted).tobytes() == flat(first.fitted).tobytes()
    assert flat(first.tuned).tobytes() != flat(first.fitted).tobytes()
    workshop(tmp_path).train(tiny())
    assert mark.stat().st_mtime_ns > written


def test_a_training_with_another_recipe_is_not_gone_on_with(tmp_path, capsys):
    workshop(tmp_path).train(tiny())
    fit = toys.tiny().fit.model_copy(update={"epochs": 2})
    shorter = tiny()._replace(recipe=toys.tiny().model_copy(update={"fit": fit}))
    other = workshop(tmp_path, is_resumed=True).train(shorter)
    assert "-training: of another training: run anew\n" in capsys.readouterr().err
    assert flat(other.tuned).tobytes() == flat(workshop(tmp_path).train(shorter).tuned).tobytes()


def test_labels_are_shared_and_not_made_again(tmp_path):
    workshop(tmp_path).train(tiny(run=7))
    states = {"states": 10}  # of which there are more already
    rounds = tuple(one.model_copy(update=states) for one in toys.tiny().rounds)
    fit = toys.tiny().fit.model_copy(update={"residual": (0.0, 0.0)})
    recipe = toys.tiny().model_copy(update={"fit": fit, "rounds": rounds})
    found = workshop(tmp_path).train(variants.Variant("two", 7, recipe, shares_labels=True))
    assert found.tuned.residual.tolist() == [0, 0]
    for number in (0, 1):
        ours, theirs = (
            read_labels(TrainingFolder(tmp_path / f"{name}-run-7-training"), number)
            for name in ("two", "reference")
        )
        assert ours[0] == theirs[0]  # so many episodes
        assert sum(len(part.groups) for part in ours[1]) >= 20


def test_a_td_training_is_tuned_too_and_taken_up_again_unless_its_numbers_changed(tmp_path):
    first = workshop(tmp_path).train(tiny(td=TINY_TD))
    assert flat(first.tuned).tobytes() != flat(first.fitted).tobytes()
    metrics = tmp_path / "reference-run-1-training" / "metrics.jsonl"
    assert [json.loads(line)["step"] for line in metrics.read_text().splitlines()] == [1, 2]
    again = workshop(tmp_path, is_resumed=True).train(tiny(td=TINY_TD))
    assert flat(again.tuned).tobytes() == flat(first.tuned).tobytes()
    assert len(metrics.read_text().splitlines()) == 2  # nothing was learned again
    other = workshop(tmp_path, is_resumed=True).train(tiny(td=TINY_TD._replace(steps=4)))
    assert flat(other.fitted).tobytes() != flat(first.fitted).tobytes()


SHARES = {  # mean JCT on each seed, as a share of min-min's
    "min-min": 1.0, "drain-argmin": 0.96, "adlro": 0.9, "reference, run 1": 0.94,
    "reference, run 2": 0.96, "other, run 1": 0.97,
}  # fmt: skip
UNTUNED = {
    "reference, run 1, not tuned": 0.97, "reference, run 2, not tuned": 0.99,
    "other, run 1, not tuned": 0.9898,
}  # fmt: skip
TRAININGS = [
    variants.Variant(name, run, toys.tiny())
    for name, run in (("reference", 1), ("reference", 2), ("other", 1))
]


@functools.cache
def made_up():
    return compared({name: share * STEADY for name, share in (SHARES | UNTUNED).items()})


def summed_up():
    found = [run.Found(case, made_up()) for case in run.cases(is_quick=False)]
    return run.summed_up(found[:3], found[3:], TRAININGS)


def test_the_main_table_has_a_line_for_each_training_and_the_reference_before_tuning():
    result = summed_up()
    lines = {line[0]: line[1:] for line in result.table}
    assert list(lines) == ["reference", "other", "no fine-tuning", "*drain-argmin*", "*adlro*"]
    # The mean of two runs: (0.94 + 0.96) / 2 = 0.95.
    assert lines["reference"] == ["-5.0 % (-5.0 to -5.0)"] * 3 + ["-"] * 3
    # 0.97 / 0.95 - 1 = 2.1 %, 0.98 / 0.95 - 1 = 3.2 %
    assert lines["other"] == ["-3.0 % (-3.0 to -3.0)"] * 3 + ["+2.1 % (+2.1 to +2.1)"] * 3
    assert lines["no fine-tuning"][3:] == ["+3.2 % (+3.2 to +3.2)"] * 3
    assert [name.count("load") for name in result.head] == [0] + [1] * 6


def test_runs_are_shown_one_by_one_too():
    alone = summed_up().more[0]
    lines = {line[0]: line[1:] for line in alone.lines}
    assert lines["reference"] == ["-6.0, -4.0"] * 3
    assert lines["other"] == ["-3.0"] * 3
    assert lines["no fine-tuning"] == ["-3.0, -1.0"] * 3


def test_networks_before_tuning_are_compared_with_the_reference_before_tuning():
    _, before, new = summed_up().more
    assert before.head[1:] == ["paper16, load 0.8, vs min-min", "paper16, load 0.8, vs reference"]
    lines = {line[0]: line[1:] for line in before.lines}
    assert lines["reference"] == ["-2.0 % (-2.0 to -2.0)", "-"]
    assert lines["other"][1] == "+1.0 % (+1.0 to +1.0)"  # 0.9898 / 0.98
    assert [len(line) for line in new.lines] == [5] * 4  # two scenarios, two rivals


def test_every_policy_of_every_case_is_among_the_figures():
    figures = summed_up().figures
    assert len(figures) == 5
    assert figures["paper16, load 0.8"]["other, run 1: mean JCT s"] == pytest.approx(
        0.97 * STEADY.mean()
    )


def test_the_seeds_of_the_tables_are_not_those_of_any_training():
    for case in run.cases(is_quick=False):
        assert case.seeds[-1] < 10_000
    assert [len(case.seeds) for case in run.cases(is_quick=False)] == [500, 500, 500, 100, 100]
