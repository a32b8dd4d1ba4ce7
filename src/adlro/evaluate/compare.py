"""Policies side by side: the same jobs for each, seed by seed, all run to the end."""

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
from adlro.evaluate.comparison import Comparison, PolicyRow, RunFigures, SeedRuns, summarise
from adlro.evaluate.metrics import measure
from adlro.evaluate.stats import estimate, percent_difference
from adlro.policies.loading import user_file
from adlro.policies.registry import Policy
from adlro.sim import simulator
from adlro.sim.world import Empty
from adlro.workloads.generate import generate
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

__all__ = ["Comparison", "PolicyRow", "Stopped", "Until", "compare", "in_background", "run_one"]

R = TypeVar("R")
Watch = Callable[[Policy, int, Workload, simulator.RunResult], object]  # policy, seed, jobs, result
Hindsight = Callable[[Setting, Workload, int], float]  # mean JCT of one seed, all known beforehand

FIRST_BATCH = 20  # seeds before a width is looked at: chance makes those of few too narrow
_AHEAD = 1_000  # seeds that most policies may be ahead of the slowest
_GROWTH = 1.5  # of the number of seeds from look to look
_FAR = 0.1  # a difference known to this share of itself is known well enough


class Width(NamedTuple):
    """The widest interval, measured by what is wanted of it."""

    policy: str
    half: float  # of its interval, percentage points
    wanted: float

    @property
    def is_narrow(self) -> bool:
        """Whether all are as narrow as wanted."""
        return self.half <= self.wanted


class Until(NamedTuple):
    """As many seeds as it takes, from 0 on: until intervals are narrow, whatever their sign.

    Every policy's difference in mean JCT to the best one shall be known to ± `points` percentage
    points, or to a tenth of itself if that is more; a policy alone, its mean JCT to ± so many
    percent.
    """

    points: float
    most: int = 2_000  # seeds
    tell: Callable[[int, Width], object] = lambda *_: None  # called with seeds so far, at each look


class Stopped(KeyboardInterrupt):
    """Ctrl-C, with the comparison over the seeds that were complete by then."""

    def __init__(self, result: Comparison) -> None:
        super().__init__()
        self.result = result


@contextlib.contextmanager
def _named(policy: Policy) -> Iterator[None]:
    """Let what a policy of ours raises on purpose begin with its name."""
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
    """One policy on the jobs of one seed.

    Raises:
        PolicyError: the policy asked for what cannot be, or a user's own failed.
    """
    layout = setting.layout
    empty = Empty(layout.pools, layout.nodes, layout.gpus)
    if policy.file is None:
        with _named(policy):
            return simulator.run(empty, workload, policy, seed, keep_spans=keep_spans)
    with user_file.mistakes(policy.file, policy.line):  # a stranger gets copies, in case it writes
        copy = Workload._make(array.copy() for array in workload)
        result = simulator.run(empty, copy, policy, seed, keep_spans=keep_spans)
        if not all(np.array_equal(a, b) for a, b in zip(copy, workload, strict=True)):
            raise PolicyError("decide changed the jobs or their estimates, which are not its own")
        return result


def in_background(work: Callable[[], R]) -> R:
    """Run compiled work in another thread, so that Ctrl-C reaches this one at once."""
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(work).result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class _Task(NamedTuple):
    """What is to be played on every seed."""

    setting: Setting
    policies: Sequence[Policy]
    watch: Watch
    hindsight: Hindsight | None

    def play(self, chosen: Sequence[int], seed: int) -> list[RunFigures]:
        """The chosen policies on one seed, in this thread."""
        if not chosen:
            return []
        workload = generate(self.setting, seed)
        runs = []
        for p in chosen:
            policy = self.policies[p]
            before = time.thread_time()
            result = run_one(self.setting, workload, policy, seed)
            cpu_s = time.thread_time() - before
            counted = (
                int(result.totals[key]) for key in ("decisions", "real_decisions", "preemptions")
            )
            runs.append(RunFigures(measure(self.setting, workload, result), cpu_s, *counted))
            self.watch(policy, seed, workload, result)
        return runs

    def look_back(self, seed: int) -> float | None:
        """Mean JCT of the plan that knows all jobs of a seed."""
        if self.hindsight is None:
            return None
        return self.hindsight(self.setting, generate(self.setting, seed), seed)


def _runs_alone(policy: Policy) -> bool:
    """A user's Python file may keep things between calls: its seeds go one after the other."""
    return policy.file is not None and not simulator.is_compiled(policy.decide)


class _Begun(NamedTuple):
    """A seed that is being played."""

    shared: Future[list[RunFigures]]
    alone: Future[list[RunFigures]]
    hindsight: Future[float | None]


class _Workers:
    """Threads that play seeds: many for most policies, one for all that run alone.

    So nobody waits for a slow Python file. With a single thread in all, everyone shares it.
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
            self._many.submit(task.look_back, seed),
        )

    def play(self, seeds: range, done: list[SeedRuns]) -> None:
        """Play seeds and add them to `done`, in their order, as they are complete."""
        order = np.argsort([*self._shared, *self._alone])
        rest = iter(seeds)
        begun = deque(self._begin(seed) for seed in islice(rest, _AHEAD))
        while begun:
            shared, alone, hindsight = begun.popleft()
            runs = [*shared.result(), *alone.result()]
            done.append(SeedRuns([runs[i] for i in order], hindsight.result()))
            begun.extend(self._begin(seed) for seed in islice(rest, 1))

    def dismiss(self) -> None:
        """End without waiting for what is still under way."""
        for pool in (self._many, self._one):
            pool.shutdown(wait=False, cancel_futures=True)


def widest(policies: Sequence[Policy], done: Sequence[SeedRuns], points: float) -> Width:
    """The interval that is furthest from what `Until` wants."""
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
    """Play batch after batch; returns the note on how it ended."""
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
    """Play all that is wanted; returns notes on it."""
    if isinstance(seeds, Until):
        return [_play_until(crew, policies, seeds, done)]
    crew.play(seeds, done)
    return []


def _refuse_twins(policies: Sequence[Policy]) -> None:
    names = [policy.name for policy in policies]
    for policy in policies:
        if names.count(policy.name) > 1:
            raise PolicyError(f"two policies are called {policy.name!r}; rename a file")


def compare(
    setting: Setting,
    policies: Sequence[Policy],
    seeds: range | Until,
    *,
    threads: int = 2,
    watch: Watch = lambda *_: None,
    hindsight: Hindsight | None = None,
) -> Comparison:
    """Run every policy on every seed; the result does not depend on `threads`.

    Args:
        setting: the scenario, ready.
        policies: what to compare.
        seeds: at least one, or as many as it takes.
        threads: how many seeds are worked on at once; users' own Python files have one more.
        watch: called after each run, from any thread.
        hindsight: what a seed could have come to; called once a seed, from any thread.

    Raises:
        PolicyError: a policy asked for what cannot be.
        Stopped: Ctrl-C, after two seeds at least; what is complete is with it.
    """
    _refuse_twins(policies)
    crew = _Workers(_Task(setting, policies, watch, hindsight), threads)
    wanted = range(seeds.most) if isinstance(seeds, Until) else seeds
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
        raise Stopped(summarise(setting, policies, wanted, complete, notes)) from exc
    finally:
        crew.dismiss()
    return summarise(setting, policies, wanted, done, notes)
