"""The state of torch's Adam as arrays, so that a training can be stored and resumed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from numpy.typing import NDArray

_STEP, _MOMENTS = "step", ("exp_avg", "exp_avg_sq")

Arrays = dict[str, NDArray[Any]]


def weights_to_arrays(prefix: str, weights: Iterable[torch.Tensor]) -> Arrays:
    """Copies of weights, numbered."""
    return {f"{prefix}{i}": weight.detach().numpy().copy() for i, weight in enumerate(weights)}


def restore_weights(prefix: str, weights: Iterable[torch.Tensor], arrays: Arrays) -> None:
    """Set weights to what `weights_to_arrays` gave."""
    with torch.no_grad():
        for i, weight in enumerate(weights):
            weight.copy_(torch.from_numpy(arrays[f"{prefix}{i}"]))


def to_arrays(adam: torch.optim.Optimizer, weights: Iterable[torch.Tensor]) -> Arrays:
    """Copies of the moments of numbered weights; nothing before the first step."""
    return {
        f"{key}{i}": value.detach().numpy().copy()
        for i, weight in enumerate(weights)
        for key, value in adam.state[weight].items()
    }


def restore(adam: torch.optim.Optimizer, weights: Iterable[torch.Tensor], arrays: Arrays) -> None:
    """Set the moments to what `to_arrays` gave."""
    for i, weight in enumerate(weights):
        if f"{_STEP}{i}" in arrays:
            moments = {key: torch.from_numpy(arrays[f"{key}{i}"].copy()) for key in _MOMENTS}
            step = torch.tensor(arrays[f"{_STEP}{i}"].item())  # a scalar, whatever was stored
            adam.state[weight] = {_STEP: step, **moments}
