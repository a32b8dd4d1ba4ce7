"""Inference of the Q-network in compiled code: the predicted cost Q of a choice, from its features.

Q is the sum of a residual (two features of the drain cost, each times a weight) and the output of a
network with two hidden layers. Costs are in units of tau, compressed by symlog (see
features/plan_kernel.py). The choice with the smallest Q is taken. The network evaluates one choice
at a time, so it works for any number of jobs and pools.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from adlro.compiled import njit
from adlro.features import start_kernel
from adlro.features.start_kernel import DRAIN, DRAIN_LOG, FEATURES, KINDS, Choices, kinds_of
from adlro.model.state import Floats

MOST_UNITS = 128  # of a hidden layer
_HEAD = 6  # numbers before the list of features
ASKED = 5  # index in the head of the requested kinds of features, see kinds_of

Norm = Any  # telemetry.normalise.Norm, which this layer does not import


class Network(NamedTuple):
    """Weights of the Q-network: F features, hidden layers of H1 and H2 units, one output."""

    features: tuple[str, ...]  # F names
    residual: Floats  # [2] weights of the plain and of the log drain difference
    first: Floats  # [F, H1]
    first_bias: Floats  # [H1]
    second: Floats  # [H1, H2]
    second_bias: Floats  # [H2]
    last: Floats  # [H2]
    norm: Norm | None = None  # the bounds of telemetry readings, if it reads telemetry

    @property
    def weights(self) -> tuple[Floats, ...]:
        """The arrays of weights and biases, from first to last."""
        return self[2:7]

    @property
    def reads_telemetry(self) -> bool:
        """True if one of the network's features is a telemetry feature."""
        return bool(set(self.features).intersection(KINDS["telemetry"]))


def flat(network: Network, known: tuple[str, ...] = FEATURES) -> Floats:
    """Return the params of decide: a network as one flat array.

    It holds the sizes, the residual, the kinds of features (see `kinds_of`), their columns and the
    weights.

    Args:
        network: the weights.
        known: the names of all features that the policy computes, in the order of their columns.

    Raises:
        ValueError: a feature does not exist, or a layer is too wide for the scratch.
    """
    unknown = [name for name in network.features if name not in known]
    if unknown:
        raise ValueError(f"there is no feature {unknown[0]!r}")
    widest = max(len(network.first_bias), len(network.second_bias))
    if widest > MOST_UNITS:
        raise ValueError(f"a layer has at most {MOST_UNITS} units, not {widest}")
    columns = [known.index(name) for name in network.features]
    sizes = (len(columns), network.first.shape[1], network.second.shape[1])
    weights = (array.ravel() for array in network.weights)
    head = [sizes, network.residual, [kinds_of(network.features)]]
    return np.concatenate([*head, columns, *weights]).astype(np.float64)


def scratch_size(gpus: int, pools: int) -> int:
    """Return the length of the scratch for `describe_choices` and the hidden layers together."""
    return 2 * MOST_UNITS + start_kernel.scratch_size(gpus, pools)


@njit
def predict(  # noqa: C901  separate functions for the inner loops took a third longer
    x: Floats, params: Floats, first: Floats, second: Floats
) -> float:
    """Return the predicted cost of a choice.

    x [FEATURES]: the features of the choice; first, second [MOST_UNITS]: scratch.
    """
    count, units, more = int(params[0]), int(params[1]), int(params[2])
    columns, weights = params[_HEAD : _HEAD + count], params[_HEAD + count :]
    for k in range(units):
        first[k] = weights[count * units + k]
    for i in range(count):
        value = x[int(columns[i])]
        if value != 0.0:
            row = i * units
            for k in range(units):
                first[k] += value * weights[row + k]
    weights = weights[(count + 1) * units :]
    for k in range(more):
        second[k] = weights[units * more + k]
    for i in range(units):
        if first[i] > 0.0:
            value, row = first[i], i * more
            for k in range(more):
                second[k] += value * weights[row + k]
    weights = weights[(units + 1) * more :]
    cost: float = params[3] * x[DRAIN] + params[4] * x[DRAIN_LOG]
    for k in range(more):
        if second[k] > 0.0:
            cost += second[k] * weights[k]
    return cost


@njit
def choose(choices: Choices, may_wait: bool, params: Floats, scratch: Floats) -> int:
    """Return the index of the choice with the smallest predicted cost.

    Ties go to Min-Min's choice, then to the first. If every cost is NaN, Min-Min's choice is taken
    (or the first start, if Min-Min would wait and may_wait is False). scratch [2 * MOST_UNITS].
    """
    first, second = scratch[:MOST_UNITS], scratch[MOST_UNITS : 2 * MOST_UNITS]
    least = 0 if may_wait else 1
    best, taken = np.inf, max(choices.planned, least)
    for i in range(least, choices.count):
        cost = predict(choices.features[i], params, first, second)
        if cost < best or (cost == best and i == choices.planned):
            best, taken = cost, i
    return taken
