"""Episodes of a training: which scenario, which jobs, and what a policy makes of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.config.files import adjusted
from adlro.config.scenario import Scenario
from adlro.evaluate.compare import run_one
from adlro.evaluate.metrics import measure
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.train import family, seeds
from adlro.train.objective import Objective
from adlro.workloads.setting import Setting, prepare
from adlro.workloads.workload import Workload

MIN_MIN, DRAIN_ARGMIN = "min-min", "drain-argmin"


class Place(NamedTuple):
    """One episode of one phase of one run: all that is random in it follows from these."""

    run: int
    phase: int
    episode: int

    @property
    def rng(self) -> np.random.Generator:
        """A stream of its own, so that any episode can be played without those before it."""
        return np.random.default_rng(self)


class World(NamedTuple):
    """An episode before it is played."""

    setting: Setting
    workload: Workload
    seed: int


class Ground(NamedTuple):
    """Where episodes are drawn from."""

    scenario: Scenario
    loads: tuple[float, float]  # between which the scenario itself is drawn

    def draw(self, place: Place, family_share: float, rng: np.random.Generator) -> World:
        """A random relative of the scenario, or the scenario itself at a random load."""
        if rng.random() < family_share:
            scenario = family.draw(self.scenario, rng)
        else:
            low, high = self.loads
            own = self.scenario.load
            load = round(float(rng.uniform(min(low, own), max(high, own))), 3)
            scenario = adjusted(self.scenario, load=load)
        setting, seed = prepare(scenario), seeds.training(*place)
        return World(setting, seeds.jobs(setting, seed), seed)


class Score(NamedTuple):
    """What counts of one run."""

    figure: float  # of the objective
    jct_s: float
    p99_jct_s: float


def play(world: World, policy: Policy, objective: Objective) -> Score:
    """Run a policy through an episode."""
    result = run_one(world.setting, world.workload, policy, world.seed)
    metrics = measure(world.setting, world.workload, result)
    return Score(objective.figure(metrics), metrics.mean_jct_s, metrics.p99_jct_s)


def named(name: str, setting: Setting) -> Policy:
    """One of the policies that come with the package."""
    return registry.load(name, setting)
