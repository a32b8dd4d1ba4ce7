"""Q-learning with a target network, batch by batch, in torch with one thread."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from adlro.features.observation_kernel import Sizes
from adlro.model.state import Counts, Mask
from adlro.nets.paper_network import PaperNetwork
from adlro.train import adam_state
from adlro.train.adam_state import Arrays
from adlro.train.dqn.hyperparameters import PaperDqnHyperparameters
from adlro.train.dqn.network import QNetwork
from adlro.train.dqn.replay import Batch


class Learner:
    """Holds the online network, the target network and Adam; trains the online one on batches."""

    def __init__(self, sizes: Sizes, used: PaperDqnHyperparameters, seed: int) -> None:
        torch.set_num_threads(1)
        self._used = used
        self._online, self._target = QNetwork(sizes, used, seed), QNetwork(sizes, used, seed)
        self._adam = torch.optim.Adam(self._online.parameters(), lr=used.rate, fused=True)
        self.batches = 0
        self._losses, self._counted = torch.zeros(()), 0

    def network(self) -> PaperNetwork:
        """Return the online network in its current state, as plain arrays."""
        return self._online.export()

    def choose(
        self, observations: NDArray[np.float32], masks: Mask, epsilon: float,
        rng: np.random.Generator,
    ) -> Counts:  # fmt: skip
        """Return a feasible action [B] for each of B states.

        The action is random with probability epsilon, else the one with the highest value.
        """
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
        """Compute the Q-learning targets [K, 1] for the actions of a batch of K steps.

        A target is the reward plus, unless the episode ended, the discounted value of the best
        feasible action in the next state.
        """
        with torch.no_grad():
            worth = self._target(batch.next_x)
            if self._used.is_double:
                named = self._online(batch.next_x).masked_fill_(batch.next_forbidden, -torch.inf)
                following = worth.gather(1, named.argmax(1, keepdim=True))
            else:
                following = worth.masked_fill_(batch.next_forbidden, -torch.inf).amax(1, True)
            return torch.addcmul(batch.rewards, batch.lasting, following, value=self._used.discount)

    def learn(self, batch: Batch) -> None:
        """Take one step of Adam on the Huber loss of a batch; update the target network if due."""
        goal = self._goal(batch)
        value = self._online(batch.x).gather(1, batch.actions)
        loss = torch.nn.functional.huber_loss(value, goal)
        self._adam.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
        self._adam.step()
        self.batches += 1
        self._losses += loss.detach()
        self._counted += 1
        if self.batches % self._used.target_every == 0:
            self._target.load_state_dict(self._online.state_dict())

    def take_loss(self) -> float:
        """Return the mean loss of the batches since the last call; 0 if there was no batch."""
        mean = float(self._losses) / max(self._counted, 1)
        self._losses, self._counted = torch.zeros(()), 0
        return mean

    def arrays(self) -> Arrays:
        """Return the whole state as arrays, for `restore`."""
        online = list(self._online.parameters())
        return {
            "counts": np.array([self.batches, self._counted]),
            "losses": self._losses.numpy().reshape(1).copy(),
            **adam_state.weights_to_arrays("online", online),
            **adam_state.weights_to_arrays("target", self._target.parameters()),
            **adam_state.to_arrays(self._adam, online),
        }

    def restore(self, arrays: Arrays) -> None:
        """Set the state to one that `arrays` returned."""
        online = list(self._online.parameters())
        adam_state.restore_weights("online", online, arrays)
        adam_state.restore_weights("target", self._target.parameters(), arrays)
        adam_state.restore(self._adam, online, arrays)
        self.batches, self._counted = arrays["counts"].tolist()
        self._losses = torch.tensor(arrays["losses"].item())
