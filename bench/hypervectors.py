"""Cost of encoding and retrieving one job among 10,000 patterns, compared with torchhd."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np

from adlro.features.hypervectors.learn_kernel import Completion, learn
from adlro.features.hypervectors.memory import Query, Weighing, empty, work_for
from adlro.features.hypervectors.schema import BITS, Role, Schema, space_of
from adlro.model.state import Counts
from bench.clock import Setup, best_times
from bench.figure import Bar, Figure, figure, ratio
from bench.hypervectors_kernel import WORDS, ask, encode_job

PATTERNS = 10_000
LEVELS = 32
_LEVEL_ROLES, _FILLERS = 2, 200  # number of level roles; fillers of a word role
_QUERIES = 100
_BAR, _TORCHHD_BAR = Bar("<", 100), Bar(">=", 20)

Find = Callable[[Counts], int]  # fillers of a job [R] -> index of the most similar job


def jobs() -> Counts:
    """Return distinct jobs as the fillers of their roles, [PATTERNS, R]: words, then levels."""
    rng = np.random.default_rng(7)
    words = rng.integers(0, _FILLERS, (PATTERNS, WORDS))
    levels = rng.integers(0, LEVELS, (PATTERNS, _LEVEL_ROLES))
    words[:, 0], words[:, 1] = np.divmod(np.arange(PATTERNS), _FILLERS)
    return np.hstack([words, levels])


def _schema() -> Schema:
    words = (Role(f"word {r}", "word") for r in range(WORDS))
    levels = (Role(f"level {r}", "level", levels=LEVELS) for r in range(_LEVEL_ROLES))
    return Schema((*words, *levels))


def ours() -> Find:
    """Return retrieval by an ADLRO memory that has learned all jobs."""
    space = space_of(_schema())
    memory, weighing = empty(space), Weighing(fading=0.0)
    work, filling = work_for(memory), np.zeros(space.fillers, np.uint64)
    bits, known = np.zeros((2, BITS // 64), np.uint64)
    for source, job in enumerate(jobs()):
        encode_job(job, space, filling, bits, known)
        learn(memory, bits, Completion(0.0, np.nan, 0.0, source, -1))
    query = Query(bits, known, np.nan, -1, np.zeros(0))
    return lambda job: ask(job, space, memory, query, weighing, work, filling)


def has_torchhd() -> bool:
    """Whether torchhd is installed; it comes with the extra `bench` and needs torch."""
    return all(importlib.util.find_spec(name) for name in ("torch", "torchhd"))


def theirs() -> Find:
    """Return retrieval by the faster of two torchhd models, by one trial of each."""
    from bench.with_torchhd import finders

    found = finders(jobs(), BITS, WORDS, _FILLERS, LEVELS)
    for find in found:
        check(find)
    trials = best_times([_setup(find) for find in found], 1)
    return found[trials.index(min(trials))]


def _setup(find: Find) -> Setup:
    queries = jobs()[:: PATTERNS // _QUERIES]

    def play() -> None:
        for job in queries:
            find(job)

    return lambda: play


def check(find: Find) -> None:
    """Check that retrieval finds each queried job; otherwise speeds are not comparable.

    Raises:
        ValueError: it found another one.
    """
    every = jobs()
    for place in range(0, PATTERNS, PATTERNS // _QUERIES):
        if (found := find(every[place])) != place:
            raise ValueError(f"asked for job {place}, found {found}")


def retrieval(repeats: int) -> list[Figure]:
    """CPU time per query, one at a time, on one thread."""
    finds = [ours(), *([theirs()] if has_torchhd() else ())]
    check(finds[0])
    seconds = [each / _QUERIES for each in best_times([_setup(find) for find in finds], repeats)]
    name = f"hypervectors: {PATTERNS:,} x {BITS:,} bits"
    figures = [figure(name, 1e6 * seconds[0], "us", _BAR)]
    if len(seconds) > 1:
        unit = "x, of queries/CPU-s"
        name, own, other = "hypervectors / torchhd", 1 / seconds[0], 1 / seconds[1]
        figures.append(ratio(name, own, other, unit, _TORCHHD_BAR))
    return figures
