"""Inference of the Q-network in compiled code: the predicted cost Q of a choice, from its features.

Q is the sum of a residual (two features of the drain cost, each times a weight) and the output of a
network with two hidden layers. Costs are in the unit of the training (train/fit.py; of the shipped
weights it is tau), compressed by symlog (see features/plan_kernel.py). The network evaluates one
choice at a time, so it works for any number of jobs and pools. Its inputs are clamped to the ranges
that they had in training, if it has ranges.

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
from adlro.features.start_kernel import (
    DRAIN,
    DRAIN_LOG,
    FEATURES,
    KINDS,
    MOST_CHOICES,
    Choices,
    kinds_of,
)
from adlro.model.state import Floats

MOST_UNITS = 128  # of a hidden layer of one member
MOST_MEMBERS = 8
_HEAD = 8  # numbers before the list of features
ASKED = 5  # index in the head of the requested kinds of features, see kinds_of
MEMBERS, _CAUTION = 6, 7  # indices in the head
_UNBOUNDED = 1e300  # no input is larger
_MOST_INPUTS = 128
_GROUP = 4  # rows of weights that are added up at once
_TERMS = max(_MOST_INPUTS, MOST_UNITS) + _GROUP - 1
# Scratch of `predict` and `choose`, see `_split`; the outputs come first.
UNITS = (
    2 * MOST_MEMBERS + MOST_CHOICES + _MOST_INPUTS + 2 * _TERMS
    + MOST_UNITS * (2 * MOST_MEMBERS + 1)
)  # fmt: skip

Norm = Any  # telemetry.normalise.Norm, which this layer does not import


class _Scratch(NamedTuple):
    """Numbers that `predict` and `choose` compute; T is the units of the first layer."""

    outputs: Floats  # [MOST_MEMBERS] for the choice evaluated last
    usual: Floats  # [MOST_MEMBERS] outputs for the base choice
    scores: Floats  # [MOST_CHOICES]
    base: Floats  # [_MOST_INPUTS] inputs that base_sums were computed from
    base_sums: Floats  # [T] weighted sums of the first layer for the inputs `base`
    sums: Floats  # [T] weighted sums of the first layer for the choice evaluated last
    second: Floats  # [MOST_UNITS] weighted sums of the second layer of one member
    factors: Floats  # [_TERMS] of a weighted sum of rows
    rows: Floats  # [_TERMS] the rows


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
    if len(network.features) > _MOST_INPUTS:
        raise ValueError(f"a network has at most {_MOST_INPUTS} inputs")
    columns = [known.index(name) for name in network.features]
    bounds = np.full((2, len(columns)), _UNBOUNDED) * [[-1.0], [1.0]]
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
def _split(total: int, scratch: Floats) -> _Scratch:
    """Divide the scratch [UNITS]; total: units of the first layer of all members."""
    e, c, n, t = MOST_MEMBERS, MOST_CHOICES, _MOST_INPUTS, _TERMS
    outputs, usual, rest = scratch[:e], scratch[e : 2 * e], scratch[2 * e :]
    scores, base, rest = rest[:c], rest[c : c + n], rest[c + n :]
    factors, rows, rest = rest[:t], rest[t : 2 * t], rest[2 * t :]
    base_sums, sums, second = rest[:total], rest[total : 2 * total], rest[2 * total :]
    return _Scratch(outputs, usual, scores, base, base_sums, sums, second, factors, rows)


@njit
def _add_rows(count: int, own: _Scratch, weights: Floats, sums: Floats) -> None:
    """Add the first `count` of own.rows of the weights to `sums` [W], each times its factor.

    weights: rows of W numbers. Four rows at a time, so that the sums are read and written less.
    """
    factors, rows, width = own.factors, own.rows, len(sums)
    for i in range(count, count + _GROUP - 1):
        factors[i], rows[i] = 0.0, 0.0
    for i in range(0, count, _GROUP):
        a, b, c, d = factors[i], factors[i + 1], factors[i + 2], factors[i + 3]
        at_a, at_b = int(rows[i]) * width, int(rows[i + 1]) * width
        at_c, at_d = int(rows[i + 2]) * width, int(rows[i + 3]) * width
        row_a, row_b = weights[at_a : at_a + width], weights[at_b : at_b + width]
        row_c, row_d = weights[at_c : at_c + width], weights[at_d : at_d + width]
        for k in range(width):
            sums[k] += a * row_a[k] + b * row_b[k] + (c * row_c[k] + d * row_d[k])


@njit
def _begin(params: Floats, own: _Scratch) -> None:
    """Write the inputs and sums of the first layer that `_predict` starts from: 0, and the bias."""
    count, total = int(params[0]), len(own.sums)
    bias = params[_HEAD + (3 + total) * count :]
    for i in range(count):
        own.base[i] = 0.0
    for k in range(total):
        own.base_sums[k] = bias[k]


@njit
def _predict(x: Floats, params: Floats, own: _Scratch) -> None:
    """Write the cost of a choice that each member predicts to own.outputs.

    Only inputs other than own.base are multiplied by weights: choices have many in common.
    """
    count, units, more = int(params[0]), int(params[1]), int(params[2])
    members, total, rest = int(params[MEMBERS]), len(own.sums), params[_HEAD:]
    columns, low, high = rest[:count], rest[count : 2 * count], rest[2 * count : 3 * count]
    weights = rest[3 * count :]
    factors, rows, terms = own.factors, own.rows, 0
    for i in range(count):
        factor = min(max(x[int(columns[i])], low[i]), high[i]) - own.base[i]
        factors[terms], rows[terms] = factor, i
        terms += factor != 0.0
    for k in range(total):
        own.sums[k] = own.base_sums[k]
    _add_rows(terms, own, weights, own.sums)
    weights, second = weights[(count + 1) * total :], own.second[:more]
    biases, last = weights[total * more :], weights[(total + members) * more :]
    residual: float = params[3] * x[DRAIN] + params[4] * x[DRAIN_LOG]
    for e in range(members):
        hidden, terms, cost = own.sums[e * units : (e + 1) * units], 0, residual
        for i in range(units):
            factors[terms], rows[terms] = hidden[i], i
            terms += not hidden[i] <= 0.0
        for k in range(more):
            second[k] = biases[e * more + k]
        _add_rows(terms, own, weights[e * units * more :], second)
        for k in range(more):
            cost += max(second[k], 0.0) * last[e * more + k]
        own.outputs[e] = cost


@njit
def predict(x: Floats, params: Floats, scratch: Floats) -> None:
    """Write the cost of a choice that each member predicts to the first E numbers of scratch.

    x [FEATURES]: the features of the choice; its inputs are clamped here. scratch [UNITS].
    """
    own = _split(int(params[1]) * int(params[MEMBERS]), scratch)
    _begin(params, own)
    _predict(x, params, own)


@njit
def _keep_as_base(x: Floats, params: Floats, own: _Scratch) -> None:
    """Let `_predict` start from the choice evaluated last, x, and `_score` compare with it."""
    rest, count = params[_HEAD:], int(params[0])
    for i in range(count):
        own.base[i] = min(max(x[int(rest[i])], rest[count + i]), rest[2 * count + i])
    for k in range(len(own.sums)):
        own.base_sums[k] = own.sums[k]
    for e in range(MOST_MEMBERS):
        own.usual[e] = own.outputs[e] if params[_CAUTION] > 0.0 else 0.0


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
def _score(params: Floats, own: _Scratch) -> float:
    """Return the score of the choice evaluated last."""
    members, caution, mean, spread = int(params[MEMBERS]), params[_CAUTION], 0.0, 0.0
    for e in range(members):
        mean += own.outputs[e] - own.usual[e]
    mean /= members
    if caution > 0.0:
        for e in range(members):
            spread += (own.outputs[e] - own.usual[e] - mean) ** 2
        spread = np.sqrt(spread / members)
    score: float = mean + caution * spread
    return score


@njit
def choose(choices: Choices, may_wait: bool, params: Floats, scratch: Floats) -> int:
    """Return the index of the choice with the smallest score.

    Ties go to Min-Min's choice, then to the first. If every score is NaN, Min-Min's choice is taken
    (or the first start, if Min-Min would wait and may_wait is False). scratch [UNITS].
    """
    least = 0 if may_wait else 1
    if choices.count == least + 1:
        return least
    own = _split(int(params[1]) * int(params[MEMBERS]), scratch)
    base = _base(choices, least, params)
    _begin(params, own)
    # The base choice comes first. A single loop, because `_predict` is inlined and large.
    for n in range(least - 1, choices.count):
        is_first = n < least
        if n == base and not is_first:
            continue
        i = base if is_first else n
        _predict(choices.features[i], params, own)
        if is_first:
            _keep_as_base(choices.features[i], params, own)
        own.scores[i] = _score(params, own)
    best, taken = np.inf, max(choices.planned, least)
    for i in range(least, choices.count):
        score = own.scores[i]
        if score < best or (score == best and i == choices.planned):
            best, taken = score, i
    return taken
