"""Hyperparameters of the paper's DQN: all its numbers and defaults."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from adlro.model.record import Record
from adlro.train.hyperparameters import Share, Units


class PaperDqnHyperparameters(Record):
    """Hyperparameters of the paper's DQN.

    Learning rate, backbone and W = 1 are the paper's values; for the others it gives none, so they
    are ours.
    """

    window: PositiveInt = 1  # W: waiting jobs to choose from
    idle_weight: Annotated[float, Field(gt=0, lt=1)] | None = None  # lambda; None = the scenario's
    backbone: Literal["cnn", "mlp"] = "cnn"
    channels: Units = 8  # of each convolution
    hidden: Units = 64  # units of each hidden layer
    is_double: bool = True  # the online network picks the next action, the target network values it
    is_dueling: bool = False  # separate outputs for the value of a state and for advantages
    jobs: PositiveInt = 20  # of an episode
    episodes: PositiveInt = 200_000
    copies: PositiveInt = 128  # of the simulator
    rate: PositiveFloat = 1e-4  # of Adam
    discount: Share = 0.99  # per decision
    batch: PositiveInt = 1024
    samples: PositiveFloat = 4.0  # number trained on per step of a simulator copy
    replay: PositiveInt = 200_000  # steps in the replay buffer
    warm_up: PositiveInt = 20_000  # steps before the first batch
    target_every: PositiveInt = 250  # batches between two copies of the network into the target
    epsilon: tuple[Share, Share] = (1.0, 0.05)  # share of random actions, first and last
    fading: Annotated[float, Field(gt=0, le=1)] = 0.3  # share of the episodes in which it falls
    evaluations: PositiveInt = 50  # of the greedy policy: points of the learning curve
    evaluation_seeds: PositiveInt = 20  # selection seeds of each
    final_seeds: PositiveInt = 100  # of the figure on the card

    @property
    def layers(self) -> tuple[int, ...]:
        """Number of units of each hidden layer; the output layer is not included."""
        return (self.hidden,) if self.backbone == "cnn" else (self.hidden, self.hidden)

    @property
    def filters(self) -> int:
        """Number of channels of each convolution; 0 = the network has no convolutions."""
        return self.channels if self.backbone == "cnn" else 0

    def exploration(self, done: float) -> float:
        """Return epsilon after this share of the training (0 to 1): linear, then constant."""
        first, last = self.epsilon
        return first + (last - first) * min(done / self.fading, 1.0)
