"""The Q-network of the paper that ADLRO starts from (docs/paper_dqn.md), in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import linear, relu

from adlro.features.observation_kernel import Sizes
from adlro.nets.paper_network import PaperNetwork
from adlro.train.dqn.hyperparameters import PaperDqnHyperparameters

_MOST_CELLS = 24  # up to which a convolution is faster as one matrix product


class Convolution(torch.nn.Conv2d):
    """A 3 x 3 convolution with zero padding and a ReLU.

    For a small matrix it is computed as one matrix product: with 4 x 4 GPUs, this takes half the
    time of torch's own convolution.
    """

    def __init__(self, before: int, channels: int, sizes: Sizes) -> None:
        super().__init__(before, channels, 3, padding=1)
        self._shape = (-1, before, sizes.rows, sizes.columns)
        self._cells = sizes.rows * sizes.columns
        if self._cells <= _MOST_CELLS:
            self._near = torch.from_numpy(_neighbours(sizes.rows, sizes.columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the layer to B inputs: [B, before * cells] becomes [B, channels * cells].

        `before` and `channels` are the numbers of input and output channels.
        """
        if self._cells > _MOST_CELLS:
            return relu(super().forward(x.reshape(self._shape)), inplace=True).flatten(1)
        channels, before, cells = self.out_channels, self.in_channels, self._cells
        spread = self.weight.view(channels * before, -1) @ self._near
        spread = spread.view(channels, before, cells, cells).transpose(1, 2)
        level = None if self.bias is None else self.bias.repeat_interleave(cells)
        full = linear(x, spread.reshape(channels * cells, before * cells), level)
        return relu(full, inplace=True)


def _neighbours(rows: int, columns: int) -> NDArray[np.float32]:
    """Return which cells of a matrix are neighbours, as 0 or 1 in an array [9, cells * cells].

    Row k is for place k of a 3 x 3 filter: 1 where the second cell is in that place around the
    first.
    """
    found = np.zeros((9, rows, columns, rows, columns), np.float32)
    for k, r, c in np.ndindex(9, rows, columns):
        near, beside = r + k // 3 - 1, c + k % 3 - 1
        if 0 <= near < rows and 0 <= beside < columns:
            found[k, r, c, near, beside] = 1.0
    return found.reshape(9, -1)


class QNetwork(torch.nn.Module):
    """The paper's network: computes the Q-values of all actions in a state."""

    def __init__(self, sizes: Sizes, used: PaperDqnHyperparameters, seed: int) -> None:
        super().__init__()
        self.sizes, self._used = sizes, used
        self._cells = sizes.rows * sizes.columns
        channels, width = used.filters, sizes.observation
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.filters = torch.nn.ModuleList(
                Convolution(before, channels, sizes)
                for before in ((1, channels) if channels else ())
            )
            width += (channels - 1) * self._cells if channels else 0
            self.hidden = torch.nn.ModuleList()
            for units in used.layers:
                self.hidden.append(torch.nn.Linear(width, units))
                width = units
            self.values = torch.nn.Linear(width, sizes.actions)
            self.level = torch.nn.Linear(width, 1) if used.is_dueling else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the Q-values [B, A] of A actions in B states, given as [B, O].

        O is the length of the observation of a state.
        """
        if len(self.filters):
            matrix = x[:, : self._cells]
            for convolution in self.filters:
                matrix = convolution(matrix)
            x = torch.cat([matrix, x[:, self._cells :]], 1)
        for layer in self.hidden:
            x = relu(layer(x), inplace=True)
        values: torch.Tensor = self.values(x)
        if self.level is None:
            return values
        level: torch.Tensor = self.level(x)
        return values - values.mean(1, keepdim=True) + level

    def export(self) -> PaperNetwork:
        """Return the network as plain arrays; a dueling head is folded into the last layer."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, convolution in zip(("first_filter", "second_filter"), self.filters, strict=False):
            arrays[name], arrays[f"{name}_bias"] = _plain(convolution.weight, convolution.bias)
        for k, layer in enumerate(self.hidden):
            weight, arrays[f"hidden{k}_bias"] = _plain(layer.weight, layer.bias)
            arrays[f"hidden{k}"] = np.ascontiguousarray(weight.T)
        weight, bias = _plain(self.values.weight, self.values.bias)
        if self.level is not None:
            level, height = _plain(self.level.weight, self.level.bias)
            weight, bias = weight - weight.mean(axis=0) + level, bias - bias.mean() + height
        arrays["values"], arrays["values_bias"] = np.ascontiguousarray(weight.T), bias
        used = self._used
        return PaperNetwork(self.sizes, used.filters, used.layers, arrays)


def _plain(*tensors: object) -> list[NDArray[np.float32]]:
    return [
        tensor.detach().numpy().copy() for tensor in tensors if isinstance(tensor, torch.Tensor)
    ]
