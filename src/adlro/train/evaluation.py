"""Evaluation of policies on the selection seeds, against a baseline on the same jobs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from adlro.config.files import adjusted
from adlro.config.scenario import Scenario
from adlro.evaluate.pooled import Pooled, pool
from adlro.evaluate.stats import Estimate, percent_difference
from adlro.model.record import Record
from adlro.model.state import Floats
from adlro.seeds import TrainingPhase
from adlro.train import episode_seeds
from adlro.train.episodes import (
    MIN_MIN,
    Episode,
    EpisodeKey,
    EpisodeSource,
    EpisodeTask,
    Player,
    play,
)
from adlro.train.executor import ThreadExecutor
from adlro.train.hyperparameters import Shares
from adlro.train.objective import fitness

_WIDE = Shares(relatives=0.0, wide=1.0, errors=0.5)  # of the episodes of the wide family


def percent(figure: Estimate) -> str:
    """Format a difference in percent, with its 95 % interval if there is one."""
    if figure.ci95 is None:
        return f"{figure.mean:+.2f} %"
    low, high = figure.ci95
    return f"{figure.mean:+.2f} % ({low:+.2f} to {high:+.2f})"


class SelectionRuns(NamedTuple):
    """Results of one policy at L loads on S seeds, which are the same for every policy."""

    figure: Floats  # [L, S] of the objective
    jct_s: Floats  # [L, S]
    p99_jct_s: Floats  # [L, S]


class WideRuns(NamedTuple):
    """Results of one policy on E episodes of the wide family, the same for every policy."""

    figure: Floats  # [E] of the objective
    p99_jct_s: Floats  # [E]


class LoadGain(Record):
    """Difference of mean JCT from the baseline's at one load, in percent; below 0 = better."""

    load: float
    jct: Estimate


class WideGain(Record):
    """How a policy compares with a baseline on the wide family, as geometric means of ratios."""

    gain: Pooled  # of the objective's figure
    p99_ratio: float


class Evaluation(Record):
    """How a policy compares with a baseline on the selection seeds."""

    seeds: int
    gain: Estimate  # percent by which the objective's figure is above the baseline's, all loads
    p99_ratio: float  # p99 JCT divided by the baseline's, mean over the loads
    loads: tuple[LoadGain, ...]
    wide: WideGain | None = None  # None = not evaluated on the wide family

    @property
    def figure(self) -> float:
        """The gain by which networks are selected, in percent: scenario and wide family alike."""
        return (
            self.gain.mean if self.wide is None else (self.gain.mean + self.wide.gain.mean_pct) / 2
        )

    @property
    def is_safe(self) -> bool:
        """Whether the p99 JCT is no longer than the baseline's, on the wide family neither."""
        return self.p99_ratio <= 1.0 and (self.wide is None or self.wide.p99_ratio <= 1.0)

    def score(self, tail_weight: float) -> float:
        """Return the fitness, as tuning defines it, of this evaluation; lower is better."""
        ratio, p99 = np.array(1 + self.figure / 100), np.array(self.p99_ratio)
        return float(fitness(ratio, p99, tail_weight))


class LoadComparison(Record):
    """How a policy compares with rivals at one load, on the selection seeds.

    Differences are in percent of the rival's figure; below 0 = better.
    """

    load: float
    jct: dict[str, Estimate]  # mean JCT versus each rival
    p99_vs_min_min: Estimate

    def flat(self) -> dict[str, object]:
        """Return the load and all differences with one key each, for JSON reports."""
        jct = {f"jct_vs_{name.replace('-', '_')}": x.model_dump() for name, x in self.jct.items()}
        return {"load": self.load, **jct, "p99_vs_min_min": self.p99_vs_min_min.model_dump()}


class Evaluator:
    """Evaluates policies on a scenario at several loads; each policy is played only once."""

    def __init__(
        self,
        scenario: Scenario,
        executor: ThreadExecutor,
        loads: tuple[float, ...] = (),
        objective: str = "jct",
        wide: int = 0,
    ) -> None:
        self.loads = tuple(sorted({*loads, scenario.load}))
        self._scenarios = [adjusted(scenario, load=load) for load in self.loads]
        self._executor, self._objective = executor, objective
        self._played: dict[tuple[str | int, int], tuple[Player, SelectionRuns]] = {}
        self._wide, self._played_wide = wide, dict[str | int, tuple[Player, WideRuns]]()

    def play(self, player: Player, count: int) -> SelectionRuns:
        """Play a policy on the first `count` selection seeds at every load."""
        key = player if isinstance(player, str) else id(player), count
        if key in self._played:
            return self._played[key][1]
        seeds = episode_seeds.SELECTION[:count]
        tasks = [
            EpisodeTask(Episode(scenario, seed), player, self._objective)
            for scenario in self._scenarios
            for seed in seeds
        ]
        scores = np.array(list(self._executor.map(play, tasks)))
        runs = SelectionRuns(*np.moveaxis(scores.reshape(len(self.loads), len(seeds), 3), -1, 0))
        self._played[key] = player, runs  # holding the player keeps its id from being reused
        return runs

    @functools.cached_property
    def _wide_episodes(self) -> list[Episode]:
        source = EpisodeSource(self._scenarios[0], (self.loads[0], self.loads[-1]))
        keys = [EpisodeKey(0, TrainingPhase.WIDE_SELECTION, e) for e in range(self._wide)]
        return [
            source.draw(key, _WIDE, key.rng)._replace(seed=seed)
            for key, seed in zip(keys, episode_seeds.SELECTION, strict=False)
        ]

    def play_wide(self, player: Player) -> WideRuns:
        """Play a policy on the episodes of the wide family."""
        key = player if isinstance(player, str) else id(player)
        if key not in self._played_wide:
            tasks = [EpisodeTask(one, player, self._objective) for one in self._wide_episodes]
            scores = np.array(list(self._executor.map(play, tasks)))
            self._played_wide[key] = player, WideRuns(scores[:, 0], scores[:, 2])
        return self._played_wide[key][1]

    def _wide_gain(self, player: Player, baseline: Player) -> WideGain | None:
        if self._wide == 0:
            return None
        runs, rival = self.play_wide(player), self.play_wide(baseline)
        tails = np.log(runs.p99_jct_s / rival.p99_jct_s)
        return WideGain(
            gain=pool(np.log(runs.figure / rival.figure)),
            p99_ratio=float(np.exp(tails.mean())),
        )

    def evaluate(self, player: Player, count: int, baseline: Player = MIN_MIN) -> Evaluation:
        """Compare a policy with a baseline on the first `count` selection seeds at every load."""
        runs, rival = self.play(player, count), self.play(baseline, count)
        usual = rival.figure.mean(axis=1, keepdims=True)
        gain = percent_difference(
            (runs.figure / usual).mean(axis=0), (rival.figure / usual).mean(axis=0)
        )
        p99 = runs.p99_jct_s.mean(axis=1) / rival.p99_jct_s.mean(axis=1)
        return Evaluation(
            seeds=runs.figure.shape[1],
            gain=gain,
            p99_ratio=float(p99.mean()),
            loads=tuple(
                LoadGain(load=load, jct=percent_difference(runs.jct_s[k], rival.jct_s[k]))
                for k, load in enumerate(self.loads)
            ),
            wide=self._wide_gain(player, baseline),
        )

    def compare(
        self, player: Player, rivals: Mapping[str, Player], count: int
    ) -> tuple[LoadComparison, ...]:
        """Compare a policy with rivals, load by load; `rivals` maps shown names to policies."""
        runs, usual = self.play(player, count), self.play(MIN_MIN, count)
        others = {name: self.play(rival, count) for name, rival in rivals.items()}
        return tuple(
            LoadComparison(
                load=load,
                jct={
                    name: percent_difference(runs.jct_s[k], other.jct_s[k])
                    for name, other in others.items()
                },
                p99_vs_min_min=percent_difference(runs.p99_jct_s[k], usual.p99_jct_s[k]),
            )
            for k, load in enumerate(self.loads)
        )
