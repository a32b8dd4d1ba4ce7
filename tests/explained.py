"""Decisions of small worlds to explain, and learned policies with known scores."""

from __future__ import annotations

import numpy as np

from adlro.evaluate.explanation import DecisionQuery, find
from adlro.nets.q_network import Network, flat
from adlro.policies import adlro, registry
from adlro.policies.registry import Policy
from tests.worlds import job, nodes

TWO = [nodes("V100", 2)]
FAST_AND_SLOW = [nodes("V100"), nodes("T4")]
# Job 0 runs on the V100 until 40. Job 1 would end there at 140, on the free T4 at 310.
WAITS = [job(0, 40, 999), job(0, 100, 310)]


def learned(world, network) -> Policy:
    """The learned policy with the given network."""
    memory = adlro.memory(world.setting)
    return Policy("toy", adlro.decide, flat(network), memory, None, 1, False)


def without_layers(plain: float, squeezed: float) -> Network:
    """A network with layers of zeros: a weighted sum of the drain difference and its symlog."""
    nothing = (np.zeros(shape) for shape in ((0, 1), 1, (1, 1), 1, 1))
    return Network((), np.array([plain, squeezed]), *nothing)


def by_drain(world) -> Policy:
    """A learned policy whose score is the symlog of the drain difference."""
    return learned(world, without_layers(0.0, 1.0))


def summing(**weights: float) -> Network:
    """A network whose score is the positive part of a weighted sum of features."""
    rows, square, one = np.array(list(weights.values()))[:, None], np.ones((1, 1)), np.ones(1)
    return Network(tuple(weights), np.zeros(2), rows, 0 * one, square, 0 * one, one)


def found(world, policy, **query):
    """Find a decision of a world under a policy (or its name); `query` as in DecisionQuery."""
    ready = registry.load(policy, world.setting) if isinstance(policy, str) else policy
    return find(world.setting, world.workload, ready, 0, DecisionQuery(**query))
