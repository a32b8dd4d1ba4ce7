"""Q-learning with a target network: one batch after the other, in torch, one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from adlro.features.observation_kernel import Sizes
from adlro.model.state import Counts, Mask
from adlro.nets.paper_network import PaperNetwork
from adlro.train.dqn.hyperparameters import PaperDqnHyperparameters
from adlro.train.dqn.network import QNetwork
from adlro.train.dqn.replay import Batch

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of Adam


class Learner:
    """The online network, its target, and Adam."""

    def __init__(self, sizes: Sizes, recipe: PaperDqnHyperparameters, seed: int) -> None:
        torch.set_num_threads(1)
        self._recipe = recipe
        self._online, self._target = QNetwork(sizes, recipe, seed), QNetwork(sizes, recipe, seed)
        self._adam = torch.optim.Adam(self._online.parameters(), lr=recipe.rate, fused=True)
        self.batches = 0
        self._losses, self._counted = torch.zeros(()), 0

    def network(self) -> PaperNetwork:
        """The online network as it is now."""
        return self._online.export()

    def choose(
        self, observations: NDArray[np.float32], masks: Mask, epsilon: float,
        rng: np.random.Generator,
    ) -> Counts:  # fmt: skip
        """An allowed action [B] for each state: the best, or with odds epsilon a random one."""
        with torch.inference_mode():
            values = self._online(torch.from_numpy(observations))
            values.masked_fill_(torch.from_numpy(~masks), -torch.inf)
            actions: Counts = values.argmax(1).numpy()
        strays = np.flatnonzero(rng.random(len(actions)) < epsilon)
        if len(strays):
            lots = rng.random((len(strays), masks.shape[1]), np.float32)
            lots[~masks[strays]] = -1.0
            actions[strays] = lots.argmax(1)
        return actions

    def _goal(self, batch: Batch) -> torch.Tensor:
        """What the values of the actions taken should be [K, 1]; only allowed actions follow."""
        with torch.no_grad():
            worth = self._target(batch.next_x)
            if self._recipe.is_double:
                named = self._online(batch.next_x).masked_fill_(batch.next_forbidden, -torch.inf)
                following = worth.gather(1, named.argmax(1, keepdim=True))
            else:
                following = worth.masked_fill_(batch.next_forbidden, -torch.inf).amax(1, True)
            return torch.addcmul(
                batch.rewards, batch.lasting, following, value=self._recipe.discount
            )

    def learn(self, batch: Batch) -> None:
        """One step of Adam down the Huber loss."""
        goal = self._goal(batch)
        value = self._online(batch.x).gather(1, batch.actions)
        loss = torch.nn.functional.huber_loss(value, goal)
        self._adam.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
        self._adam.step()
        self.batches += 1
        self._losses += loss.detach()
        self._counted += 1
        if self.batches % self._recipe.target_every == 0:
            self._target.load_state_dict(self._online.state_dict())

    def take_loss(self) -> float:
        """The mean loss since it was last taken; 0 if there was no batch."""
        mean = float(self._losses) / max(self._counted, 1)
        self._losses, self._counted = torch.zeros(()), 0
        return mean

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that is needed to go on after this batch."""
        found: dict[str, NDArray[Any]] = {
            "batches": np.array(self.batches),
            "losses": self._losses.numpy().copy(),
            "counted": np.array(self._counted),
        }
        for kind, network in (("online", self._online), ("target", self._target)):
            for i, weight in enumerate(network.parameters()):
                found[f"{kind}{i}"] = weight.detach().numpy().copy()
        for i, weight in enumerate(self._online.parameters()):
            for key, value in self._adam.state[weight].items():
                found[f"{key}{i}"] = value.numpy().copy()
        return found

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from where `arrays` were taken."""
        with torch.no_grad():
            for kind, network in (("online", self._online), ("target", self._target)):
                for i, weight in enumerate(network.parameters()):
                    weight.copy_(torch.from_numpy(arrays[f"{kind}{i}"]))
            for i, weight in enumerate(self._online.parameters()):
                if f"{_MOMENTS[0]}{i}" in arrays:
                    self._adam.state[weight] = {
                        key: torch.from_numpy(arrays[f"{key}{i}"].copy()) for key in _MOMENTS
                    }
        self.batches, self._counted = int(arrays["batches"]), int(arrays["counted"])
        self._losses = torch.from_numpy(arrays["losses"].copy())
