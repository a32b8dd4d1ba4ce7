"""The recipe of the paper's DQN: every number of it stands here and nowhere else."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from adlro.model.record import Record
from adlro.nets.q_network import MOST_UNITS

Part = Annotated[float, Field(ge=0, le=1)]
Units = Annotated[int, Field(ge=1, le=MOST_UNITS)]


class Recipe(Record):
    """What the paper says (the learning rate, the backbone, W = 1), and what it leaves open."""

    window: PositiveInt = 1  # W: waiting jobs to choose from
    idle_weight: Annotated[float, Field(gt=0, lt=1)] | None = None  # lambda; None = the scenario's
    backbone: Literal["cnn", "mlp"] = "cnn"
    channels: Units = 8  # of each convolution
    hidden: Units = 64  # units of each hidden layer
    is_double: bool = True  # the online network names the next action, the target network values it
    is_dueling: bool = False  # the level of a state and the advantages of its actions apart
    jobs: PositiveInt = 20  # of an episode
    episodes: PositiveInt = 200_000
    copies: PositiveInt = 128  # of the simulator
    rate: PositiveFloat = 1e-4  # of Adam
    discount: Part = 0.99  # a decision
    batch: PositiveInt = 1024
    samples: PositiveFloat = 4.0  # trained for each step of a copy
    replay: PositiveInt = 200_000  # steps that are kept
    warm_up: PositiveInt = 20_000  # steps before the first batch
    target_every: PositiveInt = 250  # batches between two copies of the network into the target
    epsilon: tuple[Part, Part] = (1.0, 0.05)  # share of random actions, at first and at last
    fading: Annotated[float, Field(gt=0, le=1)] = 0.3  # share of the episodes until the last
    looks: PositiveInt = 50  # at the greedy policy: points of the learning curve
    look_seeds: PositiveInt = 20  # selection seeds of each
    final_seeds: PositiveInt = 100  # of the figure on the card

    @property
    def layers(self) -> tuple[int, ...]:
        """Units of the hidden layers; the values are one more."""
        return (self.hidden,) if self.backbone == "cnn" else (self.hidden, self.hidden)

    @property
    def filters(self) -> int:
        """Channels of the convolutions, 0 = there are none."""
        return self.channels if self.backbone == "cnn" else 0

    def exploration(self, done: float) -> float:
        """Epsilon after so much of the training, 0 to 1: linear, then constant."""
        first, last = self.epsilon
        return first + (last - first) * min(done / self.fading, 1.0)
