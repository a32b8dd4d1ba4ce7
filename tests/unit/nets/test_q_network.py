"""The compiled network beside numpy and torch."""

from itertools import pairwise

import numpy as np
import pytest

from adlro.features import start_kernel
from adlro.features.start_kernel import FEATURES, MOST_CHOICES, Choices
from adlro.nets.q_network import MOST_UNITS, Network, choose, flat, predict, scratch_size

SIZES = [(1, 1), (6, 5), (32, 16), (64, 32), (MOST_UNITS, MOST_UNITS)]
EVERY_SIZE = pytest.mark.parametrize("sizes", SIZES)


def network(rng, sizes, features=FEATURES, scale=0.5):
    units, more = sizes
    shapes = [2, (len(features), units), units, (units, more), more, more]
    return Network(tuple(features), *(scale * rng.standard_normal(shape) for shape in shapes))


def inputs(rng, count):
    """Features of some choices; a third of the numbers is 0, as in practice."""
    return rng.standard_normal((count, len(FEATURES))) * (
        rng.random((count, len(FEATURES))) > 1 / 3
    )


def compiled(net, x):
    """Predictions [N]; the scratch is full of rubbish."""
    first, second = np.full(MOST_UNITS, 9e9), np.full(MOST_UNITS, -9e9)
    params = flat(net)
    return np.array([predict(row, params, first, second) for row in x])


def in_numpy(net, x):
    own = x[:, [FEATURES.index(name) for name in net.features]]
    hidden = np.maximum(own @ net.first + net.first_bias, 0)
    hidden = np.maximum(hidden @ net.second + net.second_bias, 0)
    drain = x[:, [FEATURES.index("drain"), FEATURES.index("drain_log")]]
    return drain @ net.residual + hidden @ net.last


@EVERY_SIZE
def test_predictions_are_those_of_numpy(sizes):
    rng = np.random.default_rng(sizes[0])
    net, x = network(rng, sizes), inputs(rng, 50)
    expected = in_numpy(net, x)
    np.testing.assert_allclose(compiled(net, x), expected, atol=1e-12 * np.abs(expected).max())


@EVERY_SIZE
def test_predictions_are_those_of_torch_to_1e_5(sizes):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(100 + sizes[0])
    net, x = network(rng, sizes, scale=0.2), inputs(rng, 50)
    layers = (len(FEATURES), *sizes, 1)
    linear = [torch.nn.Linear(a, b) for a, b in pairwise(layers)]
    weights = (net.first, net.second, net.last[:, None])
    biases = (net.first_bias, net.second_bias, np.zeros(1))
    with torch.no_grad():
        for layer, weight, bias in zip(linear, weights, biases, strict=True):
            layer.weight.copy_(torch.tensor(weight.T))
            layer.bias.copy_(torch.tensor(bias))
        relu = torch.nn.ReLU()
        model = torch.nn.Sequential(linear[0], relu, linear[1], relu, linear[2])
        found = model(torch.tensor(x, dtype=torch.float32))[:, 0].numpy()
    drain = x[:, [FEATURES.index("drain"), FEATURES.index("drain_log")]] @ net.residual
    expected = found + drain
    scale = max(np.abs(expected).max(), 1.0)
    np.testing.assert_allclose(compiled(net, x), expected, atol=1e-5 * scale)


def test_features_are_known_by_name_whatever_their_order():
    rng = np.random.default_rng(5)
    net, x = network(rng, (6, 5)), inputs(rng, 20)
    order = rng.permutation(len(FEATURES))
    moved = net._replace(features=tuple(FEATURES[k] for k in order), first=net.first[order])
    np.testing.assert_allclose(compiled(moved, x), compiled(net, x), atol=1e-12)


def test_a_feature_that_a_network_does_not_name_does_not_matter_to_it():
    rng = np.random.default_rng(6)
    net, x = network(rng, (6, 5), FEATURES[8:20]), inputs(rng, 20)
    other = x.copy()
    other[:, 20:] = rng.standard_normal(other[:, 20:].shape)
    before = compiled(net, x)
    assert compiled(net, other).tolist() == before.tolist()
    other[:, 10] += 1
    assert compiled(net, other).tolist() != before.tolist()


def test_the_drain_cost_alone_is_a_network_too():
    # No features and no units; 1 and 0 are the weights of the residual.
    x = inputs(np.random.default_rng(7), 20)
    scratch = np.zeros(MOST_UNITS), np.zeros(MOST_UNITS)
    found = [predict(row, np.array([0, 0, 0, 1.0, 0.0]), *scratch) for row in x]
    assert found == x[:, FEATURES.index("drain")].tolist()


def test_flat_params_hold_sizes_residual_kinds_columns_and_weights():
    net = network(np.random.default_rng(8), (3, 2), ("seconds", "wait"))
    params = flat(net)
    assert params[:3].tolist() == [2, 3, 2]
    assert params[3:5].tolist() == net.residual.tolist()
    assert params[5:8].tolist() == [0, FEATURES.index("seconds"), FEATURES.index("wait")]
    assert len(params) == 6 + 2 + 2 * 3 + 3 + 3 * 2 + 2 + 2
    assert params[-2:].tolist() == net.last.tolist()


def test_a_feature_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="colour"):
        flat(network(np.random.default_rng(9), (3, 2), ("seconds", "colour")))


def test_more_units_than_there_is_scratch_for_are_refused():
    with pytest.raises(ValueError, match=f"at most {MOST_UNITS} units, not {MOST_UNITS + 1}"):
        flat(network(np.random.default_rng(9), (3, MOST_UNITS + 1)))


def chosen(drains, planned, *, may_wait=True, params=(0, 0, 0, 1.0, 0.0)):
    """What is taken of choices that differ in `drain` alone, by drain."""
    features = np.zeros((MOST_CHOICES, len(FEATURES)))
    features[: len(drains), FEATURES.index("drain")] = drains
    empty = np.zeros(MOST_CHOICES)
    choices = Choices(len(drains), planned, 1.0, empty, empty, empty, empty, features)
    return choose(choices, may_wait, np.array(params), np.zeros(2 * MOST_UNITS))


@pytest.mark.parametrize(
    ("drains", "planned", "may_wait", "taken"),
    [
        ([3, 1, 2], 2, True, 1),  # the smallest
        ([0, 1, 2], 2, True, 0),  # to wait, if that is it
        ([0, 1, 2], 2, False, 1),  # and is allowed
        ([1, 1, 1], 2, True, 2),  # of equals Min-Min's
        ([1, 1, 1], 0, False, 1),  # then the first
        ([2, 1, 1], 0, True, 1),
        ([5, 4, 3, 3], 3, True, 3),
        ([np.nan, np.nan, np.nan], 1, True, 1),  # no number at all: Min-Min's
        ([np.inf, np.inf, np.inf], 0, False, 1),  # that is allowed
        ([np.nan, np.nan, 7], 1, True, 2),  # but a number before none
    ],
)
def test_the_smallest_prediction_wins_and_ties_go_to_min_min(drains, planned, may_wait, taken):
    assert chosen(drains, planned, may_wait=may_wait) == taken


def test_there_is_scratch_for_the_widest_network_and_a_look():
    assert scratch_size(16, 3) == start_kernel.scratch_size(16, 3) + 2 * MOST_UNITS
