"""The bounds of telemetry readings as part of a learned policy's parameters.

telemetry/normalise.py computes the bounds of each GPU model; features/telemetry_kernel.py applies
them. This module puts those of a cluster's models behind the weights.
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
        """[M], in the order of the columns of est."""


def ranges(norm: Norm | None, models: Sequence[GpuModel]) -> Floats:
    """[M * RANGES] as features/telemetry_kernel.py reads them; None = no reading was observed."""
    seen = empty() if norm is None else norm
    rows = [
        (
            *bounds(seen, model.name, "temperature"),
            *bounds(seen, model.name, "power"),
            model.bandwidth_gb_s,
        )
        for model in models
    ]
    return np.array(rows, np.float64).ravel()


def params_of(network: Network, cluster: Cluster, known: tuple[str, ...]) -> Floats:
    """The params of decide on a cluster: the weights, then the bounds if it reads telemetry.

    Args:
        network: the weights.
        cluster: lists the GPU models.
        known: the features that the policy computes, in the order of their columns.
    """
    params = flat(network, known)
    if not network.reads_telemetry:
        return params
    return np.concatenate([params, ranges(network.norm, cluster.models)])
