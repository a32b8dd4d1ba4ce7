import numpy as np
import pytest

pytest.importorskip("torch")

from adlro.features.start_kernel import DRAIN, DRAIN_LOG, FEATURES, PLAIN, PLANNED, SECONDS
from adlro.nets.q_network import MOST_UNITS, flat, predict
from adlro.train.expansion import Labels
from adlro.train.fit import Fitting, targets
from adlro.train.hyperparameters import FitSettings

JCT = np.array([1.0, 0, 0, 0, 0])


def some_labels(states, choices=4, seed=0):
    """States whose choices cost 2 tau more than Min-Min's where `seconds` > 0, else 2 tau less.

    In squeezed tau that is ± log 3; the drain difference says nothing of it.
    """
    rng = np.random.default_rng(seed)
    features = np.zeros((states * choices, len(FEATURES)), np.float32)
    features[:, SECONDS] = rng.normal(size=len(features))
    features[::choices, PLANNED] = 1
    features[::choices, SECONDS] = 0
    costs = np.zeros((len(features), 5))
    costs[:, 0] = 100.0 + 2 * 7.0 * np.sign(features[:, SECONDS])
    costs[:, 1:] = rng.normal(size=(len(features), 4))
    groups = np.tile([choices, 0, 7_000_000], (states, 1))  # tau = 7 s
    return Labels(features, costs, groups)


def predicted(network, rows):
    first, second = np.zeros(MOST_UNITS), np.zeros(MOST_UNITS)
    params = flat(network)
    return np.array(
        [predict.py_func(row.astype(np.float64), params, first, second) for row in rows]
    )


def fitted(labels, epochs=30, seed=0):
    fitting = Fitting(
        targets([labels], JCT), (16, 8), FitSettings(epochs=epochs, batch=64, rate=0.02), seed
    )
    while not fitting.is_done:
        quality = fitting.run_epoch()
    return fitting, quality


def test_targets_are_costs_above_min_mins_choice_in_tau():
    # Two states: of 2 choices (Min-Min's is the second) with tau 2 s, of 3 (the first) with 10 s.
    costs = np.zeros((5, 5))
    costs[:, 0] = [8, 4, 30, 50, 20]
    costs[:, 2] = [0, 2, 0, 0, 0]  # weighs 0.5
    groups = np.array([[2, 1, 2_000_000], [3, 0, 10_000_000]])
    found = targets(
        [Labels(np.zeros((5, 1), np.float32), costs, groups)], np.array([1, 0, 0.5, 0, 0])
    )
    assert found.known.sum(axis=1).tolist() == [2, 3]
    # (8 - (4 + 1)) / 2 = 1.5, and 0; then 0, (50 - 30) / 10 = 2, (20 - 30) / 10 = -1.
    assert found.costs[0, :2].tolist() == [1.5, 0]
    assert found.costs[1, :3].tolist() == [0, 2, -1]
    assert found.rows[0, :3].tolist() == [0, 1, 1]
    assert found.rows[1, :4].tolist() == [2, 3, 4, 4]


def test_a_known_function_is_recovered():
    labels = some_labels(600)
    fitting, quality = fitted(labels)
    assert quality.loss < 0.05
    assert quality.gain < -1.6  # some choice costs 2 tau less in 7 of 8 states: -1.75
    rows = np.zeros((3, len(FEATURES)))
    rows[:, SECONDS] = [-1.5, 0, 1.5]
    rows[1, PLANNED] = 1
    low, middle, high = predicted(fitting.network(), rows)
    assert low - middle == pytest.approx(-np.log(3), abs=0.25)
    assert high - middle == pytest.approx(np.log(3), abs=0.25)


def test_the_drain_difference_is_added_outside_of_the_network():
    network = fitted(some_labels(50), epochs=1)[0].network()
    rows = np.zeros((2, len(FEATURES)))
    rows[1, DRAIN_LOG] = 0.5
    blind = network._replace(first=network.first * (np.arange(len(PLAIN)) != DRAIN_LOG)[:, None])
    one, other = predicted(blind, rows)
    assert other - one == pytest.approx(0.5)


def test_the_residual_is_the_drain_difference_in_the_shares_of_the_recipe():
    # 2 x 0.7 of the plain one, and a quarter of 0.4 of the log: 1.4 + 0.1
    data, recipe = targets([some_labels(50)], JCT), FitSettings(epochs=1, residual=(2.0, 0.25))
    network = Fitting(data, (16, 8), recipe, 0).network()
    rows = np.zeros((2, len(FEATURES)))
    rows[1, [DRAIN, DRAIN_LOG]] = 0.7, 0.4
    blind = network._replace(first=np.zeros_like(network.first))
    one, other = predicted(blind, rows)
    assert other - one == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("residual", "loss"),
    # A choice that costs 2 tau more is off by log 3 = 1.10 or by 0: Huber gives 1.10 - 0.5 = 0.60
    # or 0, and 0 for Min-Min's own, one in four.
    [((0.0, 1.0), 0.0), ((0.5, 0.0), 0.0), ((0.25, 0.5), 0.0), ((0.0, 0.0), 0.75 * 0.599)],
)
def test_the_network_learns_what_the_residual_leaves(residual, loss):
    labels = some_labels(400)
    goal = np.log(3) * np.sign(labels.features[:, [SECONDS]])
    labels.features[:, [DRAIN, DRAIN_LOG]] = goal * (2, 1)
    fitting = Fitting(targets([labels], JCT), (16, 8), FitSettings(rate=1e-9, residual=residual), 0)
    assert fitting.run_epoch().loss == pytest.approx(loss, abs=0.02)


def test_a_network_is_fitted_on_the_named_features_alone():
    names = ("seconds", "planned")
    recipe = FitSettings(epochs=30, batch=64, rate=0.02, features=names)
    fitting = Fitting(targets([some_labels(600)], JCT), (16, 8), recipe, 0)
    while not fitting.is_done:
        quality = fitting.run_epoch()
    assert quality.gain < -1.6
    network = fitting.network()
    assert network.features == names
    rows = np.zeros((3, len(FEATURES)))
    rows[:, SECONDS] = [-1.5, 0, 1.5]
    rows[1, PLANNED] = 1
    low, middle, high = predicted(network, rows)
    assert low - middle == pytest.approx(-np.log(3), abs=0.25)
    assert high - middle == pytest.approx(np.log(3), abs=0.25)


def test_a_feature_that_does_not_exist_cannot_be_fitted_on():
    with pytest.raises(ValueError, match="not in tuple"):
        Fitting(targets([some_labels(5)], JCT), (4, 2), FitSettings(features=("colour",)), 0)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    labels = some_labels(80)
    one, again, other = (flat(fitted(labels, 3, seed)[0].network()) for seed in (1, 1, 2))
    assert one.tobytes() == again.tobytes() != other.tobytes()


def test_a_fit_that_is_put_down_and_taken_up_ends_the_same():
    labels = some_labels(80)
    whole = fitted(labels, epochs=5)[0]
    data, recipe = targets([labels], JCT), FitSettings(epochs=5, batch=64, rate=0.02)
    begun = Fitting(data, (16, 8), recipe, 0)
    begun.run_epoch()
    begun.run_epoch()
    rest = Fitting(data, (16, 8), recipe, 0)
    rest.restore(begun.arrays())
    assert rest.epoch == 2
    while not rest.is_done:
        rest.run_epoch()
    assert flat(rest.network()).tobytes() == flat(whole.network()).tobytes()


def test_a_single_state_can_be_fitted():
    network = fitted(some_labels(1), epochs=2)[0].network()
    assert np.isfinite(flat(network)).all()
