"""Weights of networks: initial values, conversion to vectors for tuning, and to policies."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from adlro.features.pair_kernel import PAIR_FEATURES
from adlro.features.start_kernel import FEATURES, PLAIN, PLANNED
from adlro.model.state import Floats
from adlro.nets import paper_network
from adlro.nets.paper_network import PaperNetwork
from adlro.nets.q_network import Network, flat
from adlro.policies import adlro, adlro_preemptive, paper_dqn
from adlro.policies.loading import telemetry_ranges
from adlro.policies.registry import LEARNED, Policy
from adlro.workloads.setting import Setting

PREEMPTIVE = "adlro-preemptive"
_LEAST = 1e-12


def zeros(hidden: tuple[int, int], residual: tuple[float, float] = (0.0, 0.0)) -> Network:
    """Return a network whose weights are all 0, so that its output is its residual alone."""
    first, second = hidden
    shapes = ((len(PLAIN), first), (first,), (first, second), (second,), (second,))
    one, one_bias, two, two_bias, last = (np.zeros(shape) for shape in shapes)
    return Network(PLAIN, np.array(residual), one, one_bias, two, two_bias, last)


def like_min_min(hidden: tuple[int, int]) -> Network:
    """Return a network that always takes Min-Min's choice: the first candidate of a training."""
    network = zeros(hidden)
    network.first[PLANNED, 0] = network.second[0, 0] = 1.0
    network.last[0] = -1.0
    return network


def like_drain_argmin(hidden: tuple[int, int]) -> Network:
    """Return a network that takes the choice with the smallest drain cost."""
    return zeros(hidden, (1.0, 0.0))


def vector(network: Network) -> Floats:
    """Return all weights that can be tuned, in one array [D]."""
    return np.concatenate([array.ravel() for array in network.weights]).astype(np.float64)


def from_vector(network: Network, values: Floats) -> Network:
    """Return a copy of a network with the weights `values` [D]."""
    arrays, at = [], 0
    for array in network.weights:
        arrays.append(values[at : at + array.size].reshape(array.shape).copy())
        at += array.size
    first, first_bias, second, second_bias, last = arrays
    return network._replace(
        first=first, first_bias=first_bias, second=second, second_bias=second_bias, last=last
    )


def scale(network: Network) -> Floats:
    """Return the step size [D] of each weight.

    It is the rms of the feature's row in the first layer, and of the whole array elsewhere.
    """
    scales = []
    for k, array in enumerate(network.weights):
        axis = 1 if k == 0 else None
        rms = np.sqrt(np.mean(array**2, axis=axis, keepdims=True)) + _LEAST
        scales.append(np.broadcast_to(rms, array.shape).ravel())
    return np.concatenate(scales)


def policy(network: Network | PaperNetwork, setting: Setting) -> Policy:
    """Return the policy that decides by a network, prepared for a scenario."""
    module: ModuleType
    if isinstance(network, PaperNetwork):
        name, module, is_preemptive = paper_dqn.NAME, paper_dqn, False
        params = paper_network.flat(network)
    elif network.features == PAIR_FEATURES:
        name, module, is_preemptive = PREEMPTIVE, adlro_preemptive, True
        params = adlro_preemptive.params(setting, flat(network, PAIR_FEATURES))  # type: ignore[no-untyped-call]  # policies have one untyped signature
    else:
        name, module, is_preemptive = LEARNED, adlro, False
        params = telemetry_ranges.params_of(network, setting.layout, FEATURES)
    return Policy(
        name, module.decide, params, module.memory(setting, params), None, 0, is_preemptive
    )
