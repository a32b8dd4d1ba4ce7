"""Runs a training of any algorithm, from opening its folder to writing the policy.

A `Run` is what an algorithm works with: plan, checkpoint, metrics, executor and progress. `train`
opens the folder, handles Ctrl-C and resuming, and writes the policy and its card.
"""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from adlro.errors import ConfigError, OutputError
from adlro.files import check_writable
from adlro.nets.paper_network import PaperNetwork
from adlro.nets.q_network import Network
from adlro.policies.loading import learned
from adlro.policies.loading.card import AnyCard, Budget, Figure, Provenance, Seeds
from adlro.policies.loading.feature_ranges import FeatureRanges
from adlro.train import episode_seeds
from adlro.train.evaluation import Evaluation
from adlro.train.executor import Stopped, ThreadExecutor
from adlro.train.folder import Arrays, TrainingFolder
from adlro.train.plan import H, TrainingPlan, TrainingRequest

_LONGEST_NAME = 80  # as in policies/loading/card.py
_REPORT_EVERY_S = 0.25


class CurvePoint(NamedTuple):
    """One point of a learning curve."""

    share: float  # of the training, 0 to 1
    jct_s: float


class Status(NamedTuple):
    """Progress of a training, as reported to the user."""

    phase: str
    share: float  # of all work, 0 to 1
    step: str = ""  # within the phase
    summary: str = ""  # of results so far
    cpu_s: float = 0.0
    points: tuple[CurvePoint, ...] = ()  # learning curve, for algorithms that have one
    levels: dict[str, float] = {}  # noqa: RUF012  never changed; mean JCT of rivals, s


Report = Callable[[Status], object]


def silent(_status: Status) -> None:
    """Ignore a status: the report of a training without a progress display."""


class TrainedPolicy(NamedTuple):
    """The network that an algorithm has trained, and what its card says about it."""

    network: Network | PaperNetwork
    about: str
    objective: str
    family: str
    evaluation: Evaluation  # against min-min on the selection seeds
    episodes: int
    labelled_states: int = 0
    ranges: FeatureRanges | None = None  # of the features in training; None = not measured
    final: tuple[Figure, ...] = ()  # on jobs that no choice was based on
    has_seeds: bool = True  # False = evaluated on windows of a history, which have no seeds
    seeds: Seeds | None = None  # of the jobs that it was trained on; None = those of this run


class Training(Protocol):
    """Interface of the trainings of all algorithms."""

    def train(self) -> None:
        """Train from the checkpoint on to the end.

        If the executor is stopped, save a checkpoint and raise Stopped.
        """

    def policy(self) -> TrainedPolicy:
        """Return the policy to write; raise KeyboardInterrupt if there is none yet."""


T = TypeVar("T", bound=Training)


class Run(Generic[H]):
    """What an algorithm works with: request, checkpoint, folder, executor and progress report."""

    def __init__(
        self,
        plan: TrainingPlan[H],
        folder: TrainingFolder,
        executor: ThreadExecutor,
        report: Report = silent,
    ) -> None:
        self.request, self.hyperparameters = plan.request, plan.hyperparameters
        self.folder, self.executor, self._report = folder, executor, report
        self.stored = folder.checkpoint()
        fresh: dict[str, Any] = {"cpu_s": 0.0, "journal_bytes": 0}
        meta = fresh if self.stored is None else self.stored[1]
        folder.open_journal(meta["journal_bytes"])
        self._cpu_before, self._cpu_begin = float(meta["cpu_s"]), time.process_time()
        self._saved_at = time.monotonic()
        self._reported_at, self._phase = -_REPORT_EVERY_S, ""

    @property
    def cpu_s(self) -> float:
        """CPU seconds of this training so far, those of earlier sessions included."""
        return self._cpu_before + time.process_time() - self._cpu_begin

    def save(self, arrays: Arrays, meta: dict[str, Any]) -> None:
        """Write a checkpoint with the CPU time so far."""
        self.folder.write_checkpoint(arrays, meta | {"cpu_s": self.cpu_s})
        self._saved_at = time.monotonic()

    def is_save_due(self, every_s: float) -> bool:
        """Whether the last checkpoint was written more than `every_s` seconds ago."""
        return time.monotonic() - self._saved_at > every_s

    def report(self, status: Status) -> None:
        """Report progress at each new phase, at the end, and else at most four times a second."""
        now = time.monotonic()
        is_new = status.phase != self._phase or status.share >= 1.0
        if is_new or now - self._reported_at >= _REPORT_EVERY_S:
            self._reported_at, self._phase = now, status.phase
            self._report(status._replace(cpu_s=self.cpu_s))


class Algorithm(NamedTuple, Generic[H, T]):
    """A training algorithm: its name, default scenario, data types and functions."""

    name: str
    scenario: str  # that is trained on unless the user names another
    request: type[TrainingRequest[H]]
    plan: type[TrainingPlan[H]]
    warm_up: Callable[[TrainingRequest[H]], None]  # compiles, or loads, all that will run
    scale: Callable[[TrainingRequest[H]], H]  # hyperparameters for the budget of a request
    start: Callable[[Run[H]], T]


class PolicyFiles(NamedTuple):
    """Paths of a policy and of its training; `out` is the policy's path without a suffix."""

    out: Path

    @property
    def weights(self) -> Path:
        """Path of the .npz file; the card is beside it."""
        return self.out.with_name(f"{self.out.name}.npz")

    @property
    def both(self) -> tuple[Path, ...]:
        """Absolute paths of the weights and the card."""
        return tuple(self.weights.with_suffix(end).absolute() for end in learned.SUFFIXES)

    @property
    def folder(self) -> Path:
        """Path of the folder that holds the training's plan, checkpoint and metrics."""
        return self.out.with_name(f"{self.out.name}-training")


def policy_files(out: Path) -> PolicyFiles:
    """Return the paths for --out: the name of a policy, or of its weights or card file.

    Raises:
        OutputError: the name is not allowed, or files cannot be written there.
    """
    name = out.name
    for ending in learned.SUFFIXES:
        name = name.removesuffix(ending)
    if not (name.strip(". ") and name.isprintable() and len(name) <= _LONGEST_NAME):
        raise OutputError(
            f"--out {out}: {name!r} is no name for a policy; take one of 1 to {_LONGEST_NAME} "
            "printable characters"
        )
    found = PolicyFiles(out.with_name(name))
    check_writable(found.weights)
    return found


class TrainingResult(NamedTuple, Generic[T]):
    """Result of one session of a training, complete or not."""

    card: AnyCard
    policy: TrainedPolicy
    training: T
    is_complete: bool  # False = stopped before its end


def train(
    algorithm: Algorithm[H, T],
    request: TrainingRequest[H],
    files: PolicyFiles,
    *,
    threads: int = 1,
    is_fresh: bool = False,
    report: Report = silent,
) -> TrainingResult[T]:
    """Train a policy, or resume its training, and write it; Ctrl-C writes the policy so far.

    Raises:
        ConfigError: the folder is of another training, or the scenario leaves nothing to learn.
        OutputError: the files cannot be written.
        KeyboardInterrupt: Ctrl-C before there was a policy to keep.
    """
    if files.weights.exists() and not files.folder.exists() and not is_fresh:
        raise ConfigError(
            f"{files.weights}: is there already; say --fresh to replace it, or choose another --out"
        )
    folder, executor = TrainingFolder(files.folder), ThreadExecutor(threads)
    try:
        with folder.locked():
            if is_fresh:
                folder.clear()
            run = Run(_plan(algorithm, request, folder), folder, executor, report)
            training = algorithm.start(run)
            is_complete = _interruptible(training, executor)
            policy = training.policy()
            origin = _provenance(policy, run, files.out.name)
            card = learned.save(files.weights, policy.network, origin)
            return TrainingResult(card, policy, training, is_complete)
    finally:
        executor.shutdown()


def _plan(
    algorithm: Algorithm[H, T], request: TrainingRequest[H], folder: TrainingFolder
) -> TrainingPlan[H]:
    """Return the plan that is stored in the folder, or store a new one."""
    full = algorithm.plan(request=request, hyperparameters=request.hyperparameters)
    found = folder.plan(full)
    if found is not None:
        return found
    plan = full.model_copy(update={"hyperparameters": algorithm.scale(request)})
    folder.write_plan(plan)
    return plan


def _interruptible(training: Training, executor: ThreadExecutor) -> bool:
    """Train in another thread, so that Ctrl-C is noticed at once.

    Return True if the training was completed, False after Ctrl-C or a stopped executor.
    """
    background = ThreadPoolExecutor(1)
    future = background.submit(training.train)
    try:
        future.result()
    except (KeyboardInterrupt, Stopped):
        executor.stop()
        with contextlib.suppress(Stopped):  # not raised if the training was at its end
            future.result()
        executor.resume()
        return False
    finally:
        background.shutdown(wait=False)
    return True


def _provenance(policy: TrainedPolicy, run: Run[H], name: str) -> Provenance:
    evaluation = policy.evaluation
    seeds = episode_seeds.SELECTION[: evaluation.seeds]
    figures = tuple(
        Figure(
            scenario=run.request.scenario.name,
            load=at.load,
            mean_jct_pct=at.jct.mean,
            ci95=at.jct.ci95 or (at.jct.mean, at.jct.mean),
            seeds=Seeds(first=seeds[0], last=seeds[-1]) if policy.has_seeds else None,
        )
        for at in evaluation.loads
    )
    return Provenance(
        name=name,
        about=policy.about,
        objective=policy.objective,
        family=policy.family,
        budget=Budget(
            cpu_s=round(run.cpu_s, 1),
            labelled_states=policy.labelled_states,
            episodes=policy.episodes,
        ),
        seeds=policy.seeds or episode_seeds.block(run.request.seed),
        selection=figures,
        final=policy.final,
        date=datetime.datetime.now(datetime.UTC).date(),
        ranges=policy.ranges,
    )
