"""The paper's Q-network in torch."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import relu

from adlro.encode.paper_kernel import Sizes
from adlro.encode.paper_network import PaperNetwork
from adlro.model.state import Floats
from adlro.train.dqn.recipe import Recipe


class QNetwork(torch.nn.Module):
    """Values of all actions of a state."""

    def __init__(self, sizes: Sizes, recipe: Recipe, seed: int) -> None:
        super().__init__()
        self.sizes, self._recipe = sizes, recipe
        self._cells = sizes.rows * sizes.columns
        channels, width = recipe.filters, sizes.observation
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.filters = torch.nn.ModuleList(
                torch.nn.Conv2d(before, channels, 3, padding=1)
                for before in ((1, channels) if channels else ())
            )
            width += (channels - 1) * self._cells if channels else 0
            self.hidden = torch.nn.ModuleList()
            for units in recipe.layers:
                self.hidden.append(torch.nn.Linear(width, units))
                width = units
            self.values = torch.nn.Linear(width, sizes.actions)
            self.level = torch.nn.Linear(width, 1) if recipe.is_dueling else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """From states [B, O] to values [B, A]."""
        if len(self.filters):
            matrix = x[:, : self._cells].reshape(-1, 1, self.sizes.rows, self.sizes.columns)
            for convolution in self.filters:
                matrix = relu(convolution(matrix), inplace=True)
            x = torch.cat([matrix.flatten(1), x[:, self._cells :]], 1)
        for layer in self.hidden:
            x = relu(layer(x), inplace=True)
        values: torch.Tensor = self.values(x)
        if self.level is None:
            return values
        level: torch.Tensor = self.level(x)
        return values - values.mean(1, keepdim=True) + level

    def export(self) -> PaperNetwork:
        """The same function as plain arrays; a dueling head is folded into the last layer."""
        arrays: dict[str, Floats] = {}
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
        recipe = self._recipe
        return PaperNetwork(self.sizes, recipe.filters, recipe.layers, arrays)


def _plain(*tensors: object) -> list[Floats]:
    return [
        tensor.detach().numpy().astype(np.float64)
        for tensor in tensors
        if isinstance(tensor, torch.Tensor)
    ]
