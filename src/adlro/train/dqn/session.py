"""A training of the paper's DQN as a user starts it: folder and plan, Ctrl-C, and the files."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.evaluate.stats import Estimate, percent_difference
from adlro.policies.loading import learned
from adlro.policies.loading.card import AnyCard, Budget, Figure, Provenance, Seeds
from adlro.sim.simulator import warm_up
from adlro.train import seeds
from adlro.train.dqn import evaluation
from adlro.train.dqn.course import Course
from adlro.train.dqn.plan import Plan, Wish, difference, scaled
from adlro.train.dqn.trainer import FCFS, Point, Status, Trainer
from adlro.train.episodes import MIN_MIN, named
from adlro.train.executor import Stopped
from adlro.train.session import Files
from adlro.train.store import Folder
from adlro.workloads.setting import prepare

_CARE = 0.9  # share of a budget that is planned with
_TRIED_S = 1.0  # CPU seconds by which the speed is known
_SHOWN = 11  # points of the curve that the card tells
_WARM_COPIES = 2

Tell = Callable[[Status], object]


class Result(NamedTuple):
    """What a session left behind."""

    card: AnyCard
    points: tuple[Point, ...]
    levels: dict[str, float]  # mean JCT of other policies on the seeds of the points
    gain: Estimate  # of the last network's mean JCT on Min-Min's, percent
    is_whole: bool


def _tiny(wish: Wish) -> Course:
    """A course that is over soon: to compile."""
    few = {"copies": _WARM_COPIES, "batch": 2, "warm_up": 1, "replay": 100}
    return Course(wish.scenario, wish.recipe.model_copy(update=few), wish.seed)


def compile_all(wish: Wish) -> None:
    """Compile, or load, whatever will run; with an empty cache this takes a minute."""
    setting = prepare(wish.scenario)
    course = _tiny(wish)
    own = evaluation.policy(course.learner.network(), setting)
    warm_up([own, *(named(name, setting) for name in (FCFS, MIN_MIN))])
    course.step()


def _episode_s(wish: Wish) -> float:
    """CPU seconds of an episode while batches are learned."""
    recipe = wish.recipe.model_copy(update={"warm_up": 1})
    course = Course(wish.scenario, recipe, wish.seed)
    course.step()
    begin, before = time.thread_time(), course.steps
    while time.thread_time() - begin < _TRIED_S:
        course.step()
    return (time.thread_time() - begin) / (course.steps - before) * recipe.jobs


def _plan(wish: Wish, folder: Folder) -> Plan:
    """The plan of the folder, or a new one."""
    found = folder.begun(Plan(wish=wish, recipe=wish.recipe), difference)
    if found is not None:
        return found
    episodes = wish.recipe.episodes
    if wish.budget_s is not None:
        episodes = max(int(_CARE * wish.budget_s / _episode_s(wish)), 1)
    plan = Plan(wish=wish, recipe=scaled(wish.recipe, episodes))
    folder.write_plan(plan)
    return plan


def train(wish: Wish, where: Files, *, is_fresh: bool, tell: Tell) -> Result:
    """Train, or go on training; Ctrl-C ends it with the network as it is then.

    Raises:
        ConfigError: the folder is of another training.
        OutputError: the files cannot be written.
    """
    if where.weights.exists() and not where.folder.exists() and not is_fresh:
        raise ConfigError(
            f"{where.weights}: is there already; say --fresh to replace it, or choose another --out"
        )
    folder, stop = Folder(where.folder), threading.Event()
    with folder.held():
        if is_fresh:
            folder.clear()
        plan = _plan(wish, folder)
        trainer = Trainer(plan, folder, tell, stop.is_set)
        is_whole = _run(trainer, stop)
        gain = _gain(trainer, plan.recipe.final_seeds)
        origin = _origin(plan, trainer, gain, where)
        card = learned.save(where.weights, trainer.network, origin)
        return Result(card, trainer.points, trainer.levels, gain, is_whole)


def _run(trainer: Trainer, stop: threading.Event) -> bool:
    """Run in another thread, so that Ctrl-C reaches this one at once; False = stopped before."""
    background = ThreadPoolExecutor(1)
    try:
        future = background.submit(trainer.run)
        try:
            future.result()
        except KeyboardInterrupt:
            stop.set()
            future.result()
    except Stopped:
        return False
    finally:
        stop.set()
        background.shutdown(wait=False)
    return True


def _gain(trainer: Trainer, count: int) -> Estimate:
    ours = trainer.track.play_network(trainer.network, count)
    return percent_difference(ours, trainer.track.rival(MIN_MIN, count))


def _some(points: Sequence[Point]) -> list[Point]:
    """The first, the last and some between."""
    last = len(points) - 1
    places = sorted({round(i * last / (_SHOWN - 1)) for i in range(_SHOWN)})
    return [points[place] for place in places]


def _about(plan: Plan, trainer: Trainer) -> str:
    recipe, points = plan.recipe, trainer.points
    kind = f"{'double ' if recipe.is_double else ''}{'dueling ' if recipe.is_dueling else ''}DQN"
    curve = ", ".join(f"{point.episodes}: {point.jct_s:.0f}" for point in _some(points))
    fcfs, min_min = trainer.levels[FCFS], trainer.levels[MIN_MIN]
    return (
        f"The paper's {kind}, {recipe.backbone}, window {recipe.window}, trained for "
        f"{trainer.course.episodes} episodes of {recipe.jobs} jobs, {recipe.samples:g} samples a "
        f"step in {trainer.course.learner.batches} batches; the last network. Mean JCT in s on "
        f"{recipe.look_seeds} selection seeds by episodes: {curve}; fcfs {fcfs:.0f}, min-min "
        f"{min_min:.0f}."
    )


def _family(scenario: Scenario, jobs: int) -> str:
    return f"{scenario.name} at load {scenario.load:g}, in episodes of {jobs} jobs"


def _origin(plan: Plan, trainer: Trainer, gain: Estimate, where: Files) -> Provenance:
    wish, count = plan.wish, len(seeds.SELECTION[: plan.recipe.final_seeds])
    used = Seeds(first=seeds.SELECTION[0], last=seeds.SELECTION[count - 1])
    figure = Figure(
        scenario=wish.scenario.name,
        load=wish.scenario.load,
        mean_jct_pct=gain.mean,
        ci95=gain.ci95 or (gain.mean, gain.mean),
        seeds=used,
    )
    weight = wish.recipe.idle_weight or wish.scenario.idle_weight
    return Provenance(
        name=where.out.name,
        about=_about(plan, trainer),
        objective=f"the paper's R = -(JCT + {weight:g} * idle)",
        family=_family(wish.scenario, plan.recipe.jobs),
        budget=Budget(cpu_s=round(trainer.cpu_s, 1), episodes=trainer.course.episodes),
        seeds=seeds.block(wish.seed),
        selection=(figure,),
        date=datetime.datetime.now(datetime.UTC).date(),
    )
