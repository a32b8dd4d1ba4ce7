"""Fits a network to labelled states in torch; the seed determines the result.

Two losses, of which docs/training.md compares the results:

- *regression*: Huber loss of the score against the cost.
- *decision*: the cost that is expected if each choice is made with the probability that a softmax
  of the scores gives it.

Costs are differences to Min-Min's choice in the same state, in units of the mean completion time of
a job in its rollout, large ones on a logarithmic scale. In units of tau, the state's unit of time,
differences between states of long and of short queues would be far larger than what matters.

In both the network learns only what the drain difference does not explain. Its members are trained
on the same batches from different initial weights, each by its own loss. Inputs are clamped to
nearly all of their range, in training and afterwards. One thread is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from adlro.features.start_kernel import DRAIN, DRAIN_LOG, FEATURES, MOST_CHOICES
from adlro.model.state import Counts, Floats, Mask
from adlro.nets.q_network import Network
from adlro.train import adam_state
from adlro.train.adam_state import Arrays
from adlro.train.expansion import Labels
from adlro.train.hyperparameters import FitSettings

_SMALL_START = 0.1  # factor on torch's last layer: at first the drain difference decides
_WARM = 0.3  # share of the steps in which the learning rate rises
_FIRST, _LAST = 1 / 25, 1 / 250_000  # learning rates, relative to the largest
_MOMENTA = (0.95, 0.85)  # at the smallest and at the largest rate
_FLAT = 1e-6  # a feature with a smaller deviation is not scaled
_LEAST = 1e-9  # seconds
_HEAVIEST = 10.0  # largest weight of a state
_SAMPLE = 400_000  # choices of which the bounds of the inputs are quantiles


class Targets(NamedTuple):
    """Data of the regression: N choices with F features, in S states of at most C choices each."""

    features: NDArray[np.float32]  # [N, F]
    rows: Counts  # [S, C] row numbers in `features`; a state's last one is repeated up to C
    known: Mask  # [S, C] False = such a repeated row
    planned: Counts  # [S] index of Min-Min's choice
    costs: NDArray[np.float32]  # [S, C] minus that of Min-Min's choice, mean costs of a job
    weights: NDArray[np.float32]  # [S] of the state in the decision loss; large ones are rarer


def targets(labels: Sequence[Labels], weights: Floats) -> Targets:
    """Convert labels to data of the regression.

    `weights` [5] are the objective's weights of the columns of the costs.
    """
    features = np.concatenate([part.features for part in labels])
    cost = np.concatenate([part.costs @ weights for part in labels])
    groups = np.concatenate([part.groups for part in labels])
    count, planned = groups[:, 0], groups[:, 1]
    first = np.cumsum(count) - count
    place = np.arange(MOST_CHOICES)[None]
    rows = first[:, None] + np.minimum(place, count[:, None] - 1)
    usual = cost[first + planned][:, None]
    above = cost[rows] - usual
    relative = above / np.maximum(np.abs(usual) / groups[:, 3:4], _LEAST)
    known = place < count[:, None]
    importance = np.minimum(1000.0 / groups[:, 4], _HEAVIEST).astype(np.float32)
    return Targets(features, rows, known, planned, relative.astype(np.float32), importance)


class Quality(NamedTuple):
    """Loss and cost of a network on the held-out states."""

    loss: float
    gain: float  # mean compressed cost of its choices above Min-Min's, percent of a job's


def _cycle(step: int, steps: int) -> tuple[float, float]:
    """Return the learning rate, relative to the largest, and the momentum at a step.

    The rate rises and then falls along cosines; the momentum does the opposite.
    """
    warm = max(_WARM * steps, 1.0)
    if step < warm:
        from_, to, along = _FIRST, 1.0, step / warm
    else:
        from_, to, along = 1.0, _LAST, (step - warm) / max(steps - warm, 1.0)
    height = (1 + math.cos(math.pi * along)) / 2
    calm, fast = _MOMENTA
    speed = 1 - height if step < warm else height
    return to + (from_ - to) * height, calm + (fast - calm) * speed


def _bounds(x: NDArray[np.float32], outside: float) -> NDArray[np.float32]:
    """Return the bounds [2, F] of inputs [N, F], beyond which a share `outside` lies each."""
    some = x[:: max(len(x) // _SAMPLE, 1)]
    bounds: NDArray[np.float32] = np.quantile(some, (outside, 1 - outside), axis=0)
    return bounds.astype(np.float32)


def _compressed(costs: torch.Tensor) -> torch.Tensor:
    """Return costs with their logarithm in place of large ones; small ones stay as they are."""
    return torch.sign(costs) * torch.log1p(costs.abs())


class Fitting:
    """Fits a network to targets epoch by epoch; the state can be stored after any epoch."""

    def __init__(self, data: Targets, hidden: tuple[int, int], fit: FitSettings, seed: int) -> None:
        torch.set_num_threads(1)
        self._fit, self._seed, self.epoch = fit, seed, 0
        columns = [FEATURES.index(name) for name in fit.features]
        x = data.features[:, columns]
        self._bounds = _bounds(x, fit.outside)
        np.clip(x, *self._bounds, out=x)
        self._middle, spread = x.mean(axis=0), x.std(axis=0)
        self._spread = np.where(spread > _FLAT, spread, 1.0).astype(np.float32)
        self._x = torch.from_numpy((x - self._middle) / self._spread)
        drain = data.features[:, [DRAIN, DRAIN_LOG]] @ np.array(fit.residual, np.float32)
        self._drain = torch.from_numpy(drain)
        self._rows, self._known = torch.from_numpy(data.rows), torch.from_numpy(data.known)
        self._planned = torch.from_numpy(data.planned)[:, None]
        self._weights = torch.from_numpy(data.weights)
        self._costs = _compressed(torch.from_numpy(data.costs))
        states = len(data.planned)
        self._held_out = max(int(states * fit.held_out), 1)
        self._seen = max(states - self._held_out, 1)
        self._batch = min(fit.batch, self._seen)
        self._weights_of_members = self._build(hidden)
        self._adam = torch.optim.AdamW(
            self._weights_of_members, lr=fit.rate, weight_decay=fit.weight_decay
        )

    def _build(self, hidden: tuple[int, int]) -> list[torch.Tensor]:
        """Return weights and biases of E members, each array with E as its first dimension."""
        members = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            for _ in range(self._fit.members):
                one = torch.nn.Linear(len(self._middle), hidden[0])
                two = torch.nn.Linear(hidden[0], hidden[1])
                three = torch.nn.Linear(hidden[1], 1, bias=False)
                layers = (one.weight.T, one.bias[None], two.weight.T, two.bias[None])
                members.append((*layers, _SMALL_START * three.weight.T))
        stacked = [torch.stack(arrays) for arrays in zip(*members, strict=True)]
        return [array.detach().clone().requires_grad_() for array in stacked]

    @property
    def is_done(self) -> bool:
        """Whether all epochs are done."""
        return self.epoch >= self._fit.epochs

    def _scores(self, states: torch.Tensor) -> torch.Tensor:
        """Return the scores [E, B, C] that E members give the choices of B states."""
        one, one_bias, two, two_bias, three = self._weights_of_members
        rows = self._rows[states]
        first = torch.relu(self._x[rows.ravel()] @ one + one_bias)
        learned = torch.relu(first @ two + two_bias) @ three
        scores: torch.Tensor = self._drain[rows] + learned.view(-1, *rows.shape)
        return scores

    def _loss(self, scores: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """Return the loss of scores [E, B, C], the mean over E members."""
        known = self._known[states]
        if self._fit.loss == "decision":
            weights = self._weights[states]
            barred = (-scores / self._fit.temperature).masked_fill(~known, -math.inf)
            expected = (torch.softmax(barred, 2) * self._costs[states]).sum(2)
            return (expected * weights).sum(1).mean() / weights.sum()
        above = scores - scores.gather(2, self._planned[states].expand(len(scores), -1, 1))
        goal = self._costs[states].expand_as(above)
        error = torch.nn.functional.huber_loss(above, goal, reduction="none")
        return (error * known).sum((1, 2)).mean() / known.sum()

    def run_epoch(self, check: Callable[[], object] = lambda: None) -> Quality:
        """Train once on all states but the held-out ones; return the quality on the held-out ones.

        The seed determines the order of the states. `check` is called before each step and may
        raise; the fit must not be used after that.
        """
        rng = np.random.default_rng((self._seed, self.epoch))
        order = torch.from_numpy(rng.permutation(self._seen))
        steps = self._seen // self._batch
        for k in range(steps):
            check()
            share, momentum = _cycle(self.epoch * steps + k, self._fit.epochs * steps)
            for group in self._adam.param_groups:
                group["lr"], group["betas"] = self._fit.rate * share, (momentum, 0.999)
            states = order[k * self._batch : (k + 1) * self._batch]
            loss = self._loss(self._scores(states), states)
            self._adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
            self._adam.step()
        self.epoch += 1
        return self._measure()

    def _measure(self) -> Quality:
        states = torch.arange(len(self._planned) - self._held_out, len(self._planned))
        with torch.no_grad():
            scores = self._scores(states)
            loss = float(self._loss(scores, states))
            taken = scores.mean(0).masked_fill(~self._known[states], math.inf).argmin(1)
            gains = self._costs[states].gather(1, taken[:, None]).squeeze(1)
            weights = self._weights[states]
            return Quality(loss, 100 * float((gains * weights).sum() / weights.sum()))

    def network(self) -> Network:
        """Return the current network; the scaling of the features is folded into its weights."""
        one, one_bias, two, two_bias, three = (
            weight.detach().numpy().astype(np.float64) for weight in self._weights_of_members
        )
        scaled = one / self._spread[:, None]
        shifted = one_bias[:, 0] - self._middle.astype(np.float64) @ scaled
        return Network(
            self._fit.features,
            np.array(self._fit.residual),
            np.ascontiguousarray(np.concatenate(scaled, axis=1)),
            shifted.ravel(),
            np.concatenate(two),
            two_bias.ravel(),
            three.ravel(),
            bounds=self._bounds.astype(np.float64),
            caution=self._fit.caution,
        )

    def arrays(self) -> Arrays:
        """Return the state after the last epoch as arrays, for `restore`."""
        weights = self._weights_of_members
        moments = adam_state.to_arrays(self._adam, weights)
        found = adam_state.weights_to_arrays("weight", weights) | moments
        return found | {"epoch": np.array([self.epoch])}

    def restore(self, arrays: Arrays) -> None:
        """Set the state to one that `arrays` returned."""
        weights = self._weights_of_members
        adam_state.restore_weights("weight", weights, arrays)
        adam_state.restore(self._adam, weights, arrays)
        self.epoch = int(arrays["epoch"].item())
