"""Looks at a network on the selection seeds: what it gains on Min-Min, and whether it is safe."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adlro.config.files import adjusted
from adlro.config.scenario import Scenario
from adlro.evaluate.stats import Estimate, percent_difference
from adlro.model.record import Record
from adlro.model.state import Floats
from adlro.nets.q_network import Network
from adlro.policies.registry import Policy
from adlro.train import seeds, weights
from adlro.train.episodes import MIN_MIN, World, named, play
from adlro.train.executor import Crew
from adlro.train.objective import Objective, fitness
from adlro.train.recipe import Selection
from adlro.workloads.setting import Setting, prepare

Player = Callable[[Setting], Policy]


class Runs(NamedTuple):
    """One policy at L loads on S seeds, the same for every policy."""

    figure: Floats  # [L, S] of the objective
    jct_s: Floats  # [L, S]
    p99_jct_s: Floats  # [L, S]


class AtLoad(Record):
    """Mean JCT at one load, in percent of Min-Min's."""

    load: float
    jct: Estimate


class Look(Record):
    """A network on the selection seeds."""

    seeds: int
    gain: Estimate  # percent by which the objective's figure is above Min-Min's, all loads
    p99_ratio: float  # to Min-Min's, mean over the loads
    loads: tuple[AtLoad, ...]

    @property
    def is_safe(self) -> bool:
        """Whether the slowest jobs fare no worse than under Min-Min: else it is never kept."""
        return self.p99_ratio <= 1.0

    def score(self, tail_weight: float) -> float:
        """As in tuning; lower is better."""
        ratio, p99 = np.array(1 + self.gain.mean / 100), np.array(self.p99_ratio)
        return float(fitness(ratio, p99, tail_weight))


class Court:
    """The scenario at some loads with the selection seeds; what Min-Min does there is kept."""

    def __init__(
        self, scenario: Scenario, objective: Objective, selection: Selection, crew: Crew
    ) -> None:
        self.loads = tuple(sorted({*selection.loads, scenario.load}))
        self._settings = [prepare(adjusted(scenario, load=load)) for load in self.loads]
        self._objective, self._crew = objective, crew
        self._min_min: dict[int, Runs] = {}

    def play(self, player: Player, count: int) -> Runs:
        """A policy on the first `count` selection seeds at every load."""
        tasks = [(setting, seed) for setting in self._settings for seed in seeds.SELECTION[:count]]

        def one(task: tuple[Setting, int]) -> tuple[float, float, float]:
            setting, seed = task
            world = World(setting, seeds.jobs(setting, seed), seed)
            return play(world, player(setting), self._objective)

        shape = (len(self.loads), len(seeds.SELECTION[:count]), 3)
        found = np.array(list(self._crew.do(one, tasks))).reshape(shape)
        return Runs(found[..., 0], found[..., 1], found[..., 2])

    def min_min(self, count: int) -> Runs:
        """Min-Min on the same seeds; played once."""
        if count not in self._min_min:
            self._min_min[count] = self.play(lambda setting: named(MIN_MIN, setting), count)
        return self._min_min[count]

    def look(self, network: Network, count: int) -> Look:
        """Play a network and compare."""
        return self.compare(self.play_network(network, count), count)

    def play_network(self, network: Network, count: int) -> Runs:
        """As `play`."""
        return self.play(lambda setting: weights.policy(network, setting), count)

    def compare(self, runs: Runs, count: int) -> Look:
        """Some policy's runs against Min-Min's."""
        rival = self.min_min(count)
        usual = rival.figure.mean(axis=1, keepdims=True)
        gain = percent_difference(
            (runs.figure / usual).mean(axis=0), (rival.figure / usual).mean(axis=0)
        )
        p99 = runs.p99_jct_s.mean(axis=1) / rival.p99_jct_s.mean(axis=1)
        return Look(
            seeds=runs.figure.shape[1],
            gain=gain,
            p99_ratio=float(p99.mean()),
            loads=tuple(
                AtLoad(load=load, jct=percent_difference(runs.jct_s[k], rival.jct_s[k]))
                for k, load in enumerate(self.loads)
            ),
        )
