"""Training of adlro-preemptive's weights for pairs: evolution from Hetero-SRPT on.

A network of zeros weighs pairs as Hetero-SRPT does; evolution strategies (evolve.py) move it by the
mean JCT of whole episodes, as a ratio to that of the zeros on the same jobs. Every number of it is
in the recipe, and all that is random follows from the run and the number of the generation: a run
that was interrupted goes on from its checkpoint and ends with the same weights.

    python -m adlro.train.preemptive --out FILE.npz
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.errors import AdlroError, ConfigError, OutputError
from adlro.evaluate.stats import Estimate, percent_difference
from adlro.features.pair_kernel import PAIR_FEATURES
from adlro.model.context import Context
from adlro.model.record import Record
from adlro.model.state import Floats
from adlro.nets.q_network import Network, flat
from adlro.policies import adlro_preemptive
from adlro.policies.loading import learned
from adlro.policies.loading.card import AnyCard, Budget, Figure, Provenance, Seeds
from adlro.policies.registry import Policy
from adlro.train import evolve, family, objective, seeds, weights
from adlro.train.episodes import MIN_MIN, Place, World, named, play
from adlro.train.evolve import Search
from adlro.train.executor import Crew
from adlro.train.recipe import Tuning, Units
from adlro.train.session import files
from adlro.workloads.setting import Setting, prepare

NAME = "adlro-preemptive"
_PHASE, _INITIAL = 17, 2  # of seeds and random streams: see seeds.training and Place
_OPEN = 5.0  # bias of the unit that is linear
_SPREAD = 0.5  # by which the last layer moves, whose weights begin as zeros
_JCT = objective.find("jct")


class Recipe(Record):
    """Every number of a training."""

    scenario: str = "gavel16"
    jobs: PositiveInt = 400  # of an episode
    loads: tuple[PositiveFloat, PositiveFloat] = (0.7, 1.05)  # between which it is drawn
    costs: tuple[PositiveFloat, PositiveFloat] = (0.1, 30.0)  # factors on a relative's checkpoints
    hidden: tuple[Units, Units] = (16, 8)
    tuning: Tuning = Tuning(
        generations=300, pairs=16, episodes=6, sigma=0.1, rate=0.04, averaging=0.95,
        family_share=0.3, tail_weight=0.02, look_every=20,
    )  # fmt: skip
    look_seeds: PositiveInt = 30  # of a look, at the scenario's own load and length
    final_seeds: Annotated[int, Field(ge=2, le=len(seeds.SELECTION))] = 200  # of the card's figure


class Look(Record):
    """A network on the selection seeds."""

    generation: int
    jct: Estimate  # percent above Hetero-SRPT's
    p99: Estimate


class Status(NamedTuple):
    """How far a training is."""

    generation: int
    ratio: float  # mean over the networks of the generation, to Hetero-SRPT
    looks: tuple[Look, ...]  # so far


Tell = Callable[[Status], object]


class Kept(NamedTuple):
    """The best network so far, and where the search is."""

    search: Search
    best: Floats  # as weights.vector gives it
    looks: tuple[Look, ...]
    cpu_s: float


def begin(recipe: Recipe, run: int) -> Network:
    """Hetero-SRPT, whatever the random layers say, as the last layer takes no notice of them.

    It does of one unit, which begins as a constant and is open: through it the cost can become any
    linear function of the features, which is the first thing that a search finds.
    """
    rng = np.random.default_rng((run, _PHASE, _INITIAL))
    inputs, (units, more) = len(PAIR_FEATURES), recipe.hidden
    first = rng.normal(0.0, np.sqrt(2 / inputs), (inputs, units))
    second = rng.normal(0.0, np.sqrt(2 / units), (units, more))
    first_bias, last = np.zeros(units), np.zeros(more)
    first[:, 0], second[:, 0], second[0] = 0.0, 0.0, 0.0
    first_bias[0], second[0, 0], last[0] = _OPEN, 1.0, 1.0
    residual = np.array([1.0, 0.0])
    return Network(PAIR_FEATURES, residual, first, first_bias, second, np.zeros(more), last)


def _scale(network: Network) -> Floats:
    """How far each weight moves: as layers are drawn; biases as the layer's weights."""
    first, second = network.first.shape[1], network.second.shape[1]
    of_first, of_second = np.sqrt(2 / len(network.first)), np.sqrt(2 / first)
    sizes = (network.first.size, first, network.second.size, second, second)
    return np.repeat((of_first, of_first, of_second, of_second, _SPREAD), sizes)


def policy(network: Network, context: Context) -> Policy:
    """A network made ready for a cluster."""
    # a policy's functions carry no types: pyproject says so of that package
    params: Floats = adlro_preemptive.params(context, flat(network, PAIR_FEATURES))  # type: ignore[no-untyped-call]  # policies have one untyped signature
    memory: int = adlro_preemptive.memory(context)  # type: ignore[no-untyped-call]  # policies have one untyped signature
    return Policy(NAME, adlro_preemptive.decide, params, memory, None, 0, True)


def draw(recipe: Recipe, place: Place) -> World:
    """The scenario at a random load, or a relative of it whose checkpoints cost more or less."""
    rng, base = place.rng, adjusted(find_scenario(recipe.scenario), jobs=recipe.jobs)
    if rng.random() < recipe.tuning.family_share:
        scenario = _with_costs(family.draw(base, rng), recipe.costs, rng)
    else:
        scenario = adjusted(base, load=round(float(rng.uniform(*recipe.loads)), 3))
    setting, seed = prepare(scenario), seeds.training(*place)
    return World(setting, seeds.jobs(setting, seed), seed)


def _with_costs(
    scenario: Scenario, costs: tuple[float, float], rng: np.random.Generator
) -> Scenario:
    """The same with all checkpoints dearer or cheaper by one random factor."""
    factor = float(np.exp(rng.uniform(*np.log(costs))))
    data = scenario.model_dump()
    for job_type in data["types"]:
        if job_type["checkpoint_s"] is not None:
            job_type["checkpoint_s"] = round(job_type["checkpoint_s"] * factor, 3)
    return Scenario.model_validate(data)


class Training:
    """One run of a recipe."""

    def __init__(self, recipe: Recipe, run: int, crew: Crew) -> None:
        self._recipe, self._run, self._crew = recipe, run, crew
        self._network = begin(recipe, run)
        self._court = prepare(find_scenario(recipe.scenario))
        self._rivals: dict[int, Floats] = {}
        self._ratio = 1.0

    def begin(self) -> Kept:
        """Before the first generation."""
        start = weights.vector(self._network)
        return Kept(evolve.begin(start, _scale(self._network)), start, (), 0.0)

    def network(self, vector: Floats) -> Network:
        """The network of these weights."""
        return weights.from_vector(self._network, vector)

    def _fitness(self, generation: int, points: Floats) -> Floats:
        """Of each of the points [K, D]: the mean ratio to the network that it began with."""
        tuning = self._recipe.tuning
        first = generation * tuning.episodes
        places = [Place(self._run, _PHASE, first + e) for e in range(tuning.episodes)]
        worlds = list(self._crew.do(lambda place: draw(self._recipe, place), places))
        everyone = [self._network, *(self.network(point) for point in points)]

        def one(task: tuple[World, Network]) -> tuple[float, float]:
            world, network = task
            score = play(world, policy(network, world.setting), _JCT)
            return score.jct_s, score.p99_jct_s

        tasks = [(world, network) for world in worlds for network in everyone]
        found = np.array(list(self._crew.do(one, tasks))).reshape(len(worlds), len(everyone), 2)
        ratios = found[:, 1:] / found[:, :1]
        self._ratio = float(ratios[..., 0].mean())
        each = objective.fitness(ratios[..., 0], ratios[..., 1], tuning.tail_weight)
        return np.asarray(each.mean(axis=0))

    def judge(self, player: Callable[[Setting], Policy], count: int) -> Floats:
        """Mean and p99 JCT [S, 2] of a policy on the first selection seeds."""

        def one(seed: int) -> tuple[float, float]:
            world = World(self._court, seeds.jobs(self._court, seed), seed)
            score = play(world, player(self._court), _JCT)
            return score.jct_s, score.p99_jct_s

        return np.array(list(self._crew.do(one, seeds.SELECTION[:count])))

    def look(self, generation: int, vector: Floats, count: int) -> Look:
        """A network against the one that it began with."""
        if count not in self._rivals:
            self._rivals[count] = self.judge(lambda setting: policy(self._network, setting), count)
        own, rival = (
            self.judge(lambda setting: policy(self.network(vector), setting), count),
            self._rivals[count],
        )
        jct, p99 = (percent_difference(own[:, i], rival[:, i]) for i in range(2))
        return Look(generation=generation, jct=jct, p99=p99)

    def step(self, kept: Kept) -> Kept:
        """The next generation, and a look where it is due."""
        begun, g = time.process_time(), kept.search.generation
        rng = np.random.default_rng((self._run, _PHASE, g, 1))
        search = evolve.step(
            kept.search, lambda points: self._fitness(g, points), self._recipe.tuning, rng
        )
        best, looks = kept.best, kept.looks
        if search.generation % self._recipe.tuning.look_every == 0:
            found = self.look(search.generation, search.averaged(), self._recipe.look_seeds)
            if all(found.jct.mean < earlier.jct.mean for earlier in looks):
                best = search.averaged()
            looks = (*looks, found)
        return Kept(search, best, looks, kept.cpu_s + time.process_time() - begun)

    def status(self, kept: Kept) -> Status:
        """For people."""
        return Status(kept.search.generation, self._ratio, kept.looks)


def _save(path: Path, recipe: Recipe, run: int, kept: Kept) -> None:
    meta = {
        "recipe": recipe.model_dump(mode="json"), "run": run, "cpu_s": kept.cpu_s,
        "looks": [look.model_dump(mode="json") for look in kept.looks],
    }  # fmt: skip
    beside = path.with_name(f".{path.name}")
    arrays: dict[str, Any] = {**kept.search._asdict(), "best": kept.best, "meta": json.dumps(meta)}
    with beside.open("wb") as file:
        np.savez(file, **arrays)
    beside.replace(path)


def _resume(path: Path, recipe: Recipe, run: int) -> Kept:
    """What a checkpoint holds.

    Raises:
        ConfigError: it is that of another training.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        meta = json.loads(str(arrays["meta"]))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as exc:
        raise ConfigError(f"{path}: is no checkpoint of this training; move it away") from exc
    if (meta["recipe"], meta["run"]) != (recipe.model_dump(mode="json"), run):
        raise ConfigError(
            f"{path}: is of another recipe or seed; move it away, or take another --out"
        )
    fields = {name: arrays[name] for name in Search._fields}
    search = Search(**{**fields, "generation": int(arrays["generation"])})
    looks = tuple(Look.model_validate(look) for look in meta["looks"])
    return Kept(search, arrays["best"], looks, meta["cpu_s"])


def _origin(training: Training, recipe: Recipe, run: int, kept: Kept) -> Provenance:
    """What is told of the best network."""
    scenario, count, tuning = find_scenario(recipe.scenario), recipe.final_seeds, recipe.tuning
    own = training.judge(lambda setting: policy(training.network(kept.best), setting), count)
    rival = training.judge(lambda setting: named(MIN_MIN, setting), count)
    jct = percent_difference(own[:, 0], rival[:, 0])
    played = kept.search.generation * tuning.episodes * (2 * tuning.pairs + 1)
    return Provenance(
        name=NAME,
        about="Weighs pairs of a job and a pool, for clusters that may preempt; from Hetero-SRPT",
        objective="mean JCT",
        family=f"{recipe.scenario} and relatives, {recipe.jobs} jobs, checkpoints dear and cheap",
        budget=Budget(cpu_s=kept.cpu_s, labelled_states=0, episodes=played),
        seeds=seeds.block(run),
        selection=(
            Figure(
                scenario=scenario.name, load=scenario.load, mean_jct_pct=jct.mean,
                ci95=jct.ci95 or (jct.mean, jct.mean),
                seeds=Seeds(first=seeds.SELECTION[0], last=seeds.SELECTION[count - 1]),
            ),
        ),
        date=datetime.datetime.now(tz=datetime.UTC).date(),
    )  # fmt: skip


def train(
    out: Path,
    recipe: Recipe,
    run: int,
    crew: Crew,
    tell: Tell = lambda status: None,
    until: int | None = None,
) -> AnyCard:
    """Train, or go on from the checkpoint beside `out`, and write the policy's two files.

    Args:
        out: of either file.
        recipe: what to do.
        run: the seed.
        crew: plays the episodes.
        tell: called after each generation.
        until: generation after which to stop before the recipe's last; a later call goes on.

    Raises:
        ConfigError: the checkpoint is that of another training.
        OutputError: the files cannot be written.
    """
    out = files(out).weights
    checkpoint = out.with_name(f"{out.stem}-checkpoint.npz")
    training = Training(recipe, run, crew)
    kept = _resume(checkpoint, recipe, run) if checkpoint.exists() else training.begin()
    last = recipe.tuning.generations if until is None else until
    try:
        while kept.search.generation < min(last, recipe.tuning.generations):
            kept = training.step(kept)
            _save(checkpoint, recipe, run, kept)
            tell(training.status(kept))
    except OSError as exc:
        raise OutputError(f"{checkpoint}: cannot be written: {exc.strerror}") from exc
    origin = _origin(training, recipe, run, kept)
    return learned.save(out, training.network(kept.best), origin)


def _tell(status: Status) -> None:
    line = f"generation {status.generation}: {100 * (status.ratio - 1):+.2f} %"
    if status.looks and status.looks[-1].generation == status.generation:
        jct, p99 = status.looks[-1].jct, status.looks[-1].p99
        line += f"; on selection seeds {jct.mean:+.2f} % {jct.ci95}, p99 {p99.mean:+.1f} %"
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    options = argparse.ArgumentParser(description="Train the weights of adlro-preemptive.")
    options.add_argument(
        "--out", type=Path, required=True, help="FILE.npz; the card goes beside it"
    )
    options.add_argument(
        "--seed",
        type=int,
        default=0,
        choices=range(seeds.MOST_RUNS),
        metavar="N",
        help="of the run",
    )
    options.add_argument("--until", type=int, metavar="G", help="stop after generation G")
    options.add_argument("--threads", type=int, default=1, choices=range(1, 257), metavar="N")
    given = options.parse_args(arguments)
    crew = Crew(given.threads)
    try:
        train(given.out, Recipe(), given.seed, crew, _tell, given.until)
    except AdlroError as exc:
        sys.stderr.write(f"error: {exc}\n")
        return 2
    finally:
        crew.dismiss()
    return 0


if __name__ == "__main__":
    sys.exit(main())
