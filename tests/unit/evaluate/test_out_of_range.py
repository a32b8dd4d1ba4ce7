"""Features outside the training range: which count, in which decisions, and what is said of it."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.evaluate import out_of_range
from adlro.evaluate.compare import compare
from adlro.evaluate.out_of_range import (
    NO_RANGES,
    Measured,
    OutOfRange,
    decision_outside,
    measure,
    outside,
    summarise,
)
from adlro.features.start_kernel import FEATURES
from adlro.policies import registry
from adlro.policies.loading import learned
from adlro.policies.loading.feature_ranges import FeatureRanges, Range
from adlro.workloads.jitter import Jitter
from adlro.workloads.setting import prepare

TRAINING_SEED = 1_000_000
RANGES = FeatureRanges(
    states=10,
    options=20,
    features={"free": Range(-1, 0, 0.5, 2), "widest": Range(0, 0, 3, 3)},
)
FREE, WIDEST = FEATURES.index("free"), FEATURES.index("widest")


@pytest.fixture(scope="module")
def setting():
    return prepare(adjusted(find_scenario("paper16"), jobs=100))


@pytest.fixture(scope="module")
def policy(setting):
    return registry.load("adlro", setting)


def options(*values):
    """Features of options, given the values of free and widest of each."""
    rows = np.zeros((len(values), len(FEATURES)), np.float32)
    rows[:, [FREE, WIDEST]] = values
    return rows


def test_a_feature_is_outside_if_it_is_for_one_option():
    decisions = np.stack(
        [
            options((0.5, 3), (0.0, 0)),  # on the edge is inside
            options((0.6, 1), (0.4, 1)),
            options((0.6, 9), (-0.1, 9)),
            options((0.1, 1), (0.9, 9)),  # the second is no option
            options((np.nan, 1), (0.4, 1)),
        ]
    )
    is_option = np.ones((5, 2), bool)
    is_option[3, 1] = False
    found = outside(decisions, is_option, RANGES)
    assert found["free"].tolist() == [False, True, True, False, True]
    assert found["widest"].tolist() == [False, False, True, False, False]


def test_the_figures_are_means_over_all_decisions_of_all_runs():
    first = {"a": np.array([True, True, False]), "b": np.array([True, False, False])}
    second = {"a": np.array([True]), "b": np.array([False])}
    rest = {name: np.zeros(3, bool) for name in "cd"}, {name: np.zeros(1, bool) for name in "cd"}
    found = summarise([first | rest[0], second | rest[1]])
    assert found == OutOfRange(
        features=4, mean_outside=1.0, share=0.25, decisions=4, most=[("a", 0.75), ("b", 0.25)]
    )
    assert found.words == (
        "1 of 4 features of an average decision (25 %), most often a (in 75 %), b (in 25 %)"
    )


def test_without_decisions_there_are_no_figures():
    found = summarise([{"a": np.zeros(0, bool)}])
    assert (found.share, found.decisions) == (None, 0)
    assert found.words.startswith("unknown: the network was not asked")


def test_a_decision_names_its_features_outside_the_farthest_first(policy):
    own = policy._replace(ranges=RANGES)
    found = decision_outside(own, options((0.6, 3), (0.4, 9), (0.4, 4)).astype(float), False)
    assert (found.features, found.share) == (2, 1.0)
    widest, free = found.values
    assert widest == ("widest", 9.0, 0.0, 3.0, 2)
    assert free == ("free", pytest.approx(0.6), 0.0, 0.5, 1)


def test_a_decision_without_running_jobs_is_not_the_networks(policy):
    found = decision_outside(policy, options((9, 9)).astype(float), True)
    assert (found.share, found.values) == (None, [])
    assert found.problem.startswith("not applicable: no job runs")


def test_little_of_the_training_scenario_is_outside_and_much_of_another_cluster(setting, policy):
    count = len(learned.shipped().network.features)
    own = measure([Measured(setting, policy, TRAINING_SEED + k) for k in range(3)])
    assert (own.features, own.problem) == (count, None)
    assert own.decisions > 200
    assert own.mean_outside < 0.3
    other = prepare(adjusted(find_scenario("gavel16"), jobs=100, load=3.0))
    far = measure([Measured(other, registry.load("adlro", other), TRAINING_SEED)])
    assert far.mean_outside > 2 * own.mean_outside
    assert far.share == pytest.approx(far.mean_outside / count)


def test_a_comparison_has_the_figures_of_learned_policies_only(setting, policy):
    names = ("adlro", "min-min", "paper-dqn", "adlro-preemptive")
    policies = [registry.load(name, setting) for name in names]
    result = compare(setting, policies, range(2))
    found = {row.name: row.out_of_range for row in result.policies}
    assert found["adlro"] == measure([Measured(setting, policy, seed) for seed in range(2)])
    assert found["min-min"] is None
    assert found["paper-dqn"].problem.startswith("not applicable")
    assert found["adlro-preemptive"].problem.startswith("unknown")
    notes = result.range_notes()
    assert len(notes) == 3
    assert notes[0] == f"Outside the training range of adlro: {found['adlro'].words}."
    assert "of 43 features of an average decision" in notes[0]


def test_a_policy_that_looks_ahead_does_not_decide_by_the_network(setting):
    ahead = registry.load("adlro+lookahead", setting)
    assert measure([Measured(setting, ahead, TRAINING_SEED)]) is None


def test_of_many_seeds_and_repetitions_only_some_are_played_again(setting, policy, monkeypatch):
    monkeypatch.setattr("adlro.evaluate.compare.MOST_SEEDS", 2)
    played, real = [], out_of_range.record_run

    def counted(*args):
        played.append(args[3])
        return real(*args)

    monkeypatch.setattr(out_of_range, "record_run", counted)
    compare(setting, [policy], range(5, 9), jitter=Jitter(2, 0.01), threads=2)
    assert sorted(played) == [5, 6]


def test_a_policy_file_without_ranges_plays_and_its_share_is_unknown(setting, policy, tmp_path):
    shipped = learned.shipped()
    path = tmp_path / "old.npz"
    learned.save(path, shipped.network, shipped.card.model_copy(update={"ranges": None}))
    old = registry.load(str(path), setting)
    result = compare(setting, [old], range(1))
    assert result.policies[0].out_of_range == OutOfRange(problem=NO_RANGES)
    assert result.range_notes() == [f"Outside the training range of old: {NO_RANGES}."]
    new = compare(setting, [policy], range(1))
    assert result.policies[0].per_seed == new.policies[0].per_seed
