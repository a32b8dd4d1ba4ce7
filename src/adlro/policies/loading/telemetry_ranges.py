"""What a learned policy must know to read telemetry: the ranges of each GPU model of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from adlro.model.gpu import GpuModel
from adlro.model.state import Floats
from adlro.nets.q_network import Network, flat
from adlro.telemetry.normalise import Norm, bounds, empty


class Cluster(Protocol):
    """What names the GPU models of a cluster: a Layout, a Context."""

    @property
    def models(self) -> tuple[GpuModel, ...]:
        """[M], in the order of the columns of est."""


def ranges(norm: Norm | None, models: Sequence[GpuModel]) -> Floats:
    """[M * RANGES] as features/telemetry_kernel.py reads them; None = nothing was seen yet."""
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


def made_ready(network: Network, cluster: Cluster, known: tuple[str, ...]) -> Floats:
    """The params of decide on a cluster: weights, and behind them what telemetry needs, if any.

    Args:
        network: the weights.
        cluster: with its GPU models.
        known: the features that the policy fills in, in the order of their columns.
    """
    params = flat(network, known)
    if not network.reads_telemetry:
        return params
    return np.concatenate([params, ranges(network.norm, cluster.models)])
