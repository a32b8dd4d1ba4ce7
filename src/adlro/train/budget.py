"""Scales hyperparameters to a budget: speeds are measured once, then the plan is fixed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from adlro.nets.q_network import Network
from adlro.seeds import TrainingPhase
from adlro.train import weights
from adlro.train.episodes import (
    DRAIN_ARGMIN,
    MIN_MIN,
    EpisodeKey,
    EpisodeSource,
    EpisodeTask,
    Player,
    play,
)
from adlro.train.expansion import Labels
from adlro.train.fit import Fitting, targets
from adlro.train.hyperparameters import (
    AdlroHyperparameters,
    FitSettings,
    LabelRound,
    Shares,
    T,
    focused,
    reduced_rounds,
)
from adlro.train.labelling import Labelling, LabelTask, label
from adlro.train.objective import find
from adlro.train.plan import TrainingRequest

QUICK_S = 240.0  # budgets below this are scaled from `reduced` hyperparameters
QUICK_EPISODES = 20_000  # so are fewer episodes
WIDE_S, WIDE_EPISODES = 3_600.0, 150_000  # smaller trainings leave out the wide family
CARE = 0.9  # share of a budget that is planned: speeds are known roughly
SHARES = (0.45, 0.10, 0.45)  # of the time, for labels, fit and tuning
_MEASURED, _PLAYED = 3, 8  # episodes labelled per round, and played, to measure speeds
_FEWEST_STATES = 300
_MOST_STATES = 3_000_000  # that fit into memory
_FEWEST_SEEDS = 10
_FINAL, _EVALUATIONS = 0.1, 0.2  # shares of the tuning's time
_TINY = 1e-6  # size of weights
_RUNS_PER_LABELLED = 40  # played episodes that take as long as labelling one


class Speeds(NamedTuple):
    """Measured CPU seconds for one unit of each kind of work in a training."""

    states: tuple[float, ...]  # to label one state, for each round
    epoch: float  # to train on one state in one epoch
    network: float  # to play an episode with the network
    baseline: float  # to play an episode with the baseline of the tuning
    rival: float  # to play one with the other policy of the final comparison
    evaluation: float | None = None  # to play the whole scenario; None = as `network`


def _cpu_s(work: Callable[[], object]) -> float:
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


def _typical_network(hidden: tuple[int, int]) -> Network:
    """Return a network for measuring speed: its tiny weights leave the decision to the drain cost.

    It takes as long to compute as any network of its size. A bad network would play more slowly,
    because it makes queues longer.
    """
    network = weights.like_drain_argmin(hidden)
    noise = np.random.default_rng(0).standard_normal(len(weights.vector(network)))
    return weights.from_vector(network, _TINY * noise)


def _fit_s(
    request: TrainingRequest[AdlroHyperparameters],
    used: AdlroHyperparameters,
    labels: Sequence[Labels],
) -> float:
    states = sum(len(part.groups) for part in labels)
    if states == 0:
        return 0.0
    data = targets(labels, find(used.objective).weights(request.scenario))
    fitting = Fitting(data, used.hidden, used.fit, 0)
    fitting.run_epoch()  # the first one is slower
    return _cpu_s(fitting.run_epoch) / states


def measure(request: TrainingRequest[AdlroHyperparameters], used: AdlroHyperparameters) -> Speeds:
    """Measure the speeds of all phases of `adlro`.

    Takes about a second for a simulated cluster of 16 GPUs, once all code is compiled.
    """
    source, network = EpisodeSource(request.scenario, used.loads), _typical_network(used.hidden)
    states, labels = [], list[Labels]()
    for settings in used.rounds:
        work = Labelling(source, settings, request.seed, TrainingPhase.MEASUREMENT, network)
        before, known = time.thread_time(), len(labels)
        labels += [label(LabelTask(work, number)) for number in range(_MEASURED)]
        found = sum(len(part.groups) for part in labels[known:])
        states.append((time.thread_time() - before) / max(found, 1))
    shares = used.tuning.shares
    playing = measure_playing(source, request.seed, (network, MIN_MIN, DRAIN_ARGMIN), shares)
    return Speeds(tuple(states), _fit_s(request, used, labels), *playing)


def measure_playing(
    source: EpisodeSource, run: int, players: Sequence[Player], shares: Shares
) -> list[float]:
    """Return the mean CPU seconds per episode of each player, all on the same few episodes."""
    keys = [EpisodeKey(run, TrainingPhase.MEASUREMENT, _MEASURED + e) for e in range(_PLAYED)]
    episodes = [source.draw(key, shares, key.rng) for key in keys]
    for episode in episodes:
        play(EpisodeTask(episode, MIN_MIN))  # draws the jobs, which are then cached

    def run_s(player: Player) -> float:
        return _cpu_s(lambda: [play(EpisodeTask(e, player)) for e in episodes]) / len(episodes)

    return [run_s(player) for player in players]


def measure_drawing(source: EpisodeSource, run: int, shares: Shares) -> float:
    """Return the mean CPU seconds for drawing an episode; relatives of a history take long."""
    begin = _MEASURED + _PLAYED
    keys = [EpisodeKey(run, TrainingPhase.MEASUREMENT, begin + e) for e in range(_PLAYED)]
    return _cpu_s(lambda: [source.draw(key, shares, key.rng) for key in keys]) / _PLAYED


def _scaled_rounds(
    rounds: Sequence[LabelRound], seconds: float, speeds: Speeds
) -> tuple[LabelRound, ...]:
    each = seconds / len(rounds)
    counts = [min(int(each / speed), _MOST_STATES) for speed in speeds.states[: len(rounds)]]
    return tuple(
        settings.model_copy(update={"states": max(count, _FEWEST_STATES), "episodes": None})
        for settings, count in zip(rounds, counts, strict=True)
    )


def _scaled_fit(
    fit: FitSettings, rounds: Sequence[LabelRound], seconds: float, speeds: Speeds
) -> FitSettings:
    states = sum(accumulate(each.states for each in rounds))  # each round fits all so far
    epochs = int(seconds / max(states * speeds.epoch, 1e-9))
    return fit.model_copy(update={"epochs": min(max(epochs, 2), fit.epochs)})


def scaled_tuning(used: T, own_load: float, seconds: float, speeds: Speeds) -> T:
    """Return hyperparameters whose tuning and evaluations together take this many CPU seconds.

    Only the number of generations and the numbers of evaluation seeds are changed.
    """
    tuning, selection = used.tuning, used.selection
    loads = len({*selection.loads, own_load})
    each = speeds.evaluation or speeds.network
    run = 2 * each + speeds.baseline + speeds.rival
    final = int(_FINAL * seconds / (run * loads))
    generation = tuning.episodes * (2 * tuning.pairs * speeds.network + speeds.baseline)
    seeds = int(_EVALUATIONS * generation * tuning.evaluate_every / (each * loads))
    fewer = {
        "final_seeds": min(max(final, _FEWEST_SEEDS), selection.final_seeds),
        "seeds": min(max(seeds, _FEWEST_SEEDS), selection.seeds),
    }
    evaluation = fewer["seeds"] * loads * each
    rest = seconds - fewer["final_seeds"] * loads * run - (2 + len(speeds.states)) * evaluation
    count = max(int(rest / (generation + evaluation / tuning.evaluate_every)), 0)
    return used.model_copy(
        update={
            "tuning": tuning.model_copy(update={"generations": count}),
            "selection": selection.model_copy(update=fewer),
        }
    )


def _for_size(full: AdlroHyperparameters, quick: float, wide: float) -> AdlroHyperparameters:
    """Return the hyperparameters of a training by its size.

    Args:
        full: the hyperparameters without a budget.
        quick: size relative to the smallest that has all rounds of labels.
        wide: size relative to the smallest that has the wide family.
    """
    if quick < 1.0:
        return reduced_rounds(full)
    return full if wide >= 1.0 else focused(full)


def scaled_to_time(
    request: TrainingRequest[AdlroHyperparameters], spent_s: float, budget_s: float, speeds: Speeds
) -> AdlroHyperparameters:
    """Scale the hyperparameters of a request to a budget, of which `spent_s` are already spent.

    Both times are CPU seconds.
    """
    full = request.hyperparameters
    used = _for_size(full, budget_s / QUICK_S, budget_s / WIDE_S)
    left = max(CARE * budget_s - spent_s, 0.0)
    rounds = _scaled_rounds(used.rounds, SHARES[0] * left, speeds)
    fit = _scaled_fit(used.fit, rounds, SHARES[1] * left, speeds)
    speeds = speeds._replace(states=speeds.states[: len(rounds)])
    tuned = scaled_tuning(used, request.scenario.load, SHARES[2] * left, speeds)
    return tuned.model_copy(update={"rounds": rounds, "fit": fit})


def with_episodes(used: T, episodes: int, *, tuned: int) -> T:
    """Return hyperparameters for about this many episodes in all, `tuned` of them for tuning."""
    tuning, selection = used.tuning, used.selection
    generations = tuned // (tuning.episodes * (2 * tuning.pairs + 1))
    fewer = {
        "seeds": min(max(episodes // 100, _FEWEST_SEEDS), selection.seeds),
        "final_seeds": min(max(episodes // 20, _FEWEST_SEEDS), selection.final_seeds),
    }
    return used.model_copy(
        update={
            "tuning": tuning.model_copy(update={"generations": generations}),
            "selection": selection.model_copy(update=fewer),
        }
    )


def scaled_search(
    request: TrainingRequest[T], reduced: Callable[[T], T], speeds: Callable[[T], Speeds]
) -> T:
    """Return the hyperparameters of a training that only tunes, scaled to its budget or episodes.

    Args:
        request: what the user asked for.
        reduced: returns hyperparameters for a small budget.
        speeds: measures the speeds of a training with these hyperparameters.
    """
    begin, full = time.process_time(), request.hyperparameters
    if request.budget_s is not None:
        used = full if request.budget_s >= QUICK_S else reduced(full)
        measured = speeds(used)
        left = max(CARE * request.budget_s - (time.process_time() - begin), 0.0)
        return scaled_tuning(used, request.scenario.load, left, measured)
    if request.episodes is not None:
        used = full if request.episodes >= QUICK_EPISODES else reduced(full)
        return with_episodes(used, request.episodes, tuned=request.episodes)
    return full


def scaled_to_episodes(full: AdlroHyperparameters, episodes: int) -> AdlroHyperparameters:
    """Return hyperparameters for about this many episodes; labels take about half of the time."""
    used = _for_size(full, episodes / QUICK_EPISODES, episodes / WIDE_EPISODES)
    labelled = max(episodes // (_RUNS_PER_LABELLED + 1) // len(used.rounds), 1)
    few = {"states": _MOST_STATES, "episodes": labelled}
    left = max(episodes - labelled * len(used.rounds), 0)
    rounds = tuple(each.model_copy(update=few) for each in used.rounds)
    return with_episodes(used, episodes, tuned=left).model_copy(update={"rounds": rounds})
