"""Tunes a network by evolution strategies on whole episodes, and selects the best network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, NamedTuple

import numpy as np

from adlro.model.state import Floats
from adlro.nets.q_network import Network
from adlro.seeds import StreamPurpose, TrainingPhase, training_stream
from adlro.train import checkpoint as checkpoints
from adlro.train import evolve, weights
from adlro.train.checkpoint import Candidate, Checkpoint
from adlro.train.episodes import (
    MIN_MIN,
    Episode,
    EpisodeKey,
    EpisodeSource,
    EpisodeTask,
    Player,
    play,
)
from adlro.train.evaluation import Evaluation, Evaluator, LoadComparison, percent
from adlro.train.evolve import Search
from adlro.train.executor import ThreadExecutor
from adlro.train.hyperparameters import Shares, T, TuningSettings
from adlro.train.objective import fitness
from adlro.train.run import Run, Status

SAVE_EVERY_S = 20.0
_MOST_CANDIDATES = 5  # beside the first


class DrawTask(NamedTuple):
    """Arguments for drawing one episode; picklable."""

    source: EpisodeSource
    key: EpisodeKey
    shares: Shares


def draw(task: DrawTask) -> Episode:
    """Draw the episode of a task; its random stream follows from its key."""
    return task.source.draw(task.key, task.shares, task.key.rng)


class Generation(NamedTuple):
    """The search after one generation, and the generation's mean ratios to the baseline."""

    search: Search
    ratio: float  # of the objective to the baseline's, mean over networks and episodes
    p99_ratio: float


class Tuner(NamedTuple):
    """Runs the generations of a search; all networks of a generation play the same episodes."""

    source: EpisodeSource
    settings: TuningSettings
    network: Network  # whose shapes all others have
    executor: ThreadExecutor
    baseline: Player = MIN_MIN
    objective: str = "jct"
    phase: TrainingPhase = TrainingPhase.TUNING

    def begin(self) -> Search:
        """Start a search for better weights, centred on the network's current ones."""
        return evolve.begin(weights.vector(self.network), weights.scale(self.network))

    def _ratios(self, run: int, generation: int, points: Floats) -> Floats:
        """Return the ratios [E, K, 2] to the baseline of K networks on E episodes.

        The networks have the weights `points` [K, D]. The last axis holds the objective's figure
        and the p99 JCT, each divided by the baseline's in the same episode.
        """
        count, shares = self.settings.episodes, self.settings.shares
        keys = [EpisodeKey(run, self.phase, generation * count + e) for e in range(count)]
        episodes = list(
            self.executor.map(draw, [DrawTask(self.source, key, shares) for key in keys])
        )
        networks = [weights.from_vector(self.network, point) for point in points]
        tasks = [
            EpisodeTask(episode, player, self.objective)
            for episode in episodes
            for player in (self.baseline, *networks)
        ]
        scores = np.array(list(self.executor.map(play, tasks))).reshape(count, -1, 3)
        ratios: Floats = scores[:, 1:, [0, 2]] / scores[:, :1, [0, 2]]
        return ratios

    def step(self, search: Search, run: int) -> Generation:
        """Run the next generation; everything random in it follows from `run` and its number."""
        g, seen = search.generation, np.zeros(2)
        rng = training_stream(run, self.phase, g, StreamPurpose.NOISE)

        def of_points(points: Floats) -> Floats:
            ratios = self._ratios(run, g, points)
            seen[:] = ratios.mean(axis=(0, 1))
            each = fitness(ratios[..., 0], ratios[..., 1], self.settings.tail_weight)
            return np.asarray(each.mean(axis=0))

        moved = evolve.step(search, of_points, self.settings, rng)
        return Generation(moved, *seen.tolist())


class TunedTraining(Generic[T]):
    """The steps that `adlro` and `adlro-preemptive` share: selection, tuning, final evaluation."""

    def __init__(
        self, run: Run[T], evaluator: Evaluator, baseline: Player = MIN_MIN, name: str = MIN_MIN
    ) -> None:
        self.run, self.evaluator, self.baseline, self.baseline_name = run, evaluator, baseline, name
        self.checkpoint = Checkpoint() if run.stored is None else checkpoints.unpack(*run.stored)
        self.final: Candidate | None = None  # the policy of a complete training
        self.comparison: tuple[LoadComparison, ...] = ()  # of that, load by load

    @property
    def best(self) -> Candidate:
        """The best network so far."""
        return self.checkpoint.candidates[-1]

    @property
    def _is_guarded(self) -> bool:
        """Whether networks with a longer p99 JCT than Min-Min's are rejected."""
        return self.baseline_name == MIN_MIN

    def save(self) -> None:
        """Write a checkpoint."""
        self.run.save(*checkpoints.pack(self.checkpoint))

    def save_if_due(self) -> None:
        """Write a checkpoint if the last one is more than SAVE_EVERY_S seconds old."""
        if self.run.is_save_due(SAVE_EVERY_S):
            self.save()

    def report(self, phase: str, share: float, step: str = "") -> None:
        """Report the progress, with the best result so far."""
        summary = ""
        if self.checkpoint.candidates:
            gain = percent(self.best.evaluation.gain)
            summary = f"vs {self.baseline_name} {gain}, {self.best.source}"
        self.run.report(Status(phase, share, step, summary))

    def evaluate(self, network: Network) -> Evaluation:
        """Compare a network with the baseline on the selection seeds."""
        count = self.run.hyperparameters.selection.seeds
        return self.evaluator.evaluate(network, count, self.baseline)

    def consider(self, network: Network, source: str, step: int) -> Evaluation:
        """Evaluate a network, and make it the best if it is safe and better than all before it."""
        found = self.evaluate(network)
        candidates, best = self.checkpoint.candidates, self.best.evaluation.figure
        is_safe = found.is_safe or not self._is_guarded
        is_better = is_safe and found.figure < best
        if is_better:
            candidates = (*candidates, Candidate(network, found, source))
            candidates = (candidates[0], *candidates[1:][-_MOST_CANDIDATES:])
        played = found.seeds * len(self.evaluator.loads)
        if found.wide is not None:
            played += found.wide.gain.windows
        self.checkpoint = self.checkpoint._replace(
            candidates=candidates, episodes=self.checkpoint.episodes + played
        )
        low, high = found.gain.ci95 or (found.gain.mean, found.gain.mean)
        figures = {
            "gain_pct": found.gain.mean, "gain_low": low, "gain_high": high,
            "p99_ratio": found.p99_ratio, "is_kept": float(is_better),
            "best_gain_pct": candidates[-1].evaluation.gain.mean,
        }  # fmt: skip
        if found.wide is not None:
            figures |= {"wide_pct": found.wide.gain.mean_pct, "wide_p99": found.wide.p99_ratio}
        self.run.folder.log("selection", step, figures)
        return found

    def tune(self, tuner: Tuner, search: Search, share: float, steps: int) -> None:
        """Run generations until all are done, or until too many evaluations found nothing better.

        Args:
            tuner: evaluates generations.
            search: state to continue from: a new one, or that of the checkpoint.
            share: share of all work that is done before the tuning, 0 to 1.
            steps: number of evaluations before the tuning, for the metrics.
        """
        settings, patience = tuner.settings, self.run.hyperparameters.selection.patience
        while search.generation < settings.generations and self.checkpoint.stale < patience:
            done = share + (1 - share) * search.generation / settings.generations
            step = f"generation {search.generation + 1} of {settings.generations}"
            self.report("tuning", done, step)
            generation = tuner.step(search, self.run.request.seed)
            search = generation.search
            self._evaluate_search(tuner, search, steps)
            figures = {"ratio": generation.ratio, "p99_ratio": generation.p99_ratio}
            self.run.folder.log("tuning", search.generation, figures)
            played = settings.episodes * (2 * settings.pairs + 1)
            self.checkpoint = self.checkpoint._replace(
                search=search, episodes=self.checkpoint.episodes + played
            )
            self.save_if_due()

    def _evaluate_search(self, tuner: Tuner, search: Search, steps: int) -> None:
        """Evaluate the averaged weights if an evaluation is due after this generation.

        Call it before the generation is logged: if the evaluation is stopped, the generation will
        be run again.
        """
        g, settings = search.generation, tuner.settings
        if g % settings.evaluate_every and g != settings.generations:
            return
        network, before = weights.from_vector(tuner.network, search.averaged()), self.best
        self.consider(network, f"generation {g}", steps + g)
        stale = 0 if self.best is not before else self.checkpoint.stale + 1
        self.checkpoint = self.checkpoint._replace(stale=stale)

    def finish(self, rivals: Mapping[str, Player]) -> None:
        """Choose the best candidate that is safe on the final seeds too; compare it with rivals."""
        self.report("final evaluation", 1.0)
        count = self.run.hyperparameters.selection.final_seeds
        for candidate in reversed(self.checkpoint.candidates):
            found = self.evaluator.evaluate(candidate.network, count)
            if found.is_safe or not self._is_guarded:
                break
        comparison = self.evaluator.compare(candidate.network, rivals, count)
        self.final, self.comparison = candidate._replace(evaluation=found), comparison

    def chosen(self) -> Candidate:
        """Return the candidate that becomes the policy, evaluated against Min-Min.

        Raises:
            KeyboardInterrupt: no network was evaluated yet.
        """
        if self.final is not None:
            return self.final
        if not self.checkpoint.candidates:
            raise KeyboardInterrupt
        if self.baseline_name == MIN_MIN:
            return self.best
        count = self.run.hyperparameters.selection.seeds
        return self.best._replace(evaluation=self.evaluator.evaluate(self.best.network, count))
