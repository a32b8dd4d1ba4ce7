"""Append the bounds of telemetry readings to the parameters of a learned policy.

telemetry/normalise.py computes the bounds of each GPU model, features/telemetry_kernel.py applies
them. This module puts the bounds of a cluster's GPU models behind the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from adlro.model.gpu import GpuModel
from adlro.model.state import Floats
from adlro.nets.q_network import Network, flat
from adlro.telemetry.normalise import Norm, bounds, empty


class Cluster(Protocol):
    """Anything that lists the GPU models of a cluster: a Layout, a Context."""

    @property
    def models(self) -> tuple[GpuModel, ...]:
        """The M GPU models, in the order of the columns of View.est."""


def ranges(norm: Norm | None, models: Sequence[GpuModel]) -> Floats:
    """Return the bounds [M * RANGES] of the telemetry readings of M GPU models.

    features/telemetry_kernel.py reads them. norm: the observed readings; None = there were none.
    """
    seen = empty() if norm is None else norm
    rows = [
        (
            *bounds(seen, model.name, "temperature"),
            *bounds(seen, model.name, "power"),
            model.peak_gb_s,
        )
        for model in models
    ]
    return np.array(rows, np.float64).ravel()


def params_of(network: Network, cluster: Cluster, known: tuple[str, ...]) -> Floats:
    """Return the params of a network's decide on a cluster.

    They are the weights, followed by the bounds of telemetry readings if the network reads them.

    Args:
        network: the weights.
        cluster: lists the GPU models.
        known: the features that the policy computes, in the order of their columns.
    """
    params = flat(network, known)
    if not network.reads_telemetry:
        return params
    return np.concatenate([params, ranges(network.norm, cluster.models)])
