"""Uniform replay buffer: the latest steps of all simulator copies, each state stored once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from adlro.features.observation_kernel import Sizes
from adlro.model.state import Counts, Floats, Mask

_ARRAYS = ("x", "forbidden", "actions", "rewards", "lasting")


class Batch(NamedTuple):
    """K sampled steps, with O numbers per state and A actions; the next sample overwrites them."""

    x: torch.Tensor  # [K, O]
    actions: torch.Tensor  # [K, 1]
    rewards: torch.Tensor  # [K, 1]
    lasting: torch.Tensor  # [K, 1] 0 = the episode ended with this step, else 1
    next_x: torch.Tensor  # [K, O]
    next_forbidden: torch.Tensor  # [K, A] True = infeasible in the next state


class Replay:
    """A ring buffer of T moments, with one row per moment and simulator copy.

    With B copies, the successor of row i is row i + B. After the last step of an episode the
    successor is the first state of another episode: `lasting` is 0 in the row of that last step.
    """

    def __init__(self, sizes: Sizes, copies: int, steps: int, batch: int) -> None:
        self.copies, self._moments = copies, max(-(-steps // copies), 1) + 1
        rows = self._moments * copies
        self.x = torch.zeros(rows, sizes.observation)
        self.forbidden = torch.zeros(rows, sizes.actions, dtype=torch.bool)
        self.actions = torch.zeros(rows, 1, dtype=torch.int64)
        self.rewards, self.lasting = torch.zeros(rows, 1), torch.zeros(rows, 1)
        self.moment = 0
        self._out = Batch(
            *(torch.empty(batch, *a.shape[1:], dtype=a.dtype) for a in self._parts()),
        )

    def _parts(self) -> tuple[torch.Tensor, ...]:
        return self.x, self.actions, self.rewards, self.lasting, self.x, self.forbidden

    def __len__(self) -> int:
        """Number of steps that can be sampled."""
        return min(self.moment, self._moments - 1) * self.copies

    def _rows(self) -> slice:
        first = self.moment % self._moments * self.copies
        return slice(first, first + self.copies)

    def see(self, observations: NDArray[np.float32], masks: Mask) -> None:
        """Store the current state of every copy, and which actions are infeasible there."""
        rows = self._rows()
        self.x.numpy()[rows] = observations
        np.logical_not(masks, out=self.forbidden.numpy()[rows])

    def add(self, actions: Counts, rewards: Floats, dones: Mask) -> None:
        """Store the actions taken in the states of the last `see`, with their results.

        Call `see` with the next states after it.
        """
        rows = self._rows()
        self.actions.numpy()[rows, 0] = actions
        self.rewards.numpy()[rows, 0] = rewards
        np.logical_not(dones, out=self.lasting.numpy()[rows, 0], casting="unsafe")
        self.moment += 1

    def sample(self, rng: np.random.Generator) -> Batch:
        """Draw a batch of steps uniformly at random, with repetition."""
        count, rows = len(self), len(self.x)
        drawn = rng.integers(0, count, len(self._out.x)) + (self.moment * self.copies - count)
        here = torch.from_numpy(drawn % rows)
        there = torch.from_numpy((drawn + self.copies) % rows)
        places = (here, here, here, here, there, there)
        for source, place, out in zip(self._parts(), places, self._out, strict=True):
            torch.index_select(source, 0, place, out=out)
        return self._out

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the whole state as arrays, for `restore`."""
        return {name: getattr(self, name).numpy() for name in _ARRAYS} | {
            "moment": np.array([self.moment])
        }

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Set the state to one that `arrays` returned."""
        for name in _ARRAYS:
            getattr(self, name).numpy()[...] = arrays[name]
        self.moment = int(arrays["moment"].item())
