"""Runs policies on the jobs of the same seeds, to the last job, and compares their metrics."""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np

from adlro.errors import PolicyError
from adlro.evaluate.calibration import Twin
from adlro.evaluate.comparison import (
    Comparison,
    PolicyRow,
    RunFigures,
    SeedRuns,
    jitter_figures,
    mean_figures,
    summarise,
)
from adlro.evaluate.metrics import measure
from adlro.evaluate.out_of_range import MOST_SEEDS, OutOfRangeTally
from adlro.evaluate.references import SeedReferences
from adlro.evaluate.rows import RECORDED
from adlro.evaluate.stats import estimate, percent_difference
from adlro.policies.loading import user_file
from adlro.policies.registry import Policy
from adlro.sim import simulator
from adlro.sim.world import EmptyCluster
from adlro.workloads.generate import generate
from adlro.workloads.jitter import Jitter, jittered
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

__all__ = ["Comparison", "PolicyRow", "Stopped", "Until", "compare", "in_background", "run_one"]

R = TypeVar("R")
Watch = Callable[[Policy, int, Workload, simulator.RunResult], object]  # policy, seed, jobs, result
References = Callable[[Setting, Workload, int], SeedReferences]  # of one seed

FIRST_BATCH = 20  # seeds before the first test of widths: intervals of few seeds may be too narrow
_AHEAD = 1_000  # seeds by which other policies may be ahead of the slowest
_GROWTH = 1.5  # factor of the number of seeds from one test of widths to the next
_FAR = 0.1  # a half width below this share of the difference is narrow enough


class Width(NamedTuple):
    """The confidence interval that is widest relative to the width wanted for it."""

    policy: str
    half: float  # half width of its interval, percentage points
    wanted: float  # largest half width that is narrow enough

    @property
    def is_narrow(self) -> bool:
        """True if this interval, and hence every other, is as narrow as wanted."""
        return self.half <= self.wanted


class Until(NamedTuple):
    """A stopping rule: run seeds from 0 on until the confidence intervals are narrow enough.

    Only their widths count, not their signs. The difference in mean JCT between each policy and the
    best one must be known to ± `points` percentage points, or to ± a tenth of the difference if
    that is more. The mean JCT of a single policy must be known to ± `points` percent.
    """

    points: float
    most: int = 2_000  # seeds
    tell: Callable[[int, Width], object] = lambda *_: (
        None
    )  # called at each test of widths with the seeds so far


class Stopped(KeyboardInterrupt):
    """Raised on Ctrl-C, with the comparison over the seeds completed until then."""

    def __init__(self, result: Comparison) -> None:
        super().__init__()
        self.result = result


@contextlib.contextmanager
def _named(policy: Policy) -> Iterator[None]:
    """Prefix the message of a PolicyError raised in the `with` block with the policy's name."""
    try:
        yield
    except PolicyError as exc:
        start = f"policy {policy.name}"
        if str(exc).startswith(start):
            raise
        raise PolicyError(f"{start}: {exc}") from exc


def run_one(
    setting: Setting, workload: Workload, policy: Policy, seed: int, *, keep_spans: bool = False
) -> simulator.RunResult:
    """Run one policy on the jobs of one seed.

    Raises:
        PolicyError: the policy made an infeasible decision, or a user's policy failed.
    """
    layout = setting.layout
    empty = EmptyCluster(layout.pools, layout.nodes, layout.gpus)
    if policy.file is None:
        with _named(policy):
            return simulator.run(empty, workload, policy, seed, keep_spans=keep_spans)
    with user_file.mistakes(policy.file, policy.line):  # a user's code gets copies: it may write
        copy = Workload._make(array.copy() for array in workload)
        result = simulator.run(empty, copy, policy, seed, keep_spans=keep_spans)
        if not all(np.array_equal(a, b) for a, b in zip(copy, workload, strict=True)):
            raise PolicyError("decide changed the jobs or their estimates, which are not its own")
        return result


def in_background(work: Callable[[], R]) -> R:
    """Run compiled work in another thread and return its result; Ctrl-C stops the wait at once."""
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(work).result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class _Task(NamedTuple):
    """What to run on each seed: the policies and, unless None, the references."""

    setting: Setting
    policies: Sequence[Policy]
    watch: Watch
    references: References | None
    jitter: Jitter | None

    def play(self, chosen: Sequence[int], seed: int) -> list[RunFigures]:
        """Run the policies with the chosen indices on one seed, in this thread."""
        if not chosen:
            return []
        workloads = self._workloads(seed)
        return [
            mean_figures([self._run(self.policies[p], workload, seed) for workload in workloads])
            for p in chosen
        ]

    def _workloads(self, seed: int) -> list[Workload]:
        """Return the workload of a seed, or its repetitions with jitter."""
        workload = generate(self.setting, seed)
        if self.jitter is None:
            return [workload]
        sigma = self.jitter.sigma
        return [jittered(workload, sigma, seed, r) for r in range(self.jitter.repeats)]

    def _run(self, policy: Policy, workload: Workload, seed: int) -> RunFigures:
        before = time.thread_time()
        result = run_one(self.setting, workload, policy, seed)
        cpu_s = time.thread_time() - before
        counted = (
            int(result.totals[key]) for key in ("decisions", "real_decisions", "preemptions")
        )
        self.watch(policy, seed, workload, result)
        return RunFigures(measure(self.setting, workload, result), cpu_s, *counted)

    def refer(self, seed: int) -> SeedReferences | None:
        """Return the references of a seed; None if they are not wanted."""
        if self.references is None:
            return None
        return self.references(self.setting, generate(self.setting, seed), seed)


def _runs_alone(policy: Policy) -> bool:
    """True if a policy must run one seed at a time.

    This holds for a user's file in plain Python, which may keep state between calls.
    """
    return policy.file is not None and not simulator.is_compiled(policy.decide)


class _Begun(NamedTuple):
    """Futures of the runs on one seed in progress."""

    shared: Future[list[RunFigures]]  # policies that run several seeds at once
    alone: Future[list[RunFigures]]  # policies that run one seed at a time
    references: Future[SeedReferences | None]


class _Workers:
    """Runs seeds in a pool of threads; policies that run one seed at a time have a separate thread.

    Compiled policies thus do not wait for a slow Python file. If `threads` is 1, there is no
    separate thread.
    """

    def __init__(self, task: _Task, threads: int) -> None:
        alone = [_runs_alone(policy) for policy in task.policies]
        self._task = task
        self._shared = [p for p, is_so in enumerate(alone) if not is_so]
        self._alone = [p for p, is_so in enumerate(alone) if is_so]
        self._many = ThreadPoolExecutor(threads)
        self._one = ThreadPoolExecutor(1) if self._alone and threads > 1 else self._many

    def _begin(self, seed: int) -> _Begun:
        task = self._task
        return _Begun(
            self._many.submit(task.play, self._shared, seed),
            self._one.submit(task.play, self._alone, seed),
            self._many.submit(task.refer, seed),
        )

    def play(self, seeds: range, done: list[SeedRuns]) -> None:
        """Run seeds and append their results to `done` in the order of the seeds."""
        order = np.argsort([*self._shared, *self._alone])
        rest = iter(seeds)
        begun = deque(self._begin(seed) for seed in islice(rest, _AHEAD))
        while begun:
            shared, alone, references = begun.popleft()
            runs = [*shared.result(), *alone.result()]
            done.append(SeedRuns([runs[i] for i in order], references.result()))
            begun.extend(self._begin(seed) for seed in islice(rest, 1))

    def dismiss(self) -> None:
        """Shut down the threads without waiting for runs in progress."""
        for pool in (self._many, self._one):
            pool.shutdown(wait=False, cancel_futures=True)


def widest(policies: Sequence[Policy], done: Sequence[SeedRuns], points: float) -> Width:
    """Return the interval that is widest relative to the width that `Until(points)` asks for."""
    jct = np.array([[run.metrics.mean_jct_s for run in seed.runs] for seed in done]).T
    if len(policies) == 1:
        alone = estimate(jct[0])
        return Width(policies[0].name, 100 * alone.half_width / alone.mean, points)
    best = int(np.argmin(jct.mean(axis=1)))
    widths = []
    for p, policy in enumerate(policies):
        if p != best:
            found = percent_difference(jct[p], jct[best])
            wanted = max(points, _FAR * abs(found.mean))
            widths.append(Width(policy.name, found.half_width, wanted))
    return max(widths, key=lambda width: width.half / width.wanted)


def _play_until(
    crew: _Workers, policies: Sequence[Policy], until: Until, done: list[SeedRuns]
) -> str:
    """Run batches of seeds until the intervals are narrow enough, or there are `until.most` seeds.

    Returns:
        A note for the comparison that says which of the two happened.
    """
    count = min(FIRST_BATCH, until.most)
    while True:
        crew.play(range(len(done), count), done)
        width = widest(policies, done, until.points)
        until.tell(count, width)
        if width.is_narrow or count >= until.most:
            break
        count = min(math.ceil(_GROWTH * count), until.most)
    chosen = "The number of seeds was chosen by the width of the intervals, not by their sign"
    is_alone = len(policies) == 1
    if width.is_narrow:
        wanted = "% of the mean" if is_alone else "points, or a tenth of the difference"
        return f"{chosen} (± {until.points:g} {wanted})."
    return (
        f"{chosen}; at the limit of {until.most:,} seeds {width.policy} was known to "
        f"± {width.half:.2g} {'% of its mean' if is_alone else 'points'}, not to "
        f"± {width.wanted:.2g}."
    )


def _play(
    crew: _Workers, policies: Sequence[Policy], seeds: range | Until, done: list[SeedRuns]
) -> list[str]:
    """Run all requested seeds, append their results to `done`, and return notes for the reader."""
    if isinstance(seeds, Until):
        return [_play_until(crew, policies, seeds, done)]
    crew.play(seeds, done)
    return []


def _refuse_twins(setting: Setting, policies: Sequence[Policy]) -> None:
    names = [policy.name for policy in policies]
    for policy in policies:
        if names.count(policy.name) > 1:
            raise PolicyError(f"two policies are called {policy.name!r}; rename a file")
        if policy.name == RECORDED and setting.played is not None:
            raise PolicyError(
                f"a policy is called {RECORDED!r}, as is the row of what happened; rename its file"
            )


def compare(  # noqa: PLR0913  all but three are optional keywords
    setting: Setting,
    policies: Sequence[Policy],
    seeds: range | Until,
    *,
    threads: int = 2,
    watch: Watch = lambda *_: None,
    references: References | None = None,
    jitter: Jitter | None = None,
) -> Comparison:
    """Run every policy on every seed and compare them; the result does not depend on `threads`.

    Args:
        setting: the prepared scenario.
        policies: policies to compare.
        seeds: at least one seed, or a stopping rule.
        threads: number of seeds run at once; users' Python files run in one more thread.
        watch: called after each run, from any thread; with jitter, after each repetition.
        references: returns the look-ahead with foresight and the lower bounds of a seed
            (evaluate/references.py); called once per seed, from any thread.
        jitter: repeat each seed with slightly changed estimates; the figures are averages.

    Raises:
        PolicyError: a policy failed or made an infeasible decision.
        Stopped: Ctrl-C after at least two complete seeds; holds the comparison over these seeds.
    """
    _refuse_twins(setting, policies)
    wanted = range(seeds.most) if isinstance(seeds, Until) else seeds
    twin, tally = Twin(setting), OutOfRangeTally(setting, wanted[:MOST_SEEDS])

    def collect(policy: Policy, seed: int, workload: Workload, result: simulator.RunResult) -> None:
        twin.watch(policy, seed, workload, result)
        tally.watch(policy, seed, workload)
        watch(policy, seed, workload, result)

    def summary(complete: Sequence[SeedRuns], notes: Sequence[str]) -> Comparison:
        found = summarise(setting, policies, wanted, complete, notes)
        played = wanted[: len(complete)]
        rows = [
            row.model_copy(update={"out_of_range": tally.figures(policy, played)})
            for row, policy in zip(found.policies, policies, strict=True)
        ]
        calibration, jittering = twin.calibration(played), jitter_figures(jitter)
        more = {"calibration": calibration, "jitter": jittering, "policies": rows}
        return found.model_copy(update=more)

    crew = _Workers(_Task(setting, policies, collect, references, jitter), threads)
    done: list[SeedRuns] = []
    try:
        notes = in_background(lambda: _play(crew, policies, seeds, done))
    except KeyboardInterrupt as exc:
        complete = done.copy()
        if len(complete) < 2:
            raise
        of = "" if isinstance(seeds, Until) else f" of {len(wanted):,}"
        notes = [f"Stopped by Ctrl-C: these are the first {len(complete):,}{of} seeds."]
        crew.dismiss()
        raise Stopped(summary(complete, notes)) from exc
    finally:
        crew.dismiss()
    return summary(done, notes)
