"""The paper's network, compiled: values worked out by hand, and shapes that must fit."""

import numpy as np
import pytest

from adlro.features.observation_kernel import Sizes
from adlro.nets.paper_network import (
    PaperNetwork,
    best,
    flat,
    scratch_size,
    shapes,
    sizes_of,
    values,
)

SMALL = Sizes(rows=1, columns=2, types=1, window=1, gpus=2)  # O = 2 + 1 + 2 = 5, A = 2


def zeros(sizes=SMALL, channels=0, hidden=(1, 1)):
    arrays = {name: np.zeros(shape) for name, shape in shapes(sizes, channels, hidden).items()}
    return PaperNetwork(sizes, channels, hidden, arrays)


def values_of(network, x):
    params, q = flat(network), np.full(network.sizes.actions, np.nan)
    values(np.array(x, np.float64), params, np.full(scratch_size(params), np.nan), q)
    return q.tolist()


def test_two_hidden_layers_by_hand():
    network = zeros(hidden=(2, 2))
    arrays = network.arrays
    arrays["hidden0"][:, 0], arrays["hidden0_bias"][:] = (1, 2, 3, 4, 5), (0.5, 1)
    arrays["hidden1"][:] = ((2, 0), (1, -1))
    arrays["values"][:], arrays["values_bias"][:] = ((1, -1), (9, 9)), (0.25, 0)
    # first: 0.5 + 1 * 1 + 3 * 0.5 + 5 * 1 = 8 and 1; second: 2 * 8 + 1 = 17 and -1, cut to 0
    assert values_of(network, [1, 0, 0.5, 0, 1]) == [17.25, -17.0]


def test_two_convolutions_by_hand():
    network = zeros(Sizes(2, 2, 1, 1, 4), channels=1, hidden=(1,))
    arrays = network.arrays
    arrays["first_filter"][0, 0, 1] = (0, 1, 10)  # itself, and ten times what is right of it
    arrays["second_filter"][0, 0, :, 1] = (0, 1, 100)  # itself, and 100 times what is below it
    arrays["second_filter_bias"][0] = 0.5
    arrays["hidden0"][:, 0] = (1, 0, 0, 0, 0, 0, 7)  # cell 0; and the one-hot type
    arrays["values"][0], arrays["values_bias"][3] = (1, 1, 1, 2), 1
    # matrix ((1, 2), (3, 4)): the first filter gives ((21, 2), (43, 4)); the second, in cell 0,
    # 21 + 100 * 43 + 0.5 = 4321.5; with the type 4321.5 + 7 = 4328.5
    found = values_of(network, [1, 2, 3, 4, 0.3, 0.9, 1])
    assert found == [4328.5, 4328.5, 4328.5, 8658.0]


def test_a_filter_sees_zeros_around_the_matrix():
    network = zeros(Sizes(1, 3, 1, 1, 3), channels=1, hidden=(1,))
    arrays = network.arrays
    arrays["first_filter"][:] = 1
    arrays["second_filter"][0, 0, 1, 1] = 1
    arrays["hidden0"][:3, 0] = (1, 10, 100)
    arrays["values"][:] = 1
    # rows ((1, 1, 1)): sums of the cell and its neighbours are 2, 3, 2
    assert values_of(network, [1, 1, 1, 0, 0, 0])[0] == 2 + 30 + 200


def test_channels_reach_the_hidden_layer_channel_by_channel():
    network = zeros(SMALL, channels=2, hidden=(1,))
    arrays = network.arrays
    arrays["first_filter"][:, 0, 1, 1] = (1, 2)
    arrays["second_filter"][0, 0, 1, 1] = arrays["second_filter"][1, 1, 1, 1] = 1
    arrays["hidden0"][:4, 0] = (1, 10, 100, 1000)  # of channel 0 both cells, then of channel 1
    arrays["values"][:] = 1
    # channel 0 is the matrix (1, 3), channel 1 twice that: 1 + 30 + 200 + 6000
    assert values_of(network, [1, 3, 0, 0, 0])[0] == 6231


def test_weights_of_another_shape_are_refused():
    network = zeros()
    network.arrays["values"] = np.zeros((1, 3))
    with pytest.raises(ValueError, match=r"^values has shape \(1, 3\), not \(1, 2\)$"):
        flat(network)


def test_the_params_tell_what_they_are_made_for():
    assert sizes_of(flat(zeros(Sizes(3, 4, 2, 8, 10)))) == Sizes(3, 4, 2, 8, 10)


@pytest.mark.parametrize(
    ("q", "allowed", "taken"),
    [
        ([1.0, 3.0, 2.0], [1, 1, 1], 1),
        ([1.0, 3.0, 2.0], [1, 0, 1], 2),
        ([2.0, 2.0, 2.0], [0, 1, 1], 1),
        ([-9.0, 0.0, 0.0], [1, 0, 0], 0),
        ([-np.inf, 5.0, 5.0], [1, 0, 0], 0),
        ([np.nan, 1.0, 0.0], [1, 1, 1], 0),
    ],
)
def test_the_best_allowed_action_is_taken_and_of_equals_the_first(q, allowed, taken):
    assert best(np.array(q), np.array(allowed, np.float64)) == taken
