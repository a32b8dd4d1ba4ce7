"""The algorithm `adlro`: rounds of labelling states and fitting a network to them, then tuning.

From the second round on, most of the labelled states are ones that the network of the round before
reaches itself. Everything random follows from the run's seed and from the number of the episode,
epoch or generation, so an interrupted training ends with the same weights as an uninterrupted one.
"""

from __future__ import annotations

import functools
import itertools
import time

from adlro.config.files import adjusted
from adlro.errors import ConfigError
from adlro.nets.q_network import Network
from adlro.policies.loading.feature_ranges import FeatureRanges
from adlro.seeds import TrainingPhase, fit_seed
from adlro.sim.simulator import warm_up as warm_up_policies
from adlro.telemetry.normalise import Norm
from adlro.train import family, objective, telemetry_norm, weights
from adlro.train.budget import SHARES, measure, scaled_to_episodes, scaled_to_time
from adlro.train.checkpoint import Candidate
from adlro.train.episodes import DRAIN_ARGMIN, MIN_MIN, EpisodeSource, Player, policy
from adlro.train.evaluation import Evaluator
from adlro.train.expansion import Labels
from adlro.train.fit import Fitting, targets
from adlro.train.hyperparameters import SELF, AdlroHyperparameters
from adlro.train.labelling import (
    Labelling,
    LabelTask,
    label,
    ranges_of,
    read_labels,
    write_labels,
)
from adlro.train.plan import TrainingPlan, TrainingRequest
from adlro.train.run import Algorithm, Run, TrainedPolicy
from adlro.train.tuning import SAVE_EVERY_S, TunedTraining, Tuner
from adlro.workloads.setting import prepare

AdlroRequest = TrainingRequest[AdlroHyperparameters]
AdlroPlan = TrainingPlan[AdlroHyperparameters]

_MOST_EPISODES = 10**6  # of a round, which has no more seeds
_MOST_EMPTY = 100  # episodes without a choice after which there is nothing to learn
_WARM_UP_JOBS = 20  # of the episode that is labelled only to compile the code


class AdlroTraining(TunedTraining[AdlroHyperparameters]):
    """One training by `adlro`: labels states, fits networks, tunes the best, saves checkpoints."""

    def __init__(self, run: Run[AdlroHyperparameters]) -> None:
        request, used = run.request, run.hyperparameters
        evaluator = Evaluator(
            request.scenario, run.executor, used.selection.loads, used.objective,
            used.selection.wide,
        )  # fmt: skip
        super().__init__(run, evaluator)
        self._request, self._used = request, used
        self._source = EpisodeSource(request.scenario, used.loads)
        self._labels: list[list[Labels]] = []

    def train(self) -> None:
        """Run the steps of the training that the checkpoint does not hold yet.

        Raises:
            Stopped: the executor was stopped; all but the epoch or generation under way is saved.
        """
        try:
            if self.checkpoint.episodes == 0:
                self.evaluate_heuristics()
            for number in range(len(self._used.rounds)):
                if number >= len(self.checkpoint.networks):
                    self.label_up_to(number)
                    self.fit(number)
            self._labels.clear()
            self._tune()
            self.finish({name: name for name in (MIN_MIN, DRAIN_ARGMIN)})
        finally:
            self.save()

    @functools.cached_property
    def _norm(self) -> Norm | None:
        """Normalisation of telemetry readings; None if the scenario has no telemetry.

        It is not stored in checkpoints: the same scenario and seed always give the same.
        """
        if not self._request.scenario.telemetry:
            return None
        return telemetry_norm.observed(self._source, self._request.seed)

    def evaluate_heuristics(self) -> None:
        """Evaluate two fixed networks that imitate heuristics, as the first candidates.

        The one that acts as Min-Min is always a candidate; the one that takes the smallest drain
        cost is one only if it is safe and better.
        """
        self.report("first evaluation", 0.0)
        network = weights.like_min_min(self._used.hidden)
        candidate = Candidate(network, self.evaluate(network), MIN_MIN)
        self.checkpoint = self.checkpoint._replace(candidates=(candidate,))
        self.consider(weights.like_drain_argmin(self._used.hidden), DRAIN_ARGMIN, 0)

    def label_up_to(self, number: int) -> None:
        """Read or compute the labels of every round up to and including round `number`."""
        for k in range(len(self._labels), number + 1):
            self._labels.append(self._label(k))

    def _label(self, number: int) -> list[Labels]:
        settings = self._used.rounds[number]
        done, parts = read_labels(self.run.folder, number)
        states, fresh = sum(len(part.groups) for part in parts), list[Labels]()
        network = self.checkpoint.networks[number - 1] if number else self.best.network
        phase = TrainingPhase.LABELS + number
        work = Labelling(self._source, settings, self._request.seed, phase, network, self._norm)
        last = min(settings.episodes or _MOST_EPISODES, _MOST_EPISODES // settings.futures)
        tasks = (LabelTask(work, episode) for episode in itertools.count(done))
        results = self.run.executor.map(label, tasks)
        try:
            while states < settings.states and done + len(fresh) < last:
                so_far = max(states / settings.states, (done + len(fresh)) / last)
                self.report(f"labels, round {number + 1}", self._share(number, so_far, 0.0))
                fresh.append(next(results))
                states += len(fresh[-1].groups)
                self._refuse_empty(states, done + len(fresh), last)
                if self.run.is_save_due(SAVE_EVERY_S):
                    self._flush(number, done, fresh, states)
                    done, parts, fresh = done + len(fresh), [*parts, *fresh], []
        finally:
            results.close()
            if fresh:
                self._flush(number, done, fresh, states)
        return [*parts, *fresh]

    def _refuse_empty(self, states: int, episodes: int, last: int) -> None:
        if states == 0 and episodes >= min(_MOST_EMPTY, last):
            raise ConfigError(
                f"{self._request.scenario.name}: in {episodes} episodes no state with a choice was "
                "labelled; raise --episodes or --budget, the load or the number of jobs"
            )

    def _flush(self, number: int, first: int, fresh: list[Labels], states: int) -> None:
        write_labels(self.run.folder, number, first, fresh)
        figures = {"states": float(states)}
        self.run.folder.log(f"labels{number + 1}", first + len(fresh), figures)
        self.save()

    def _share(self, number: int, labels: float, epochs: float) -> float:
        """Share of the whole training that is done, 0 to 1.

        `labels` and `epochs` are the shares of round `number`'s labels and epochs that are done.
        """
        rounds = len(self._used.rounds)
        return (SHARES[0] * (number + labels) + SHARES[1] * (number + epochs)) / rounds

    def fit(self, number: int) -> None:
        """Fit a network to the labels of all rounds up to round `number`, and evaluate it."""
        settings, run = self._used.fit, self.run
        parts = list(itertools.chain.from_iterable(self._labels))
        costs = objective.find(self._used.objective).weights(self._request.scenario)
        seed = fit_seed(self._request.seed, number)
        fitting = Fitting(targets(parts, costs), self._used.hidden, settings, seed)
        if self.checkpoint.fitting is not None:
            fitting.restore(self.checkpoint.fitting)
        while not fitting.is_done:
            share = self._share(number, 1.0, fitting.epoch / settings.epochs)
            self.report(f"fit, round {number + 1}", share)
            quality = fitting.run_epoch(run.executor.check)
            run.folder.log(f"fit{number + 1}", fitting.epoch, quality._asdict())
            self.checkpoint = self.checkpoint._replace(fitting=fitting.arrays())
            self.save_if_due()
        network = fitting.network()
        norm = self._norm if network.reads_telemetry else None
        self._add(network._replace(norm=norm), number)

    def _add(self, network: Network, number: int) -> None:
        """Evaluate the network fitted in round `number` and add it to the checkpoint."""
        found = self.consider(network, f"round {number + 1}", number + 1)
        labelled, _ = read_labels(self.run.folder, number)
        now = self.checkpoint
        self.checkpoint = now._replace(
            networks=(*now.networks, network),
            scores=(*now.scores, found.score(self._used.tuning.tail_weight)),
            fitting=None,
            states=sum(len(part.groups) for parts in self._labels for part in parts),
            episodes=now.episodes + labelled,
        )
        self.save()

    def _tune(self) -> None:
        now, used = self.checkpoint, self._used
        start = now.networks[now.scores.index(min(now.scores))]
        tuner = Tuner(self._source, used.tuning, start, self.run.executor, objective=used.objective)
        search = now.search or tuner.begin()
        self.tune(tuner, search, SHARES[0] + SHARES[1], len(used.rounds))

    def policy(self) -> TrainedPolicy:
        """Return the best network, with what its card says about it.

        Raises:
            KeyboardInterrupt: no network was evaluated yet.
        """
        chosen, aim = self.chosen(), objective.find(self._used.objective)
        found = chosen.evaluation
        about = (
            f"Trained by adlro train for {aim.about}; taken from {chosen.source}. On "
            f"{found.seeds} selection seeds {aim.about} {found.gain.mean:+.2f} % and p99 JCT "
            f"{100 * (found.p99_ratio - 1):+.2f} % against min-min; networks with a larger p99 JCT "
            "than min-min there are never kept."
        )
        return TrainedPolicy(
            chosen.network,
            about,
            self._used.objective,
            family.described(self._request.scenario, self._used.loads),
            found,
            self.checkpoint.episodes,
            self.checkpoint.states,
            self._ranges(chosen.network.features),
        )

    def _ranges(self, features: tuple[str, ...]) -> FeatureRanges | None:
        """Return the ranges of features over all labelled states; None = there are none yet."""
        rounds = [read_labels(self.run.folder, k)[1] for k in range(len(self._used.rounds))]
        parts = [part for parts in rounds for part in parts]
        return ranges_of(features, parts)


def scaled(request: AdlroRequest) -> AdlroHyperparameters:
    """Return the hyperparameters of a request, scaled to its budget or number of episodes."""
    begin, full = time.process_time(), request.hyperparameters
    if request.budget_s is not None:
        speeds = measure(request, full)
        return scaled_to_time(request, time.process_time() - begin, request.budget_s, speeds)
    return full if request.episodes is None else scaled_to_episodes(full, request.episodes)


def warm_up(request: AdlroRequest) -> None:
    """Compile all code that the training will run, or load it from the cache.

    Compiling takes about a minute.
    """
    setting, used = prepare(request.scenario), request.hyperparameters
    names = {MIN_MIN, DRAIN_ARGMIN}.union(*(each.behaviours for each in used.rounds))
    network = weights.zeros((1, 1))
    players: list[Player] = [network, *sorted(names - {SELF})]
    warm_up_policies([policy(player, setting) for player in players])
    short = adjusted(request.scenario, jobs=min(request.scenario.jobs, _WARM_UP_JOBS))
    settings = used.rounds[0].model_copy(update={"family_share": 0.0, "wide_share": 0.0})
    source = EpisodeSource(short, used.loads)
    phase = TrainingPhase.COMPILATION
    label(LabelTask(Labelling(source, settings, request.seed, phase, network), 0))


ALGORITHM = Algorithm("adlro", "paper16", AdlroRequest, AdlroPlan, warm_up, scaled, AdlroTraining)
