"""A training as a user starts it: folder and plan, Ctrl-C, and the policy's files at the end."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from adlro.config.files import adjusted
from adlro.errors import ConfigError, OutputError
from adlro.files import check_writable
from adlro.policies.loading import learned
from adlro.policies.loading.card import AnyCard, Budget, Figure, Provenance, Seeds
from adlro.sim.simulator import warm_up
from adlro.train import family, seeds, weights
from adlro.train.budget import measure, scaled_to_episodes, scaled_to_time
from adlro.train.checkpoint import Kept, Standing
from adlro.train.episodes import DRAIN_ARGMIN, MIN_MIN, Ground, named
from adlro.train.executor import Crew, Stopped
from adlro.train.labelling import Labelling
from adlro.train.objective import find
from adlro.train.recipe import SELF
from adlro.train.selection import Look
from adlro.train.store import Folder, Plan, Wish, difference
from adlro.train.trainer import Outcome, Row, Status, Trainer
from adlro.workloads.setting import prepare

_LONGEST_NAME = 80  # as in policies/loading/card.py
_WARM_JOBS, _WARM_PHASE = 20, 13  # of an episode that is played to compile; see seeds.training

Tell = Callable[[Status], object]


class Result(NamedTuple):
    """What a session left behind."""

    card: AnyCard
    kept: Kept
    table: tuple[Row, ...]  # empty = it was stopped before
    is_whole: bool


class Files(NamedTuple):
    """Where a policy and its training are; `out` is the name of the policy without an ending."""

    out: Path

    @property
    def weights(self) -> Path:
        """The .npz file; the card is beside it."""
        return self.out.with_name(f"{self.out.name}.npz")

    @property
    def both(self) -> tuple[Path, ...]:
        """The weights and the card, from the root on."""
        return tuple(self.weights.with_suffix(end).absolute() for end in learned.SUFFIXES)

    @property
    def folder(self) -> Path:
        """Of the training."""
        return self.out.with_name(f"{self.out.name}-training")


def files(out: Path) -> Files:
    """By the name of a policy, or of either of its files.

    Raises:
        OutputError: it cannot be written there.
    """
    name = out.name
    for ending in learned.SUFFIXES:
        name = name.removesuffix(ending)
    if not (name.strip(". ") and name.isprintable() and len(name) <= _LONGEST_NAME):
        raise OutputError(
            f"--out {out}: {name!r} is no name for a policy; take one of 1 to {_LONGEST_NAME} "
            "printable characters"
        )
    found = Files(out.with_name(name))
    check_writable(found.weights)
    return found


def compile_all(wish: Wish) -> None:
    """Compile, or load, whatever will run; with an empty cache this takes a minute."""
    setting = prepare(wish.scenario)
    names = {MIN_MIN, DRAIN_ARGMIN}.union(*(each.behaviours for each in wish.recipe.rounds))
    own = weights.policy(weights.zeros((1, 1)), setting)
    warm_up([own, *(named(name, setting) for name in sorted(names - {SELF}))])
    short = adjusted(wish.scenario, jobs=min(wish.scenario.jobs, _WARM_JOBS))
    wanted = wish.recipe.rounds[0].model_copy(update={"family_share": 0.0})
    ground = Ground(short, wish.recipe.loads)
    Labelling(ground, wanted, wish.seed, _WARM_PHASE, weights.zeros((1, 1))).label(0)


def _plan(wish: Wish, folder: Folder, cpu_s: Callable[[], float]) -> Plan:
    """The plan of the folder, or a new one."""
    found = folder.begun(Plan(wish=wish, recipe=wish.recipe), difference)
    if found is not None:
        return found
    recipe = wish.recipe
    if wish.budget_s is not None:
        speeds = measure(wish, recipe)
        recipe = scaled_to_time(wish, cpu_s(), wish.budget_s, speeds)
    elif wish.episodes is not None:
        recipe = scaled_to_episodes(recipe, wish.episodes)
    plan = Plan(wish=wish, recipe=recipe)
    folder.write_plan(plan)
    return plan


def train(wish: Wish, where: Files, *, threads: int, is_fresh: bool, tell: Tell) -> Result:
    """Train, or go on training; Ctrl-C ends it with the best network so far.

    Raises:
        ConfigError: the folder is of another training, or the scenario leaves nothing to learn.
        OutputError: the files cannot be written.
        KeyboardInterrupt: Ctrl-C before anything was there to be kept.
    """
    if where.weights.exists() and not where.folder.exists() and not is_fresh:
        raise ConfigError(
            f"{where.weights}: is there already; say --fresh to replace it, or choose another --out"
        )
    folder, crew = Folder(where.folder), Crew(threads)
    with folder.held():
        if is_fresh:
            folder.clear()
        begin = time.process_time()
        plan = _plan(wish, folder, lambda: time.process_time() - begin)
        trainer = Trainer(plan, folder, crew, tell)
        outcome = _run(trainer, crew)
        card = learned.save(where.weights, outcome.kept.network, _origin(plan, outcome, where))
        return Result(card, outcome.kept, outcome.table, bool(outcome.table))


def _run(trainer: Trainer, crew: Crew) -> Outcome:
    """Run in another thread, so that Ctrl-C reaches this one at once."""
    background = ThreadPoolExecutor(1)
    try:
        future: Future[Outcome] = background.submit(trainer.run)
        try:
            return future.result()
        except KeyboardInterrupt:
            crew.stop()
            return future.result()  # if it was done just then
    except Stopped:
        kept = trainer.standing.kept
        if not kept:
            raise KeyboardInterrupt from None
        return Outcome(kept[-1], (), trainer.standing)
    finally:
        crew.dismiss()
        background.shutdown(wait=False)


def _about(plan: Plan, outcome: Outcome) -> str:
    look = outcome.kept.look
    objective = find(plan.wish.objective)
    return (
        f"Trained by adlro train for {objective.about}; taken from {outcome.kept.source}. On "
        f"{look.seeds} selection seeds {objective.about} {look.gain.mean:+.2f} % and p99 JCT "
        f"{100 * (look.p99_ratio - 1):+.2f} % against min-min; networks with a larger p99 JCT than "
        "min-min there are never kept."
    )


def _family(plan: Plan) -> str:
    wish, recipe = plan.wish, plan.recipe
    low, high = min(recipe.loads[0], wish.scenario.load), max(recipe.loads[1], wish.scenario.load)
    name = wish.scenario.name
    return (
        f"{name} at load {low:g} to {high:g}, and random relatives of it: load "
        f"{family.LOADS[0]:g} to {family.OVERLOADS[1]:g}, other mixes, sizes and gangs, bursts, "
        f"waves, estimates with noise up to {family.SIGMAS[1]:g}, other numbers and models of nodes"
    )


def _figures(look: Look, scenario: str) -> tuple[Figure, ...]:
    used = Seeds(first=seeds.SELECTION[0], last=seeds.SELECTION[look.seeds - 1])
    return tuple(
        Figure(
            scenario=scenario,
            load=at.load,
            mean_jct_pct=at.jct.mean,
            ci95=at.jct.ci95 or (at.jct.mean, at.jct.mean),
            seeds=used,
        )
        for at in look.loads
    )


def _origin(plan: Plan, outcome: Outcome, where: Files) -> Provenance:
    standing: Standing = outcome.standing
    return Provenance(
        name=where.out.name,
        about=_about(plan, outcome),
        objective=plan.wish.objective,
        family=_family(plan),
        budget=Budget(
            cpu_s=round(standing.cpu_s, 1),
            labelled_states=standing.states,
            episodes=standing.episodes,
        ),
        seeds=seeds.block(plan.wish.seed),
        selection=_figures(outcome.kept.look, plan.wish.scenario.name),
        date=datetime.datetime.now(datetime.UTC).date(),
    )
