"""How much of each phase fits into a budget: measured once, then fixed as the plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from adlro.nets.q_network import Network
from adlro.train import weights
from adlro.train.episodes import DRAIN_ARGMIN, MIN_MIN, Ground, Place, named, play
from adlro.train.expansion import Labels
from adlro.train.fit import Fitting, targets
from adlro.train.labelling import Labelling
from adlro.train.objective import find
from adlro.train.recipe import Fit, Recipe, Round, Selection, Tuning, quick
from adlro.train.store import Wish
from adlro.train.trainer import SHARES

QUICK_S = 240.0  # budgets below this are scaled from `quick`
_QUICK_EPISODES = 20_000  # so are these
_CARE = 0.9  # share of a budget that is planned with: speeds are known roughly
_PHASE = 14  # see seeds.training; rounds have those below
_MEASURED, _PLAYED = 3, 8  # episodes that are labelled, and played
_FEWEST_STATES = 300
_MOST_STATES = 3_000_000  # what fits into memory
_FEWEST_SEEDS = 10
_LAST_LOOK, _LOOKS = 0.1, 0.2  # shares of the tuning's time
_TINY = 1e-6  # weights
_RUNS_A_LABELLED = 40  # episodes that take about as long as one that is labelled


class Speeds(NamedTuple):
    """CPU seconds."""

    states: tuple[float, ...]  # to label one state, by round
    epoch: float  # to fit one state once
    network: float  # to play an episode
    min_min: float
    drain_argmin: float


def _cpu_s(work: Callable[[], object]) -> float:
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


def _any_network(hidden: tuple[int, int]) -> Network:
    """Decides by the drain cost, and with weights too small to matter takes as long as any other.

    A bad network would be slower: it makes queues longer.
    """
    network = weights.like_drain_argmin(hidden)
    noise = np.random.default_rng(0).standard_normal(len(weights.vector(network)))
    return weights.from_vector(network, _TINY * noise)


def _fit_s(wish: Wish, recipe: Recipe, labels: Sequence[Labels]) -> float:
    states = sum(len(part.groups) for part in labels)
    if states == 0:
        return 0.0
    data = targets(labels, find(wish.objective).weights(wish.scenario))
    fitting = Fitting(data, recipe.hidden, recipe.fit, 0)
    fitting.run_epoch()  # the first one is slower
    return _cpu_s(fitting.run_epoch) / states


def measure(wish: Wish, recipe: Recipe) -> Speeds:
    """Try a little of everything; takes a second or so on 16 GPUs once all is compiled."""
    ground, network = Ground(wish.scenario, recipe.loads), _any_network(recipe.hidden)
    states, labels = [], list[Labels]()
    for wanted in recipe.rounds:
        work = Labelling(ground, wanted, wish.seed, _PHASE, network)
        before, known = time.thread_time(), len(labels)
        labels += [work.label(episode) for episode in range(_MEASURED)]
        found = sum(len(part.groups) for part in labels[known:])
        states.append((time.thread_time() - before) / max(found, 1))
    places = [Place(wish.seed, _PHASE, _MEASURED + e) for e in range(_PLAYED)]
    worlds = [ground.draw(place, recipe.tuning.family_share, place.rng) for place in places]

    def run_s(name: str | None) -> float:
        def play_all() -> None:
            for world in worlds:
                own = weights.policy(network, world.setting)
                policy = own if name is None else named(name, world.setting)
                play(world, policy, find(wish.objective))

        return _cpu_s(play_all) / len(worlds)

    rivals = run_s(None), run_s(MIN_MIN), run_s(DRAIN_ARGMIN)
    return Speeds(tuple(states), _fit_s(wish, recipe, labels), *rivals)


def _scaled_rounds(rounds: Sequence[Round], seconds: float, speeds: Speeds) -> tuple[Round, ...]:
    each = seconds / len(rounds)
    counts = [min(int(each / speed), _MOST_STATES) for speed in speeds.states[: len(rounds)]]
    return tuple(
        wanted.model_copy(update={"states": max(count, _FEWEST_STATES)})
        for wanted, count in zip(rounds, counts, strict=True)
    )


def _scaled_fit(fit: Fit, rounds: Sequence[Round], seconds: float, speeds: Speeds) -> Fit:
    states = sum(accumulate(wanted.states for wanted in rounds))  # each round fits all so far
    epochs = int(seconds / max(states * speeds.epoch, 1e-9))
    return fit.model_copy(update={"epochs": min(max(epochs, 2), fit.epochs)})


def _scaled_tuning(
    recipe: Recipe, loads: int, seconds: float, speeds: Speeds
) -> tuple[Tuning, Selection]:
    """Generations, and seeds of the looks, that take so long together."""
    tuning, selection = recipe.tuning, recipe.selection
    run = 2 * speeds.network + speeds.min_min + speeds.drain_argmin
    last = int(_LAST_LOOK * seconds / (run * loads))
    generation = tuning.episodes * (2 * tuning.pairs * speeds.network + speeds.min_min)
    seeds = int(_LOOKS * generation * tuning.look_every / (speeds.network * loads))
    fewer = {
        "final_seeds": min(max(last, _FEWEST_SEEDS), selection.final_seeds),
        "seeds": min(max(seeds, _FEWEST_SEEDS), selection.seeds),
    }
    look = fewer["seeds"] * loads * speeds.network
    rest = seconds - fewer["final_seeds"] * loads * run - (2 + len(recipe.rounds)) * look
    count = max(int(rest / (generation + look / tuning.look_every)), 0)
    return (
        tuning.model_copy(update={"generations": count}),
        selection.model_copy(update=fewer),
    )


def scaled_to_time(wish: Wish, spent_s: float, budget_s: float, speeds: Speeds) -> Recipe:
    """The wish's recipe, as much of it as a budget of CPU seconds allows."""
    recipe = wish.recipe if budget_s >= QUICK_S else quick(wish.recipe)
    left = max(_CARE * budget_s - spent_s, 0.0)
    rounds = _scaled_rounds(recipe.rounds, SHARES[0] * left, speeds)
    loads = len({*recipe.selection.loads, wish.scenario.load})
    tuning, selection = _scaled_tuning(recipe, loads, SHARES[2] * left, speeds)
    fit = _scaled_fit(recipe.fit, rounds, SHARES[1] * left, speeds)
    update = {"rounds": rounds, "fit": fit, "tuning": tuning, "selection": selection}
    return recipe.model_copy(update=update)


def scaled_to_episodes(recipe: Recipe, episodes: int) -> Recipe:
    """The recipe with about so many episodes, half of the time labelled, half in tuning."""
    recipe = recipe if episodes >= _QUICK_EPISODES else quick(recipe)
    tuning, rounds, selection = recipe.tuning, recipe.rounds, recipe.selection
    labelled = max(episodes // (_RUNS_A_LABELLED + 1) // len(rounds), 1)
    few = {"states": _MOST_STATES, "episodes": labelled}
    left = max(episodes - labelled * len(rounds), 0)
    generations = left // (tuning.episodes * (2 * tuning.pairs + 1))
    return recipe.model_copy(
        update={
            "rounds": tuple(wanted.model_copy(update=few) for wanted in rounds),
            "tuning": tuning.model_copy(update={"generations": generations}),
            "selection": selection.model_copy(
                update={
                    "seeds": min(max(episodes // 100, _FEWEST_SEEDS), selection.seeds),
                    "final_seeds": min(max(episodes // 20, _FEWEST_SEEDS), selection.final_seeds),
                }
            ),
        }
    )
