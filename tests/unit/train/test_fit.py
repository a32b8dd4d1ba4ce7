import numpy as np
import pytest

pytest.importorskip("torch")

from adlro.features.start_kernel import DRAIN, DRAIN_LOG, FEATURES, PLAIN, PLANNED, SECONDS
from adlro.nets.q_network import UNITS, flat, predict
from adlro.train.expansion import Labels
from adlro.train.fit import Fitting, targets
from adlro.train.hyperparameters import FitSettings

JCT = np.array([1.0, 0, 0, 0, 0])


def some_labels(states, choices=4, seed=0):
    """States whose choices cost 20 s more than Min-Min's where `seconds` > 0, else 20 s less.

    A job of the rollout costs 10 s on average, so that is ± log 3; the drain difference says
    nothing of it.
    """
    rng = np.random.default_rng(seed)
    features = np.zeros((states * choices, len(FEATURES)), np.float32)
    features[:, SECONDS] = rng.normal(size=len(features))
    features[::choices, PLANNED] = 1
    features[::choices, SECONDS] = 0
    costs = np.zeros((len(features), 5))
    costs[:, 0] = 100.0 + 20.0 * np.sign(features[:, SECONDS])
    costs[:, 1:] = rng.normal(size=(len(features), 4))
    groups = np.tile([choices, 0, 7_000_000, 10, 1000], (states, 1))  # tau = 7 s, 10 jobs
    return Labels(features, costs, groups)


def predicted(network, rows):
    found, params = [], flat(network)
    for row in rows:
        scratch = np.zeros(UNITS)
        predict(row.astype(np.float64), params, scratch)
        found.append(scratch[0])
    return np.array(found)


def begun(labels, seed=0, **changes):
    usual = {"epochs": 30, "batch": 64, "rate": 0.02, "members": 1}
    settings = FitSettings(**{**usual, **changes})
    return Fitting(targets([labels], JCT), (16, 8), settings, seed)


def fitted(labels, seed=0, **changes):
    fitting = begun(labels, seed, **changes)
    while not fitting.is_done:
        quality = fitting.run_epoch()
    return fitting.network(), quality


BOTH = pytest.mark.parametrize("loss", ["decision", "regression"])


def test_targets_are_costs_above_min_mins_choice_in_mean_costs_of_a_job():
    # Two states: of 2 choices (Min-Min's is the second) and of 3 (the first).
    costs = np.zeros((5, 5))
    costs[:, 0] = [8, 4, 30, 50, 20]
    costs[:, 2] = [0, 2, 0, 0, 0]  # weighs 0.5
    groups = np.array([[2, 1, 2_000_000, 10, 1000], [3, 0, 10_000_000, 6, 250]])
    found = targets(
        [Labels(np.zeros((5, 1), np.float32), costs, groups)], np.array([1, 0, 0.5, 0, 0])
    )
    assert found.known.sum(axis=1).tolist() == [2, 3]
    # Ten jobs cost 4 + 1 s, 0.5 each: (8 - 5) / 0.5 = 6. Six cost 30 s, 5 each: 20 / 5 and -10 / 5.
    assert found.costs[0, :2].tolist() == [6, 0]
    assert found.costs[1, :3].tolist() == [0, 4, -2]
    assert found.rows[0, :3].tolist() == [0, 1, 1]
    assert found.rows[1, :4].tolist() == [2, 3, 4, 4]
    assert found.weights.tolist() == [1, 4]  # one in four of such states is labelled


def test_a_known_function_is_recovered_by_regression():
    network, quality = fitted(some_labels(600), loss="regression")
    assert quality.loss < 0.05
    assert quality.gain < -88  # in 7 of 8 states some choice costs less: -7 / 8 x log 3 = -96 %
    rows = np.zeros((3, len(FEATURES)))
    rows[:, SECONDS] = [-1.5, 0, 1.5]
    rows[1, PLANNED] = 1
    low, middle, high = predicted(network, rows)
    assert low - middle == pytest.approx(-np.log(3), abs=0.25)
    assert high - middle == pytest.approx(np.log(3), abs=0.25)


def test_the_decision_loss_learns_which_choice_is_best_not_what_it_costs():
    network, quality = fitted(some_labels(600), loss="decision")
    assert quality.gain < -88
    assert quality.loss < -0.88  # what the softmax of the scores is expected to cost
    rows = np.zeros((3, len(FEATURES)))
    rows[:, SECONDS] = [-1.5, 0, 1.5]
    rows[1, PLANNED] = 1
    low, middle, high = predicted(network, rows)
    assert low < middle - 0.3 < middle + 0.3 < high  # 0.1 is the temperature


def gambles(states=400, lost=29.0):
    """States with Min-Min's choice and one that saves 5 s four times in five, else loses more.

    No feature tells when. A job costs 10 s on average.
    """
    features = np.zeros((2 * states, len(FEATURES)), np.float32)
    features[::2, PLANNED] = features[1::2, SECONDS] = 1
    costs = np.zeros((2 * states, 5))
    costs[:, 0] = 100.0
    costs[1::2, 0] += np.where(np.arange(states) % 5 == 0, lost, -5)
    return Labels(features, costs, np.tile([2, 0, 5_000_000, 10, 1000], (states, 1)))


def is_taken(network):
    """Whether the network takes the gamble."""
    rows = np.zeros((2, len(FEATURES)))
    rows[0, PLANNED] = rows[1, SECONDS] = 1
    planned, gamble = predicted(network, rows)
    return gamble < planned


@pytest.mark.parametrize(
    ("loss", "lost", "taken"),
    [
        # in jobs: 0.8 x -log 1.5 + 0.2 x log 5.9 > 0
        ("decision", 49.0, False),
        # Huber: the loss counts as 1 more than the score: 0.8 x (s + log 1.5) = 0.2, s < 0
        ("regression", 49.0, True),
        # in jobs: 0.8 x -log 1.5 + 0.2 x log 3.9 < 0
        ("decision", 29.0, True),
    ],
)
def test_a_choice_that_is_mostly_better_and_rarely_far_worse(loss, lost, taken):
    network, _ = fitted(gambles(lost=lost), epochs=15, loss=loss, batch=32)
    assert is_taken(network) == taken


def test_the_decision_loss_takes_a_gamble_that_is_worth_it():
    network, _ = fitted(
        gambles(lost=15.0), epochs=15, batch=32, loss="decision"
    )  # 0.8 x -log 1.5 + 0.2 x log 2.5
    assert is_taken(network)


def test_inputs_are_clamped_to_all_but_a_share_of_their_range_at_each_end():
    labels = some_labels(100)
    network, _ = fitted(labels, epochs=2, outside=0.05)
    column = PLAIN.index("seconds")
    low, high = np.quantile(labels.features[:, SECONDS], (0.05, 0.95))
    assert network.bounds[:, column] == pytest.approx([low, high], rel=1e-6)
    assert network.bounds.shape == (2, len(PLAIN))
    rows = np.zeros((3, len(FEATURES)))
    rows[:, SECONDS] = [network.bounds[1, column], 50, network.bounds[1, column] - 0.1]
    at_the_bound, beyond, inside = predicted(network, rows)
    assert beyond == at_the_bound != inside


def test_how_far_inputs_are_outside_makes_no_difference_to_the_fit():
    labels, far = some_labels(100), some_labels(100)
    largest = labels.features[:, SECONDS].argmax()
    far.features[largest, SECONDS] = 1e6
    before = far.features.copy()
    ours, theirs = (fitted(one, epochs=2, outside=0.05)[0] for one in (labels, far))
    assert flat(ours).tobytes() == flat(theirs).tobytes()
    assert far.features.tobytes() == before.tobytes()


def test_the_drain_difference_is_added_outside_of_the_network():
    network, _ = fitted(some_labels(50), epochs=1)
    rows = np.zeros((2, len(FEATURES)))
    rows[1, DRAIN_LOG] = 0.5
    blind = network._replace(first=network.first * (np.arange(len(PLAIN)) != DRAIN_LOG)[:, None])
    one, other = predicted(blind, rows)
    assert other - one == pytest.approx(0.5)


def test_the_residual_is_the_drain_difference_in_the_shares_of_the_recipe():
    # 2 x 0.7 of the plain one, and a quarter of 0.4 of the log: 1.4 + 0.1
    recipe = FitSettings(epochs=1, residual=(2.0, 0.25), members=1)
    data = targets([some_labels(50)], JCT)
    network = Fitting(data, (16, 8), recipe, 0).network()
    rows = np.zeros((2, len(FEATURES)))
    rows[1, [DRAIN, DRAIN_LOG]] = 0.7, 0.4
    blind = network._replace(first=np.zeros_like(network.first))
    one, other = predicted(blind, rows)
    assert other - one == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("residual", "loss"),
    # A choice that costs 2 jobs more is off by log 3 = 1.10 or by 0: Huber gives 1.10 - 0.5 = 0.60
    # or 0, and 0 for Min-Min's own, one in four.
    [((0.0, 1.0), 0.0), ((0.5, 0.0), 0.0), ((0.25, 0.5), 0.0), ((0.0, 0.0), 0.75 * 0.599)],
)
def test_the_network_learns_what_the_residual_leaves(residual, loss):
    labels = some_labels(400)
    goal = np.log(3) * np.sign(labels.features[:, [SECONDS]])
    labels.features[:, [DRAIN, DRAIN_LOG]] = goal * (2, 1)
    fitting = begun(labels, loss="regression", rate=1e-9, residual=residual)
    assert fitting.run_epoch().loss == pytest.approx(loss, abs=0.02)


@BOTH
def test_a_network_is_fitted_on_the_named_features_alone(loss):
    names = ("seconds", "planned")
    network, quality = fitted(some_labels(600), features=names, loss=loss)
    assert quality.gain < -88
    assert network.features == names
    assert network.bounds.shape == (2, 2)
    rows = np.zeros((3, len(FEATURES)))
    rows[:, SECONDS] = [-1.5, 0, 1.5]
    rows[1, PLANNED] = 1
    low, middle, high = predicted(network, rows)
    assert low < middle < high


def test_a_feature_that_does_not_exist_cannot_be_fitted_on():
    with pytest.raises(ValueError, match="not in tuple"):
        Fitting(targets([some_labels(5)], JCT), (4, 2), FitSettings(features=("colour",)), 0)


@BOTH
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(loss):
    labels = some_labels(80)
    one, again, other = (flat(fitted(labels, seed, epochs=3, loss=loss)[0]) for seed in (1, 1, 2))
    assert one.tobytes() == again.tobytes() != other.tobytes()


@BOTH
def test_a_fit_that_is_put_down_and_taken_up_ends_the_same(loss):
    labels = some_labels(80)
    whole, _ = fitted(labels, epochs=5, loss=loss)
    first, rest = (begun(labels, epochs=5, loss=loss) for _ in range(2))
    first.run_epoch()
    first.run_epoch()
    rest.restore(first.arrays())
    assert rest.epoch == 2
    while not rest.is_done:
        rest.run_epoch()
    assert flat(rest.network()).tobytes() == flat(whole).tobytes()


@BOTH
def test_a_single_state_can_be_fitted(loss):
    network, _ = fitted(some_labels(1), epochs=2, loss=loss)
    assert np.isfinite(flat(network)).all()


def test_members_are_networks_of_their_own_from_different_initial_weights():
    labels = some_labels(300)
    three, _ = fitted(labels, epochs=3, members=3, caution=0.5)
    alone, _ = fitted(labels, epochs=3, members=1)
    assert (three.members, three.hidden, three.caution) == (3, (16, 8), 0.5)
    rows = np.zeros((40, len(FEATURES)))
    rows[:, SECONDS] = np.linspace(-1, 1, 40)
    params, found, scratch = flat(three), [], np.zeros(UNITS)
    for row in rows:
        predict(row, params, scratch)
        found.append(scratch[:3].copy())
    first, second, third = np.array(found).T
    # Adam's steps do not depend on the scale of the loss, which is the mean over the members.
    assert first == pytest.approx(predicted(alone, rows), abs=1e-3)
    assert np.abs(first - second).max() > 0.01
    assert np.abs(second - third).max() > 0.01
