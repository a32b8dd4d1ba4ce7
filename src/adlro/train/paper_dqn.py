"""The algorithm `paper-dqn`: the paper's DQN, evaluated at intervals; the last network is kept."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from adlro.evaluate.stats import Estimate
from adlro.model.record import Record
from adlro.nets.paper_network import PaperNetwork
from adlro.sim.simulator import warm_up as warm_up_policies
from adlro.train.budget import CARE
from adlro.train.dqn.hyperparameters import PaperDqnHyperparameters
from adlro.train.dqn.loop import TrainingLoop
from adlro.train.episodes import FCFS, MIN_MIN, policy
from adlro.train.evaluation import Evaluator
from adlro.train.executor import Stopped
from adlro.train.plan import TrainingPlan, TrainingRequest
from adlro.train.run import Algorithm, CurvePoint, Run, Status, TrainedPolicy
from adlro.workloads.setting import prepare

PaperDqnRequest = TrainingRequest[PaperDqnHyperparameters]
PaperDqnPlan = TrainingPlan[PaperDqnHyperparameters]

_SAVE_EVERY_S = 60.0  # the replay buffer is large
_EARLIEST = 20  # the first batch is learned after at most this part of all steps
_MEASURED_S = 1.0  # CPU seconds in which the speed is measured
_SHOWN = 11  # points of the curve on the card
_HOUR_S = 3600.0


class Point(Record):
    """One point of the learning curve."""

    episodes: int
    steps: int
    batches: int
    epsilon: float
    loss: float  # mean of the batches since the point before
    training_jct_s: float | None  # of the episodes since that point, random actions included
    jct_s: float  # mean JCT of the greedy policy on the scenario, over the selection seeds


class PaperDqnTraining:
    """One training by `paper-dqn`: learns, evaluates at intervals and saves checkpoints."""

    def __init__(self, run: Run[PaperDqnHyperparameters]) -> None:
        self.run, self._used = run, run.hyperparameters
        request = run.request
        self._evaluator = Evaluator(request.scenario, run.executor)
        self.loop = TrainingLoop(request.scenario, self._used, request.seed)
        self.points: tuple[Point, ...] = ()
        self.levels: dict[str, float] = {}  # mean JCT of rivals on the seeds of the points, s
        if run.stored is not None:
            arrays, meta = run.stored
            self.loop.restore(arrays, meta)
            self.points = tuple(Point.model_validate(point) for point in meta["points"])
        self._begun = time.monotonic(), self.loop.episodes

    @property
    def network(self) -> PaperNetwork:
        """The current network; there is no selection, so the last one is the result."""
        return self.loop.learner.network()

    def train(self) -> None:
        """Run the steps of the training that the checkpoint does not hold yet.

        Raises:
            Stopped: the executor was stopped; all steps so far are saved.
        """
        total = self._used.episodes
        self.levels = {name: self._mean_jct(name) for name in (FCFS, MIN_MIN)}
        try:
            while self.loop.episodes < total:
                if self.loop.episodes * self._used.evaluations >= len(self.points) * total:
                    self._evaluate()
                self.run.report(self._status())
                self.run.executor.check()
                self.loop.step()
                if self.run.is_save_due(_SAVE_EVERY_S):
                    self._save()
            if self.points[-1].episodes < total:
                self._evaluate()
        except Stopped:
            self._save()
            raise
        self.run.report(self._status())
        self._save()

    def _mean_jct(self, player: str | PaperNetwork) -> float:
        return float(self._evaluator.play(player, self._used.evaluation_seeds).jct_s.mean())

    def _save(self) -> None:
        arrays, meta = self.loop.pack()
        self.run.save(arrays, meta | {"points": [point.model_dump() for point in self.points]})

    def _evaluate(self) -> None:
        """Evaluate the current network and add a point to the learning curve."""
        jct_s, training = self._mean_jct(self.network), self.loop.take_jct()
        point = Point(
            episodes=self.loop.episodes,
            steps=self.loop.steps,
            batches=self.loop.learner.batches,
            epsilon=self.loop.epsilon,
            loss=self.loop.learner.take_loss(),
            training_jct_s=None if math.isnan(training) else training,
            jct_s=jct_s,
        )
        self.points = (*self.points, point)
        figures = point.model_dump(exclude_none=True)
        self.run.folder.log("dqn", figures.pop("episodes"), figures)

    def _status(self) -> Status:
        total, last = self._used.episodes, self.points[-1]
        rivals = ", ".join(f"{name} {jct_s:,.0f}" for name, jct_s in self.levels.items())
        summary = f"mean JCT {last.jct_s:,.0f} s ({rivals})"
        details = f"epsilon {self.loop.epsilon:.2f} · loss {last.loss:.4f}{self._pace()}"
        return Status(
            "training",
            min(self.loop.episodes / total, 1.0),
            f"{self.loop.episodes:,} of {total:,} episodes",
            f"{summary} · {details}",
            points=tuple(CurvePoint(min(p.episodes / total, 1.0), p.jct_s) for p in self.points),
            levels=self.levels,
        )

    def _pace(self) -> str:
        begin, before = self._begun
        done, since = self.loop.episodes - before, time.monotonic() - begin
        return f" · {done / since * _HOUR_S:,.0f} episodes/h" if done and since else ""

    def policy(self) -> TrainedPolicy:
        """Return the current network, with what its card says about it.

        Raises:
            KeyboardInterrupt: no network was evaluated yet.
        """
        if not self.points:
            raise KeyboardInterrupt
        network, scenario, used = self.network, self.run.request.scenario, self._used
        weight = used.idle_weight or scenario.idle_weight
        return TrainedPolicy(
            network,
            self._about(),
            f"the paper's R = -(JCT + {weight:g} * idle)",
            f"{scenario.name} at load {scenario.load:g}, in episodes of {used.jobs} jobs",
            self._evaluator.evaluate(network, used.final_seeds),
            self.loop.episodes,
        )

    def _about(self) -> str:
        used, levels = self._used, self.levels
        kind = f"{'double ' if used.is_double else ''}{'dueling ' if used.is_dueling else ''}DQN"
        curve = ", ".join(f"{point.episodes}: {point.jct_s:.0f}" for point in _some(self.points))
        return (
            f"The paper's {kind}, {used.backbone}, window {used.window}, trained for "
            f"{self.loop.episodes} episodes of {used.jobs} jobs, {used.samples:g} samples a "
            f"step in {self.loop.learner.batches} batches; the last network. Mean JCT in s on "
            f"{used.evaluation_seeds} selection seeds by episodes: {curve}; fcfs "
            f"{levels[FCFS]:.0f}, min-min {levels[MIN_MIN]:.0f}."
        )


def gain(trained: TrainedPolicy) -> Estimate:
    """Return the difference of the network's mean JCT from Min-Min's, in percent."""
    return trained.evaluation.loads[0].jct


def _some(points: Sequence[Point]) -> list[Point]:
    """Return at most _SHOWN points at even distances, the first and the last included."""
    last = len(points) - 1
    places = sorted({round(i * last / (_SHOWN - 1)) for i in range(_SHOWN)})
    return [points[place] for place in places]


def with_episodes(full: PaperDqnHyperparameters, episodes: int) -> PaperDqnHyperparameters:
    """Return the hyperparameters for this many episodes; short trainings begin to learn earlier."""
    most = max(episodes * full.jobs // _EARLIEST, 1)
    return full.model_copy(update={"episodes": episodes, "warm_up": min(full.warm_up, most)})


def _episode_s(request: PaperDqnRequest) -> float:
    """Measure the CPU seconds per episode while batches are learned."""
    used = request.hyperparameters.model_copy(update={"warm_up": 1})
    loop = TrainingLoop(request.scenario, used, request.seed)
    loop.step()
    begin, before = time.thread_time(), loop.steps
    while time.thread_time() - begin < _MEASURED_S:
        loop.step()
    return (time.thread_time() - begin) / (loop.steps - before) * used.jobs


def scaled(request: PaperDqnRequest) -> PaperDqnHyperparameters:
    """Return the hyperparameters of a request, scaled to its budget or number of episodes."""
    episodes = request.episodes or request.hyperparameters.episodes
    if request.budget_s is not None:
        episodes = max(int(CARE * request.budget_s / _episode_s(request)), 1)
    return with_episodes(request.hyperparameters, episodes)


def warm_up(request: PaperDqnRequest) -> None:
    """Compile all code that the training will run, or load it from the cache.

    Compiling takes about a minute.
    """
    few = {"copies": 2, "batch": 2, "warm_up": 1, "replay": 100}
    used = request.hyperparameters.model_copy(update=few)
    loop = TrainingLoop(request.scenario, used, request.seed)
    setting = prepare(request.scenario)
    players = (loop.learner.network(), FCFS, MIN_MIN)
    warm_up_policies([policy(player, setting) for player in players])
    loop.step()


ALGORITHM = Algorithm(
    "paper-dqn", "paper16", PaperDqnRequest, PaperDqnPlan, warm_up, scaled, PaperDqnTraining
)
