"""The training of the paper's DQN: its course, a look now and then, and all of it kept on disk."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from adlro.model.record import Record
from adlro.nets.paper_network import PaperNetwork
from adlro.train.dqn.course import Course
from adlro.train.dqn.evaluation import Track
from adlro.train.dqn.plan import Plan
from adlro.train.episodes import MIN_MIN
from adlro.train.executor import Stopped
from adlro.train.store import Folder

FCFS = "fcfs"
_SAVE_EVERY_S = 60.0
_TELL_EVERY_S = 0.25


class Point(Record):
    """One point of the learning curve."""

    episodes: int
    steps: int
    batches: int
    epsilon: float
    loss: float  # mean of the batches since the point before
    training_jct_s: float | None  # mean JCT of the episodes since then, random actions included
    jct_s: float  # mean JCT of the greedy policy on the scenario, over the selection seeds


class Status(NamedTuple):
    """How it goes."""

    episodes: int
    total: int
    epsilon: float
    points: tuple[Point, ...]
    levels: dict[str, float]  # mean JCT of other policies on the same seeds
    cpu_s: float

    @property
    def done(self) -> float:
        """Share of the episodes."""
        return min(self.episodes / self.total, 1.0)


class Trainer:
    """One training, from a plan to its last network."""

    def __init__(
        self,
        plan: Plan,
        folder: Folder,
        tell: Callable[[Status], object],
        is_stopped: Callable[[], bool],
    ) -> None:
        self._plan, self._folder, self._tell, self._is_stopped = plan, folder, tell, is_stopped
        self.track = Track(plan.wish.scenario)
        self.course = Course(plan.wish.scenario, plan.recipe, plan.wish.seed)
        self.points: tuple[Point, ...] = ()
        self.levels: dict[str, float] = {}
        self.cpu_s = 0.0  # spent, in this session and those before
        self._cpu_at = 0.0
        self._saved_at = self._told_at = time.monotonic()

    @property
    def network(self) -> PaperNetwork:
        """The last one: the paper keeps no other."""
        return self.course.learner.network()

    def run(self) -> None:
        """Train to the end.

        Raises:
            Stopped: that was asked for; all is kept.
        """
        self._cpu_at = time.thread_time()  # of the thread that works
        self._take_up()
        count, total = self._plan.recipe.look_seeds, self._plan.recipe.episodes
        self.levels = {
            name: float(self.track.rival(name, count).mean()) for name in (FCFS, MIN_MIN)
        }
        while self.course.episodes < total:
            self._look_if_due()
            self._tell_if_due()
            if self._is_stopped():
                self._save()
                raise Stopped
            self.course.step()
            if time.monotonic() - self._saved_at > _SAVE_EVERY_S:
                self._save()
        if self.points[-1].episodes < total:
            self._look()
        self._tell(self._status())
        self._save()

    def _take_up(self) -> None:
        found = self._folder.checkpoint()
        if found is None:
            self._folder.open_journal(0)
            return
        arrays, meta = found
        self.course.take_up(arrays, meta)
        self.points = tuple(Point.model_validate(point) for point in meta["points"])
        self.cpu_s = meta["cpu_s"]
        self._folder.open_journal(meta["journal_bytes"])

    def _count_cpu(self) -> None:
        """To be called by the thread that works: another's clock knows nothing of it."""
        now = time.thread_time()
        self.cpu_s, self._cpu_at = self.cpu_s + now - self._cpu_at, now

    def _save(self) -> None:
        self._count_cpu()
        arrays, meta = self.course.pack()
        kept: dict[str, Any] = {"points": [p.model_dump() for p in self.points]}
        self._folder.write_checkpoint(arrays, meta | kept | {"cpu_s": self.cpu_s})
        self._saved_at = time.monotonic()

    def _look_if_due(self) -> None:
        recipe = self._plan.recipe
        if self.course.episodes * recipe.looks >= len(self.points) * recipe.episodes:
            self._look()

    def _look(self) -> None:
        course, recipe = self.course, self._plan.recipe
        jct, training = self.track.play_network(self.network, recipe.look_seeds), course.take_jct()
        point = Point(
            episodes=course.episodes,
            steps=course.steps,
            batches=course.learner.batches,
            epsilon=course.epsilon,
            loss=course.learner.take_loss(),
            training_jct_s=None if math.isnan(training) else training,
            jct_s=float(jct.mean()),
        )
        self.points = (*self.points, point)
        figures = point.model_dump(exclude_none=True)
        self._folder.note("dqn", figures.pop("episodes"), figures)
        self._tell(self._status())

    def _tell_if_due(self) -> None:
        if time.monotonic() - self._told_at > _TELL_EVERY_S:
            self._told_at = time.monotonic()
            self._tell(self._status())

    def _status(self) -> Status:
        self._count_cpu()
        course = self.course
        total = self._plan.recipe.episodes
        return Status(course.episodes, total, course.epsilon, self.points, self.levels, self.cpu_s)
