"""The course of a training: copies act, what they saw is kept, batches of it are learned."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adlro.config.files import adjusted
from adlro.config.scenario import Scenario
from adlro.envs.episode_supply import EpisodeSupply
from adlro.envs.worlds import Worlds, typical_seconds
from adlro.errors import ConfigError
from adlro.features.observation_kernel import Sizes, sizes
from adlro.train import seeds
from adlro.train.dqn.learner import Learner
from adlro.train.dqn.recipe import Recipe
from adlro.train.dqn.replay import Replay
from adlro.workloads.setting import prepare
from adlro.workloads.workload import Workload

Arrays = dict[str, NDArray[Any]]

_MOST_GIB = 4  # of the steps that are kept
_PHASE = 20  # see seeds.training
_DRAWN = 5000  # jobs that are drawn at once and then cut into episodes: drawing few costs as much


def _supply(scenario: Scenario, recipe: Recipe, seed: int) -> EpisodeSupply:
    """Episodes of so many consecutive jobs each, from the seeds of this training."""
    pieces = max(_DRAWN // recipe.jobs, 1)
    setting = prepare(adjusted(scenario, jobs=pieces * recipe.jobs))

    def draw(number: int) -> Workload:
        return seeds.jobs(setting, seeds.training(seed, _PHASE, number))

    return EpisodeSupply(setting, draw, pieces)


def _refuse_too_large(scenario: Scenario, shape: Sizes, recipe: Recipe) -> None:
    """Raise if the steps that are kept would not fit in memory."""
    gib = recipe.replay * (4 * shape.observation + shape.actions) / 2**30
    if gib > _MOST_GIB:
        raise ConfigError(
            f"{scenario.name}: {recipe.replay:,} states of {shape.gpus:,} GPUs and {recipe.window} "
            f"jobs take {gib:.1f} GiB, more than {_MOST_GIB}; take a smaller cluster or --window"
        )


class Course:
    """A training without its files and looks; it can be put down and taken up after any step."""

    def __init__(self, scenario: Scenario, recipe: Recipe, seed: int) -> None:
        self._recipe = recipe
        weight = scenario.idle_weight if recipe.idle_weight is None else recipe.idle_weight
        supply = _supply(scenario, recipe, seed)
        shape = sizes(supply.setting.layout, len(scenario.types), recipe.window)
        _refuse_too_large(scenario, shape, recipe)
        self.worlds = Worlds(supply, recipe.copies, recipe.window, weight)
        self.unit_s = typical_seconds(supply.setting) * shape.gpus  # of a reward
        self.learner = Learner(shape, recipe, seed)
        self.replay = Replay(shape, recipe.copies, recipe.replay, recipe.batch)
        self._rng = np.random.default_rng((seed, _PHASE))
        self.steps, self.episodes = 0, 0  # of all copies, done
        self._owed = 0.0  # samples to be trained
        self._jct = np.zeros(2)  # sum of the mean JCT of episodes, and their number

    @property
    def epsilon(self) -> float:
        """Share of random actions now."""
        return self._recipe.exploration(self.episodes / self._recipe.episodes)

    def step(self) -> None:
        """One action in each copy, and the batches that are due for it."""
        worlds, recipe = self.worlds, self._recipe
        self.replay.see(worlds.observations, worlds.masks)
        actions = self.learner.choose(worlds.observations, worlds.masks, self.epsilon, self._rng)
        worlds.step(actions)
        self.replay.add(actions, worlds.rewards / self.unit_s, worlds.dones)
        self.steps += recipe.copies
        ended = worlds.endings[worlds.dones]
        self.episodes += len(ended)
        self._jct += (ended["job_seconds"] / ended["jobs"]).sum(), len(ended)
        if len(self.replay) < recipe.warm_up:
            return
        self.replay.see(worlds.observations, worlds.masks)  # what followed the newest steps
        self._owed += recipe.copies * recipe.samples
        while self._owed >= recipe.batch:
            self._owed -= recipe.batch
            self.learner.learn(self.replay.sample(self._rng))

    def take_jct(self) -> float:
        """Mean JCT of the episodes that ended since it was last taken, s; nan if none did."""
        total, count = self._jct.tolist()
        self._jct[:] = 0.0
        return total / count if count else float("nan")

    def pack(self) -> tuple[Arrays, dict[str, Any]]:
        """As arrays and JSON."""
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

    def take_up(self, arrays: Arrays, meta: dict[str, Any]) -> None:
        """Go on from what `pack` gave."""

        def part(name: str) -> Arrays:
            start = f"{name}/"
            return {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}

        self.worlds.restore(part("worlds"))
        self.replay.take_up(part("replay"))
        self.learner.take_up(part("learner"))
        self._rng.bit_generator.state = json.loads(meta["rng"])
        self.steps, self.episodes, self._owed = meta["steps"], meta["episodes"], meta["owed"]
        self._jct = arrays["jct"].copy()
