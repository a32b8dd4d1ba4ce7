"""Inference of the Q-network in compiled code: the predicted cost Q of a choice, from its features.

Q is the sum of a residual (two features of the drain cost, each times a weight) and the output of a
network with two hidden layers. Costs are in units of tau, compressed by symlog (see
features/plan_kernel.py). The network evaluates one choice at a time, so it works for any number of
jobs and pools. Its inputs are clamped to the ranges that they had in training, if it has ranges.

A network may have several members, trained on the same states from different initial weights. Where
they have seen enough they agree. A choice is scored by the mean of their advantages over the base
choice, the one with the smallest residual, plus `caution` times the standard deviation: the less
they agree, the more a deviation from the base choice must promise. The smallest score wins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from adlro.compiled import njit
from adlro.features import start_kernel
from adlro.features.start_kernel import DRAIN, DRAIN_LOG, FEATURES, KINDS, Choices, kinds_of
from adlro.model.state import Floats

MOST_UNITS = 128  # of a hidden layer of one member
MOST_MEMBERS = 8
_HEAD = 8  # numbers before the list of features
ASKED = 5  # index in the head of the requested kinds of features, see kinds_of
MEMBERS, _CAUTION = 6, 7  # indices in the head
# Scratch of `predict` and `choose`: outputs, units of both layers, outputs for the base choice.
UNITS = MOST_MEMBERS + MOST_UNITS * (MOST_MEMBERS + 1) + MOST_MEMBERS

Norm = Any  # telemetry.normalise.Norm, which this layer does not import


class Network(NamedTuple):
    """Weights of the Q-network: F features, E members, hidden layers of H1 and H2 units each.

    The units of a layer are ordered by member. Members do not share units: unit i of the first
    layer feeds the H2 units of its own member.
    """

    features: tuple[str, ...]  # F names
    residual: Floats  # [2] weights of the plain and of the log drain difference
    first: Floats  # [F, E * H1]
    first_bias: Floats  # [E * H1]
    second: Floats  # [E * H1, H2]
    second_bias: Floats  # [E * H2]
    last: Floats  # [E * H2]
    norm: Norm | None = None  # the bounds of telemetry readings, if it reads telemetry
    bounds: Floats | None = None  # [2, F] least and largest value of each input; None = any
    caution: float = 0.0  # factor on the disagreement of the members

    @property
    def weights(self) -> tuple[Floats, ...]:
        """The arrays of weights and biases, from first to last."""
        return self[2:7]

    @property
    def members(self) -> int:
        """Number of members, E."""
        units: int = self.second.shape[1]
        return len(self.last) // units

    @property
    def hidden(self) -> tuple[int, int]:
        """Units of the hidden layers of each member."""
        return len(self.first_bias) // self.members, self.second.shape[1]

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
    if max(network.hidden) > MOST_UNITS or network.members > MOST_MEMBERS:
        raise ValueError(
            f"a layer has at most {MOST_UNITS} units, not {max(network.hidden)}, and a network at "
            f"most {MOST_MEMBERS} members, not {network.members}"
        )
    columns = [known.index(name) for name in network.features]
    bounds = np.full((2, len(columns)), np.inf) * [[-1.0], [1.0]]
    if network.bounds is not None:
        bounds = network.bounds
    sizes = (len(columns), *network.hidden)
    kinds = kinds_of(network.features)
    head = [sizes, network.residual, [kinds, network.members, network.caution]]
    weights = (array.ravel() for array in network.weights)
    return np.concatenate([*head, columns, bounds.ravel(), *weights]).astype(np.float64)


def scratch_size(gpus: int, pools: int) -> int:
    """Return the length of the scratch for `describe_choices` and the networks together."""
    return UNITS + start_kernel.scratch_size(gpus, pools)


@njit
def predict(  # noqa: C901  separate functions for the inner loops took a third longer
    x: Floats, params: Floats, scratch: Floats
) -> None:
    """Write the cost of a choice that each member predicts to the first E numbers of scratch.

    x [FEATURES]: the features of the choice; its inputs are clamped here. scratch [UNITS].
    """
    count, units, more = int(params[0]), int(params[1]), int(params[2])
    members = int(params[MEMBERS])
    first, second = scratch[MOST_MEMBERS:], scratch[MOST_MEMBERS + MOST_UNITS * MOST_MEMBERS :]
    columns, low = params[_HEAD : _HEAD + count], params[_HEAD + count : _HEAD + 2 * count]
    high, weights = params[_HEAD + 2 * count : _HEAD + 3 * count], params[_HEAD + 3 * count :]
    residual: float = params[3] * x[DRAIN] + params[4] * x[DRAIN_LOG]
    total = units * members
    for k in range(total):
        first[k] = weights[count * total + k]
    for i in range(count):
        value = min(max(x[int(columns[i])], low[i]), high[i])
        if value != 0.0:
            row = i * total
            for k in range(total):
                first[k] += value * weights[row + k]
    weights = weights[(count + 1) * total :]
    biases = total * more
    for e in range(members):
        for k in range(more):
            second[k] = weights[biases + e * more + k]
        for i in range(e * units, (e + 1) * units):
            if first[i] > 0.0:
                value, row = first[i], i * more
                for k in range(more):
                    second[k] += value * weights[row + k]
        cost, at = residual, biases + (members + e) * more
        for k in range(more):
            if second[k] > 0.0:
                cost += second[k] * weights[at + k]
        scratch[e] = cost


@njit
def _base(choices: Choices, least: int, params: Floats) -> int:
    """Return the index of the choice with the smallest residual; ties go to Min-Min's choice."""
    best, taken = np.inf, max(choices.planned, least)
    for i in range(least, choices.count):
        x = choices.features[i]
        cost = params[3] * x[DRAIN] + params[4] * x[DRAIN_LOG]
        if cost < best or (cost == best and i == choices.planned):
            best, taken = cost, i
    return taken


@njit
def choose(choices: Choices, may_wait: bool, params: Floats, scratch: Floats) -> int:
    """Return the index of the choice with the smallest score.

    Ties go to Min-Min's choice, then to the first. If every score is NaN, Min-Min's choice is taken
    (or the first start, if Min-Min would wait and may_wait is False). scratch [UNITS].
    """
    least, members, caution = 0 if may_wait else 1, int(params[MEMBERS]), params[_CAUTION]
    usual = scratch[UNITS - MOST_MEMBERS :]
    for e in range(MOST_MEMBERS):
        usual[e] = 0.0
    if caution > 0.0:
        predict(choices.features[_base(choices, least, params)], params, scratch)
        for e in range(members):
            usual[e] = scratch[e]
    best, taken = np.inf, max(choices.planned, least)
    for i in range(least, choices.count):
        predict(choices.features[i], params, scratch)
        mean, spread = 0.0, 0.0
        for e in range(members):
            mean += scratch[e] - usual[e]
        mean /= members
        if caution > 0.0:
            for e in range(members):
                spread += (scratch[e] - usual[e] - mean) ** 2
            spread = np.sqrt(spread / members)
        score = mean + caution * spread
        if score < best or (score == best and i == choices.planned):
            best, taken = score, i
    return taken
