"""The DQN's training loop: simulators act, the replay buffer fills, batches are learned."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from adlro.config.files import adjusted
from adlro.config.scenario import Scenario
from adlro.envs.episode_supply import EpisodeSupply
from adlro.envs.worlds import Worlds, typical_seconds
from adlro.errors import ConfigError
from adlro.features.observation_kernel import Sizes, sizes
from adlro.seeds import TrainingPhase, training_stream
from adlro.train import episode_seeds
from adlro.train.checkpoint import part
from adlro.train.dqn.hyperparameters import PaperDqnHyperparameters
from adlro.train.dqn.learner import Learner
from adlro.train.dqn.replay import Replay
from adlro.train.folder import Arrays
from adlro.workloads.setting import prepare
from adlro.workloads.workload import Workload

_MOST_GIB = 3  # of the replay buffer; a checkpoint of 4 GiB could not be read again
_DRAWN = 5000  # jobs that are drawn at once and cut into episodes: drawing fewer costs as much


def _supply(scenario: Scenario, used: PaperDqnHyperparameters, seed: int) -> EpisodeSupply:
    """Return a supply of episodes of `used.jobs` consecutive jobs, from this training's seeds."""
    pieces = max(_DRAWN // used.jobs, 1)
    setting = prepare(adjusted(scenario, jobs=pieces * used.jobs))

    def draw(number: int) -> Workload:
        key = episode_seeds.training(seed, TrainingPhase.PAPER_DQN, number)
        return episode_seeds.jobs(setting, key)

    return EpisodeSupply(setting, draw, pieces)


def _refuse_too_large(scenario: Scenario, shape: Sizes, used: PaperDqnHyperparameters) -> None:
    """Raise ConfigError if the replay buffer would take more than _MOST_GIB of memory."""
    gib = used.replay * (4 * shape.observation + shape.actions) / 2**30
    if gib > _MOST_GIB:
        raise ConfigError(
            f"{scenario.name}: {used.replay:,} states of {shape.gpus:,} GPUs and {used.window} "
            f"jobs take {gib:.1f} GiB, more than {_MOST_GIB}; take a smaller cluster or --window"
        )


class TrainingLoop:
    """Simulators, replay buffer and learner of a training; the state can be stored at any step."""

    def __init__(self, scenario: Scenario, used: PaperDqnHyperparameters, seed: int) -> None:
        self._used = used
        weight = scenario.idle_weight if used.idle_weight is None else used.idle_weight
        supply = _supply(scenario, used, seed)
        shape = sizes(supply.setting.layout, len(scenario.types), used.window)
        _refuse_too_large(scenario, shape, used)
        self.worlds = Worlds(supply, used.copies, used.window, weight)
        self.unit_s = typical_seconds(supply.setting) * shape.gpus  # of a reward
        self.learner = Learner(shape, used, seed)
        self.replay = Replay(shape, used.copies, used.replay, used.batch)
        self._rng = training_stream(seed, TrainingPhase.PAPER_DQN, 0)
        self.steps, self.episodes = 0, 0  # of all copies
        self._owed = 0.0  # samples still to be trained on
        self._jct = np.zeros(2)  # sum of the mean JCT of episodes, and their number

    @property
    def epsilon(self) -> float:
        """Current probability of a random action."""
        return self._used.exploration(self.episodes / self._used.episodes)

    def step(self) -> None:
        """Take one action in each copy of the simulator, then train on the batches that are due."""
        worlds, used = self.worlds, self._used
        self.replay.see(worlds.observations, worlds.masks)
        actions = self.learner.choose(worlds.observations, worlds.masks, self.epsilon, self._rng)
        worlds.step(actions)
        self.replay.add(actions, worlds.rewards / self.unit_s, worlds.dones)
        self.steps += used.copies
        ended = worlds.endings[worlds.dones]
        self.episodes += len(ended)
        self._jct += (ended["job_seconds"] / ended["jobs"]).sum(), len(ended)
        if len(self.replay) < used.warm_up:
            return
        self.replay.see(worlds.observations, worlds.masks)  # successors of the newest steps
        self._owed += used.copies * used.samples
        while self._owed >= used.batch:
            self._owed -= used.batch
            self.learner.learn(self.replay.sample(self._rng))

    def take_jct(self) -> float:
        """Return the mean JCT, s, of episodes that ended since the last call; NaN if none did."""
        total, count = self._jct.tolist()
        self._jct[:] = 0.0
        return total / count if count else float("nan")

    def pack(self) -> tuple[Arrays, dict[str, Any]]:
        """Return the whole state as arrays and as values that JSON can hold."""
        parts = {"worlds": self.worlds.checkpoint(), "replay": self.replay.arrays()}
        parts["learner"] = self.learner.arrays()
        arrays = {f"{part}/{name}": a for part, found in parts.items() for name, a in found.items()}
        arrays["jct"] = self._jct.copy()
        return arrays, {
            "rng": json.dumps(self._rng.bit_generator.state),
            "steps": self.steps,
            "episodes": self.episodes,
            "owed": self._owed,
        }

    def restore(self, arrays: Arrays, meta: dict[str, Any]) -> None:
        """Set the state to one that `pack` returned."""
        self.worlds.restore(part("worlds", arrays))
        self.replay.restore(part("replay", arrays))
        self.learner.restore(part("learner", arrays))
        self._rng.bit_generator.state = json.loads(meta["rng"])
        self.steps, self.episodes, self._owed = meta["steps"], meta["episodes"], meta["owed"]
        self._jct = arrays["jct"].copy()
