"""One generation of the tuning: the same fresh episodes for every network of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.model.state import Floats
from adlro.nets.q_network import Network
from adlro.train import evolve, weights
from adlro.train.episodes import MIN_MIN, Ground, Place, Score, World, named, play
from adlro.train.evolve import Search
from adlro.train.executor import Crew
from adlro.train.objective import Objective, fitness
from adlro.train.recipe import Tuning


class _Rival(NamedTuple):
    """An episode, and what Min-Min makes of it."""

    world: World
    score: Score


class Generation(NamedTuple):
    """What a generation was like."""

    search: Search
    ratio: float  # mean of the objective's ratio to Min-Min, over networks and episodes
    p99_ratio: float


class Tuner:
    """Tunes a network on whole episodes."""

    def __init__(
        self, ground: Ground, objective: Objective, tuning: Tuning, crew: Crew, network: Network
    ) -> None:
        self._ground, self._objective, self._tuning, self._crew = ground, objective, tuning, crew
        self._network = network
        self._seen = (0.0, 0.0)

    def begin(self, network: Network) -> Search:
        """A search around a network."""
        return evolve.begin(weights.vector(network), weights.scale(network))

    def _rival(self, place: Place) -> _Rival:
        world = self._ground.draw(place, self._tuning.family_share, place.rng)
        return _Rival(world, play(world, named(MIN_MIN, world.setting), self._objective))

    def _fitness(self, run: int, phase: int, generation: int, points: Floats) -> Floats:
        """Of each of the points [K, D]."""
        count = self._tuning.episodes
        places = [Place(run, phase, generation * count + e) for e in range(count)]
        rivals = list(self._crew.do(self._rival, places))

        def one(task: tuple[_Rival, Floats]) -> tuple[float, float]:
            rival, point = task
            network = weights.from_vector(self._network, point)
            policy = weights.policy(network, rival.world.setting)
            score = play(rival.world, policy, self._objective)
            ratio = score.figure / rival.score.figure
            return ratio, score.p99_jct_s / rival.score.p99_jct_s

        tasks = [(rival, point) for rival in rivals for point in points]
        found = np.array(list(self._crew.do(one, tasks))).reshape(count, len(points), 2)
        ratio, p99 = found.mean(axis=(0, 1)).tolist()
        self._seen = ratio, p99
        each = fitness(found[..., 0], found[..., 1], self._tuning.tail_weight)
        return np.asarray(each.mean(axis=0))

    def step(self, search: Search, run: int, phase: int) -> Generation:
        """The next generation; all that is random in it follows from its number."""
        g = search.generation
        rng = np.random.default_rng((run, phase, g, 1))
        moved = evolve.step(
            search, lambda points: self._fitness(run, phase, g, points), self._tuning, rng
        )
        return Generation(moved, *self._seen)
