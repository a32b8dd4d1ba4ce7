"""Inference of the paper's Q-network in compiled code: the value of every action in a state.

Backbone "cnn", the paper's: two 3 x 3 convolutions over the matrix of GPUs, whose outputs and the
rest of the observation feed one hidden layer and the output layer. Backbone "mlp": two hidden
layers over the observation. The weights fit one shape of cluster: see `Sizes`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.compiled import njit
from adlro.features.observation_kernel import Sizes
from adlro.model.state import Floats

_HEAD = 8  # numbers before the weights: sizes [5], channels, units of up to two hidden layers
_SIDE = 3  # of a filter


class PaperNetwork(NamedTuple):
    """Sizes and weights of the paper's Q-network; `shapes` lists the names of its arrays."""

    sizes: Sizes
    channels: int  # of both convolutions; 0 = none, "mlp"
    hidden: tuple[int, ...]  # units of the hidden layers, one or two
    arrays: dict[str, NDArray[Any]]  # of float32 or float64


def shapes(sizes: Sizes, channels: int, hidden: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of all arrays of a network, in order.

    A fully connected layer is [inputs, outputs]; a filter is [outputs, inputs, 3, 3].
    """
    found: dict[str, tuple[int, ...]] = {}
    width, cells = sizes.observation, sizes.rows * sizes.columns
    if channels:
        for name, before in (("first_filter", 1), ("second_filter", channels)):
            found[name] = (channels, before, _SIDE, _SIDE)
            found[f"{name}_bias"] = (channels,)
        width += (channels - 1) * cells
    for k, units in enumerate(hidden):
        found[f"hidden{k}"], found[f"hidden{k}_bias"] = (width, units), (units,)
        width = units
    found["values"], found["values_bias"] = (width, sizes.actions), (sizes.actions,)
    return found


def flat(network: PaperNetwork) -> Floats:
    """Return the params of decide: a network's sizes, then its weights, as one flat array.

    The weights are reordered so that all channels of a cell are adjacent.

    Raises:
        ValueError: an array has the wrong shape.
    """
    sizes, channels, hidden, arrays = network
    for name, shape in shapes(sizes, channels, hidden).items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has shape {arrays[name].shape}, not {shape}")
    parts = dict(arrays)
    if channels:
        for name in ("first_filter", "second_filter"):
            parts[name] = parts[name].transpose(2, 3, 1, 0)
        cells, first = sizes.rows * sizes.columns, parts["hidden0"]
        seen = first[: channels * cells].reshape(channels, cells, hidden[0]).transpose(1, 0, 2)
        parts["hidden0"] = np.concatenate([seen.reshape(-1, hidden[0]), first[channels * cells :]])
    units = (*hidden, 0)[:2]
    weights = (parts[name].ravel() for name in shapes(sizes, channels, hidden))
    return np.concatenate([[*sizes, channels, *units], *weights]).astype(np.float64)


def sizes_of(params: Floats) -> Sizes:
    """Return the sizes of cluster, job types and window that the params of decide are for."""
    return Sizes(*(int(value) for value in params[:5]))


def _widest(params: Floats) -> int:
    sizes, channels = sizes_of(params), max(int(params[5]), 1)
    return max(sizes.observation * channels, *(int(units) for units in params[6:_HEAD]))


def scratch_size(params: Floats) -> int:
    """Return the length of the scratch buffer that `values` needs."""
    return 2 * _widest(params)


@njit
def _layer(x: Floats, inputs: int, weights: Floats, outputs: int, is_last: bool, y: Floats) -> int:
    """Write the output of a fully connected layer to y; return the number of weights it has.

    Applies ReLU unless it is the last layer. Shapes: x [inputs], y [outputs].
    """
    for k in range(outputs):
        y[k] = weights[inputs * outputs + k]
    for i in range(inputs):
        value = x[i]
        if value != 0.0:
            row = i * outputs
            for k in range(outputs):
                y[k] += value * weights[row + k]
    if not is_last:
        for k in range(outputs):
            y[k] = max(y[k], 0.0)
    return (inputs + 1) * outputs


@njit
def _convolve(
    x: Floats, shape: tuple[int, int], inputs: int, weights: Floats, channels: int, y: Floats
) -> int:
    """Write a zero-padded 3 x 3 convolution of x, with ReLU, to y; return its number of weights.

    Shapes: x [rows, columns, inputs] and y [rows, columns, channels], both flat.
    """
    rows, columns = shape
    size = _SIDE * _SIDE * inputs * channels
    for cell in range(rows * columns):
        r, c = cell // columns, cell % columns
        to = y[cell * channels : (cell + 1) * channels]
        for k in range(channels):
            to[k] = weights[size + k]
        for place in range(_SIDE * _SIDE):
            near, beside = r + place // _SIDE - 1, c + place % _SIDE - 1
            if 0 <= near < rows and 0 <= beside < columns:
                for i in range(inputs):
                    value, row = x[(near * columns + beside) * inputs + i], place * inputs + i
                    for k in range(channels):
                        to[k] += value * weights[row * channels + k]
        for k in range(channels):
            to[k] = max(to[k], 0.0)
    return size + channels


@njit
def values(x: Floats, params: Floats, scratch: Floats, q: Floats) -> None:
    """Write the value of each of A actions to q [A], given an observation x of O numbers."""
    rows, columns, channels = int(params[0]), int(params[1]), int(params[5])
    units, more = int(params[6]), int(params[7])
    half, rest, at = len(scratch) // 2, params[_HEAD:], 0
    one, two = scratch[:half], scratch[half:]
    cells, width = rows * columns, len(x)
    if channels > 0:
        shape = (rows, columns)
        at += _convolve(x, shape, 1, rest[at:], channels, one)
        at += _convolve(one, shape, channels, rest[at:], channels, two)
        for i in range(cells, len(x)):
            two[cells * (channels - 1) + i] = x[i]
        width = cells * (channels - 1) + len(x)
    else:
        for i in range(width):
            two[i] = x[i]
    at += _layer(two, width, rest[at:], units, False, one)
    if more > 0:
        at += _layer(one, units, rest[at:], more, False, two)
        _layer(two, more, rest[at:], len(q), True, q)
    else:
        _layer(one, units, rest[at:], len(q), True, q)


@njit
def best(q: Floats, allowed: Floats) -> int:
    """Return the allowed action with the largest value; among equals the first.

    At least one must be allowed. If the value of the first allowed action is NaN, that action is
    returned; later NaNs are never chosen.
    """
    taken, most = -1, -np.inf
    for a in range(len(q)):
        if allowed[a] and (taken < 0 or q[a] > most):
            taken, most = a, q[a]
    return taken
