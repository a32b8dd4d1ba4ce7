"""Networks as vectors: those to begin with, and what moves when one is tuned."""

from __future__ import annotations

import numpy as np

from adlro.features.start_kernel import FEATURES, PLAIN, PLANNED
from adlro.model.state import Floats
from adlro.nets.q_network import Network
from adlro.policies import adlro
from adlro.policies.loading import telemetry_ranges
from adlro.policies.registry import LEARNED, Policy
from adlro.workloads.setting import Setting

_LEAST = 1e-12


def zeros(hidden: tuple[int, int], residual: tuple[float, float] = (0.0, 0.0)) -> Network:
    """A network that says 0, beside its residual."""
    first, second = hidden
    shapes = ((len(PLAIN), first), (first,), (first, second), (second,), (second,))
    return Network(PLAIN, np.array(residual), *(np.zeros(shape) for shape in shapes))


def like_min_min(hidden: tuple[int, int]) -> Network:
    """A network that always takes Min-Min's choice: what is kept until something is better."""
    network = zeros(hidden)
    network.first[PLANNED, 0] = network.second[0, 0] = 1.0
    network.last[0] = -1.0
    return network


def like_drain_argmin(hidden: tuple[int, int]) -> Network:
    """A network that takes the choice of the smallest drain cost."""
    return zeros(hidden, (1.0, 0.0))


def vector(network: Network) -> Floats:
    """All that can be tuned, one after the other."""
    return np.concatenate([array.ravel() for array in network.weights]).astype(np.float64)


def from_vector(network: Network, values: Floats) -> Network:
    """A network of the same sizes with other weights."""
    arrays, at = [], 0
    for array in network.weights:
        arrays.append(values[at : at + array.size].reshape(array.shape).copy())
        at += array.size
    return Network(network.features, network.residual, *arrays)._replace(norm=network.norm)


def scale(network: Network) -> Floats:
    """How far each weight moves: the rms of a feature's row, or of the whole array."""
    scales = []
    for name, array in network._asdict().items():
        if name in ("features", "residual", "norm"):
            continue
        axis = 1 if name == "first" else None
        rms = np.sqrt(np.mean(array**2, axis=axis, keepdims=True)) + _LEAST
        scales.append(np.broadcast_to(rms, array.shape).ravel())
    return np.concatenate(scales)


def policy(network: Network, setting: Setting) -> Policy:
    """A network made ready for a scenario."""
    return player(telemetry_ranges.params_of(network, setting.layout, FEATURES), setting)


def player(params: Floats, setting: Setting) -> Policy:
    """The same from the params of its decide."""
    memory: int = adlro.memory(setting)  # type: ignore[no-untyped-call]  # as of every policy
    return Policy(LEARNED, adlro.decide, params, memory, None, 0, False)
