"""Episodes of a training: how they are drawn, and how a policy plays one.

The functions that an executor runs are module-level functions of a scenario, a seed and weights, so
that threads, processes or other machines can run them.
"""

from __future__ import annotations

import functools
from typing import NamedTuple, TypeAlias

import numpy as np

from adlro.config.files import adjusted
from adlro.config.scenario import Scenario
from adlro.evaluate.compare import run_one
from adlro.evaluate.metrics import measure
from adlro.nets.paper_network import PaperNetwork
from adlro.nets.q_network import Network
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.seeds import WorkloadStream, training_stream
from adlro.train import episode_seeds, estimate_errors, family, objective, weights, wide_family
from adlro.train.estimate_errors import EstimateErrors
from adlro.train.hyperparameters import Shares
from adlro.workloads.draw import rng_of
from adlro.workloads.setting import Setting, prepare
from adlro.workloads.workload import Workload

MIN_MIN, DRAIN_ARGMIN, FCFS = "min-min", "drain-argmin", "fcfs"
_RECENT = 8  # episodes in memory: all networks of a generation play the same ones

Player: TypeAlias = str | Network | PaperNetwork  # a policy of the package by name, or weights


class EpisodeKey(NamedTuple):
    """Identifies an episode by run, phase and number; everything random in it follows from them."""

    run: int
    phase: int
    episode: int

    @property
    def rng(self) -> np.random.Generator:
        """The random stream of this episode alone, which does not depend on earlier episodes."""
        return training_stream(*self)


class Episode(NamedTuple):
    """A scenario, the seed of its jobs, and errors of the estimates beside the scenario's own."""

    scenario: Scenario
    seed: int
    errors: EstimateErrors | None = None

    @property
    def setting(self) -> Setting:
        """The prepared scenario, from the cache of `prepare`."""
        return prepare(self.scenario)

    @property
    def workload(self) -> Workload:
        """The jobs of the episode; those of the most recent episodes are cached."""
        return _jobs(self.scenario.model_dump_json(), self.seed, self.errors)

    def with_jobs_of(self, seed: int) -> Workload:
        """Return the jobs of another seed, whose estimates have the same errors."""
        return _generate(self.setting, seed, self.errors)


def _generate(setting: Setting, seed: int, errors: EstimateErrors | None) -> Workload:
    workload = episode_seeds.jobs(setting, seed)
    if errors is None:
        return workload
    return errors.applied(setting, workload, rng_of(seed, WorkloadStream.ESTIMATES))


@functools.lru_cache(maxsize=_RECENT)
def _jobs(scenario: str, seed: int, errors: EstimateErrors | None) -> Workload:
    return _generate(prepare(Scenario.model_validate_json(scenario)), seed, errors)


class EpisodeSource(NamedTuple):
    """The distribution from which the episodes of a training are drawn."""

    scenario: Scenario
    loads: tuple[float, float]  # range for the scenario itself, widened to include its load
    restart_costs: tuple[float, float] | None = None  # range of factors on a relative's checkpoints
    related: Scenario | None = None  # whose relatives are drawn; None = the scenario's own

    def draw(self, key: EpisodeKey, shares: Shares, rng: np.random.Generator) -> Episode:
        """Draw an episode: of the wide family, of a relative, or of the scenario at some load."""
        kind = rng.random()
        if kind < shares.wide:
            most = wide_family.SMALL if shares.are_small else wide_family.WHOLE
            scenario = wide_family.draw(rng, most)
        elif kind < shares.wide + shares.relatives:
            scenario = family.draw(self.related or self.scenario, rng)
            if self.restart_costs is not None:
                scenario = family.with_restart_costs(scenario, self.restart_costs, rng)
        else:
            low, high = self.loads
            own = self.scenario.load
            load = round(float(rng.uniform(min(low, own), max(high, own))), 3)
            scenario = adjusted(self.scenario, load=load)
        has_errors = shares.errors > 0.0 and rng.random() < shares.errors
        errors = estimate_errors.draw(rng) if has_errors else None
        return Episode(scenario, episode_seeds.training(*key), errors)


class EpisodeTask(NamedTuple):
    """A policy, the episode that it plays and the objective to measure; picklable."""

    episode: Episode
    player: Player
    objective: str = "jct"


class Score(NamedTuple):
    """Results of a policy in one episode: the objective's figure, mean JCT and p99 JCT."""

    figure: float  # of the objective
    jct_s: float
    p99_jct_s: float


def policy(player: Player, setting: Setting) -> Policy:
    """Return the policy with this name or these weights, prepared for a scenario."""
    if isinstance(player, str):
        return registry.load(player, setting)
    return weights.policy(player, setting)


def play(task: EpisodeTask) -> Score:
    """Run a policy through an episode and return its results."""
    setting, workload, seed = task.episode.setting, task.episode.workload, task.episode.seed
    result = run_one(setting, workload, policy(task.player, setting), seed)
    metrics = measure(setting, workload, result)
    figure = objective.find(task.objective).figure(metrics)
    return Score(figure, metrics.mean_jct_s, metrics.p99_jct_s)
