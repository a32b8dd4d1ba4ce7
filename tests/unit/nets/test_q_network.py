"""The compiled network beside numpy and torch."""

from itertools import pairwise

import numpy as np
import pytest

from adlro.features import start_kernel
from adlro.features.start_kernel import FEATURES, MOST_CHOICES, Choices
from adlro.nets.q_network import (
    MOST_MEMBERS,
    MOST_UNITS,
    UNITS,
    Network,
    choose,
    flat,
    predict,
    scratch_size,
)
from tests.trained import together

SIZES = [(1, 1), (6, 5), (32, 16), (64, 32), (MOST_UNITS, MOST_UNITS)]
DRAIN_ALONE = (0, 0, 0, 1.0, 0.0, 0, 1, 0)  # params: no features, no units, one member, no caution
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


def of_members(net, x):
    """Predictions of the members [N, E]; the scratch is full of rubbish."""
    params, found = flat(net), []
    for row in x:
        scratch = np.full(UNITS, 9e9)
        predict(row, params, scratch)
        found.append(scratch[: net.members])
    return np.array(found)


def compiled(net, x):
    """Predictions [N] of a network of one member."""
    return of_members(net, x)[:, 0]


def in_numpy(net, x):
    own = x[:, [FEATURES.index(name) for name in net.features]]
    if net.bounds is not None:
        own = np.clip(own, *net.bounds)
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
    x, found, scratch = inputs(np.random.default_rng(7), 20), [], np.zeros(UNITS)
    for row in x:
        predict(row, np.array(DRAIN_ALONE), scratch)
        found.append(scratch[0])
    assert found == x[:, FEATURES.index("drain")].tolist()


def test_flat_params_hold_sizes_residual_kinds_members_columns_bounds_and_weights():
    net = network(np.random.default_rng(8), (3, 2), ("seconds", "wait"))
    params = flat(net._replace(bounds=np.array([[-1.0, 0], [2, 1]]), caution=0.5))
    assert params[:3].tolist() == [2, 3, 2]
    assert params[3:5].tolist() == net.residual.tolist()
    assert params[5:8].tolist() == [0, 1, 0.5]
    assert params[8:10].tolist() == [FEATURES.index("seconds"), FEATURES.index("wait")]
    assert params[10:14].tolist() == [-1, 0, 2, 1]
    assert len(params) == 8 + 2 + 2 * 2 + 2 * 3 + 3 + 3 * 2 + 2 + 2
    assert params[-2:].tolist() == net.last.tolist()


def test_a_feature_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="colour"):
        flat(network(np.random.default_rng(9), (3, 2), ("seconds", "colour")))


def test_more_units_than_there_is_scratch_for_are_refused():
    with pytest.raises(ValueError, match=f"at most {MOST_UNITS} units, not {MOST_UNITS + 1}"):
        flat(network(np.random.default_rng(9), (3, MOST_UNITS + 1)))


def chosen(drains, planned, *, may_wait=True, params=DRAIN_ALONE, seconds=0.0):
    """What is taken of choices with these features `drain` and `seconds`."""
    features = np.zeros((MOST_CHOICES, len(FEATURES)))
    features[: len(drains), FEATURES.index("drain")] = drains
    features[: len(drains), FEATURES.index("seconds")] = seconds
    empty = np.zeros(MOST_CHOICES)
    choices = Choices(len(drains), planned, 1.0, empty, empty, empty, empty, features)
    return choose(choices, may_wait, np.array(params), np.full(UNITS, 9e9))


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
    assert scratch_size(16, 3) == start_kernel.scratch_size(16, 3) + UNITS


# Several members.


def members(count, sizes=(6, 5), seed=20):
    """Networks that share a residual, as members do."""
    rng = np.random.default_rng(seed)
    nets = [network(rng, sizes) for _ in range(count)]
    return [net._replace(residual=nets[0].residual) for net in nets]


@pytest.mark.parametrize("sizes", [(1, 1), (6, 5), (MOST_UNITS, MOST_UNITS)])
def test_each_member_predicts_what_it_would_predict_alone(sizes):
    nets, x = members(3, sizes), inputs(np.random.default_rng(21), 20)
    found, scale = of_members(together(*nets), x), np.abs(compiled(nets[0], x)).max()
    expected = np.stack([compiled(net, x) for net in nets], axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-12 * scale)
    np.testing.assert_allclose(
        found.mean(axis=1), np.mean([in_numpy(net, x) for net in nets], axis=0), atol=1e-11 * scale
    )


def test_as_many_members_as_there_is_scratch_for_are_told_apart_and_more_are_refused():
    nets, x = members(MOST_MEMBERS + 1, (2, 3)), inputs(np.random.default_rng(22), 5)
    whole = together(*nets[:-1])
    assert (whole.members, whole.hidden) == (MOST_MEMBERS, (2, 3))
    expected = np.stack([compiled(net, x) for net in nets[:-1]], axis=1)
    np.testing.assert_allclose(of_members(whole, x), expected, atol=1e-12)
    with pytest.raises(ValueError, match=f"at most {MOST_MEMBERS} members, not {MOST_MEMBERS + 1}"):
        flat(together(*nets))


def test_the_units_of_a_member_are_limited_not_those_of_all_together():
    flat(together(*members(2, (MOST_UNITS, 1))))
    with pytest.raises(ValueError, match=f"at most {MOST_UNITS} units, not {MOST_UNITS + 1}"):
        flat(together(*members(2, (1, MOST_UNITS + 1))))


def slopes(*factors, caution=0.0, offset=0.0):
    """Params of one member for each factor: it predicts drain + factor x (seconds + offset).

    The offset is that of the last member; it is 0 for the others.
    """
    one, zero = np.ones((1, 1)), np.zeros(1)
    nets = [
        Network(("seconds",), np.array([1.0, 0]), one, zero, one, zero, one[0] * factor)
        for factor in factors
    ]
    net = together(*nets, caution=caution)
    net.second_bias[-1] = offset
    return flat(net)


@pytest.mark.parametrize(("caution", "taken"), [(0.0, 1), (1.0, 1), (1.9, 1), (2.1, 0), (100.0, 0)])
def test_the_less_members_agree_the_more_a_choice_must_promise(caution, taken):
    # Drain costs of 0 and 1, seconds of 0 and 2: the members predict 0 and 1 - 2 = -1, 0 and
    # 1 - 4 = -3. The second choice scores -2 + caution x 1, the first, which is the base, 0.
    params = slopes(-1, -2, caution=caution)
    assert chosen([0, 1], 0, params=params, seconds=[0, 2]) == taken


def test_members_that_agree_on_the_difference_agree_however_much_they_differ_otherwise():
    # As above, but both members see the same advantage of 1; one is 50 below the other.
    params = slopes(-1, -1, caution=100.0, offset=50.0)
    assert chosen([0, 1], 0, params=params, seconds=[0, 2]) == 1


@pytest.mark.parametrize(
    ("drains", "planned", "may_wait", "taken"),
    [
        ([2, 1, 3], 2, True, 1),  # the smallest residual
        ([1, 1, 1], 2, True, 2),  # of equals Min-Min's
        ([1, 2, 2], 0, True, 0),
        ([1, 2, 3], 0, False, 1),  # waiting only if it is allowed
        ([1, 2, 2], 2, False, 2),
    ],
)
def test_members_that_disagree_wildly_leave_the_choice_to_the_residual(
    drains, planned, may_wait, taken
):
    params = slopes(-5, 1, caution=1e6)
    seconds = np.arange(1.0, 4.0)
    assert chosen(drains, planned, may_wait=may_wait, params=params, seconds=seconds) == taken
    without = slopes(-5, 1)  # mean: drain - 2 x seconds
    assert chosen(drains, planned, may_wait=may_wait, params=without, seconds=seconds) == 2


def test_without_caution_the_smallest_mean_of_the_members_wins():
    rng = np.random.default_rng(23)
    for _ in range(20):
        net, x = together(*members(3, seed=rng.integers(10**6))), inputs(rng, MOST_CHOICES)
        empty = np.zeros(MOST_CHOICES)
        choices = Choices(MOST_CHOICES, 3, 1.0, empty, empty, empty, empty, x)
        taken = choose(choices, True, flat(net), np.full(UNITS, 9e9))
        assert taken == of_members(net, x).mean(axis=1).argmin()


# Clamped inputs.


def test_inputs_outside_the_bounds_count_as_the_bound():
    rng = np.random.default_rng(30)
    free, x = network(rng, (6, 5), ("seconds", "wait", "free")), 5 * inputs(rng, 40)
    net = free._replace(bounds=np.array([[-1.0, 0, -2], [2, 0.5, 3]]))
    np.testing.assert_allclose(compiled(net, x), in_numpy(net, x), atol=1e-11)
    assert not np.allclose(compiled(net, x), compiled(free, x))
    columns = [FEATURES.index(name) for name in net.features]
    held = x.copy()
    held[:, columns] = np.clip(x[:, columns], *net.bounds)
    assert compiled(net, held).tolist() == compiled(net, x).tolist()
    np.testing.assert_allclose(compiled(free, held), compiled(net, x), atol=1e-12)


def test_the_residual_is_not_clamped():
    # The network sees 1 instead of 90, whatever the residual of 2 x 90 + 3 x 40 is.
    net = network(np.random.default_rng(31), (6, 5), ("drain", "drain_log"))
    net = net._replace(residual=np.array([2.0, 3.0]), bounds=np.array([[-1.0, -1], [1, 1]]))
    x = np.zeros((2, len(FEATURES)))
    x[:, [FEATURES.index("drain"), FEATURES.index("drain_log")]] = [[1, 1], [90, 40]]
    at_the_bound, far = compiled(net, x)
    assert far - at_the_bound == pytest.approx(2 * 89 + 3 * 39, rel=1e-12)


def test_members_share_the_bounds():
    bounds = np.tile([[-0.5], [0.5]], len(FEATURES))
    nets, x = members(2), inputs(np.random.default_rng(32), 10)
    found = of_members(together(*nets)._replace(bounds=bounds), x)
    expected = [compiled(net._replace(bounds=bounds), x) for net in nets]
    np.testing.assert_allclose(found, np.stack(expected, axis=1), atol=1e-12)
