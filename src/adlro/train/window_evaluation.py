"""Evaluation of policies on disjoint windows of a history, each repeated with jitter."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adlro.evaluate.compare import run_one
from adlro.evaluate.metrics import measure
from adlro.evaluate.pooled import Pooled, pool
from adlro.evaluate.stats import Estimate
from adlro.train.episodes import MIN_MIN, Player, policy
from adlro.train.evaluation import Evaluation, Evaluator, LoadGain, SelectionRuns
from adlro.train.executor import ThreadExecutor
from adlro.train.history_parts import count_windows
from adlro.workloads.generate import generate
from adlro.workloads.jitter import Jitter, jittered
from adlro.workloads.setting import Setting


class WindowTask(NamedTuple):
    """A policy and the repetition of a window that it plays."""

    setting: Setting
    window: int
    repeat: int
    player: Player


class WindowScore(NamedTuple):
    """Results of a policy in one repetition of a window."""

    jct_s: float
    p99_jct_s: float


def play_window(task: WindowTask) -> WindowScore:
    """Run a policy through a repetition of a window and return its results."""
    setting, window, repeat, player = task
    sigma = Jitter(repeat).sigma
    workload = jittered(generate(setting, window), sigma, window, repeat)
    result = run_one(setting, workload, policy(player, setting), window)
    metrics = measure(setting, workload, result)
    return WindowScore(metrics.mean_jct_s, metrics.p99_jct_s)


class Ratios(NamedTuple):
    """Differences of a policy from a rival, geometric means over windows."""

    jct: Pooled
    p99: Pooled


class WindowEvaluator(Evaluator):
    """Evaluates policies on the windows of a part of a history; each is played only once.

    The number of seeds that methods of the base take is here a number of runs: if there are fewer
    windows, each is repeated with jitter, and the mean over its repetitions counts.
    """

    def __init__(self, setting: Setting, executor: ThreadExecutor) -> None:
        super().__init__(setting.scenario, executor)
        self.setting, self.windows = setting, count_windows(setting)

    @property
    def load(self) -> float:
        """Load of the windows, with three digits."""
        return float(f"{self.loads[0]:.3g}")

    def repeats(self, count: int) -> int:
        """Return how often each window is played in `count` runs."""
        return math.ceil(count / min(self.windows, count))

    def play(self, player: Player, count: int) -> SelectionRuns:
        """Play a policy in about `count` runs; the results have one column for each window."""
        key = player if isinstance(player, str) else id(player), count
        if key in self._played:
            return self._played[key][1]
        chosen = np.linspace(0, self.windows - 1, min(self.windows, count)).round().astype(int)
        repeats = self.repeats(count)
        tasks = [
            WindowTask(self.setting, window, repeat, player)
            for window in chosen.tolist()
            for repeat in range(repeats)
        ]
        scores = np.array(list(self._executor.map(play_window, tasks)))
        jct, p99 = np.moveaxis(scores.reshape(1, len(chosen), repeats, 2).mean(axis=2), -1, 0)
        runs = SelectionRuns(jct, jct, p99)
        self._played[key] = player, runs  # holding the player keeps its id from being reused
        return runs

    def ratios(self, player: Player, count: int, baseline: Player) -> Ratios:
        """Return how a policy differs from a rival on the same windows."""
        ours, theirs = self.play(player, count), self.play(baseline, count)
        return Ratios(
            pool(np.log(ours.jct_s[0] / theirs.jct_s[0])),
            pool(np.log(ours.p99_jct_s[0] / theirs.p99_jct_s[0])),
        )

    def evaluate(self, player: Player, count: int, baseline: Player = MIN_MIN) -> Evaluation:
        """Compare a policy with a baseline in about `count` runs; windows are the unit."""
        jct, p99 = self.ratios(player, count, baseline)
        gain = Estimate(mean=jct.mean_pct, sd=None, ci95=jct.ci95)
        return Evaluation(
            seeds=jct.windows,
            gain=gain,
            p99_ratio=1 + p99.mean_pct / 100,
            loads=(LoadGain(load=self.load, jct=gain),),
        )
