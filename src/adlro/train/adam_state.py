"""Converts the state of torch's Adam to arrays and back, to store and resume a training."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from numpy.typing import NDArray

_STEP, _MOMENTS = "step", ("exp_avg", "exp_avg_sq")

Arrays = dict[str, NDArray[Any]]


def weights_to_arrays(prefix: str, weights: Iterable[torch.Tensor]) -> Arrays:
    """Return a copy of each weight array, named by the prefix and its number."""
    return {f"{prefix}{i}": weight.detach().numpy().copy() for i, weight in enumerate(weights)}


def restore_weights(prefix: str, weights: Iterable[torch.Tensor], arrays: Arrays) -> None:
    """Set weights to the arrays that `weights_to_arrays` returned."""
    with torch.no_grad():
        for i, weight in enumerate(weights):
            weight.copy_(torch.from_numpy(arrays[f"{prefix}{i}"]))


def to_arrays(adam: torch.optim.Optimizer, weights: Iterable[torch.Tensor]) -> Arrays:
    """Return a copy of Adam's step and moments for each weight; empty before the first step."""
    return {
        f"{key}{i}": value.detach().numpy().copy()
        for i, weight in enumerate(weights)
        for key, value in adam.state[weight].items()
    }


def restore(adam: torch.optim.Optimizer, weights: Iterable[torch.Tensor], arrays: Arrays) -> None:
    """Set Adam's steps and moments to those that `to_arrays` returned."""
    for i, weight in enumerate(weights):
        if f"{_STEP}{i}" in arrays:
            moments = {key: torch.from_numpy(arrays[f"{key}{i}"].copy()) for key in _MOMENTS}
            step = torch.tensor(arrays[f"{_STEP}{i}"].item())  # a scalar, whatever was stored
            adam.state[weight] = {_STEP: step, **moments}
