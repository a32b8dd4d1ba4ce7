"""Encode and retrieve among 10,000 patterns: what one query costs, beside torchhd."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np

from adlro.bench.clock import Side, best
from adlro.bench.figure import Bar, Figure, figure, ratio
from adlro.compiled import njit_apart
from adlro.encode.hypervectors.encode_kernel import encode, number_key
from adlro.encode.hypervectors.learn_kernel import Result, learn
from adlro.encode.hypervectors.memory import Memory, Query, Weighing, Work, empty, work_for
from adlro.encode.hypervectors.recall_kernel import recall
from adlro.encode.hypervectors.schema import BITS, Role, Schema, Space, Words, space_of
from adlro.model.state import Counts

PATTERNS = 10_000
LEVELS = 32
_WORDS, _LEVEL_ROLES, _FILLERS = 6, 2, 200  # roles, and fillers of a word role
_QUERIES = 100
_BAR, _RIVAL_BAR = Bar("<", 100), Bar(">=", 20)

Find = Callable[[Counts], int]  # fillers of a job [R] -> the job most like it


def jobs() -> Counts:
    """What fills the roles of each job, [PATTERNS, R]: words first, then levels; none twice."""
    rng = np.random.default_rng(7)
    words = rng.integers(0, _FILLERS, (PATTERNS, _WORDS))
    levels = rng.integers(0, LEVELS, (PATTERNS, _LEVEL_ROLES))
    words[:, 0], words[:, 1] = np.divmod(np.arange(PATTERNS), _FILLERS)
    return np.hstack([words, levels])


def _schema() -> Schema:
    words = (Role(f"word {r}", "word") for r in range(_WORDS))
    levels = (Role(f"level {r}", "level", levels=LEVELS) for r in range(_LEVEL_ROLES))
    return Schema((*words, *levels))


@njit_apart
def encode_job(job: Counts, space: Space, filling: Words, bits: Words, known: Words) -> None:
    """Write the pattern of a job that is given by its fillers' numbers."""
    for r in range(len(job)):
        if r < _WORDS:
            filling[r] = number_key(space.roles[r], job[r])
        else:
            filling[r] = np.uint64(1 + job[r])
    encode(filling, space, bits, known)


@njit_apart
def ask(  # noqa: PLR0913  what recall takes, and a job
    job: Counts, space: Space, memory: Memory, query: Query, weighing: Weighing, work: Work,
    filling: Words,
) -> int:  # fmt: skip
    """Encode, recall, and name the source with the largest share."""
    encode_job(job, space, filling, query.bits, query.known)
    count = recall(space, memory, query, weighing, work)
    likest = 0
    for i in range(1, count):
        if work.sources[i].share > work.sources[likest].share:
            likest = i
    return int(work.sources[likest].source)


def ours() -> Find:
    """A memory that has learned all jobs."""
    space = space_of(_schema())
    memory, weighing = empty(space), Weighing(fading=0.0)
    work, filling = work_for(memory), np.zeros(space.fillers, np.uint64)
    bits, known = np.zeros((2, BITS // 64), np.uint64)
    for source, job in enumerate(jobs()):
        encode_job(job, space, filling, bits, known)
        learn(memory, bits, Result(0.0, np.nan, 0.0, source, -1))
    query = Query(bits, known, np.nan, -1, np.zeros(0))
    return lambda job: ask(job, space, memory, query, weighing, work, filling)


def has_torchhd() -> bool:
    """True when it can be measured beside; it comes with the extra `bench`, and needs torch."""
    return all(importlib.util.find_spec(name) for name in ("torch", "torchhd"))


def theirs() -> Find:
    """The faster of torchhd's models, by one trial of each."""
    from adlro.bench.with_torchhd import finders

    found = finders(jobs(), BITS, _WORDS, _FILLERS, LEVELS)
    for find in found:
        check(find)
    trials = best([_side(find) for find in found], 1)
    return found[trials.index(min(trials))]


def _side(find: Find) -> Side:
    asked = jobs()[:: PATTERNS // _QUERIES]

    def play() -> None:
        for job in asked:
            find(job)

    return lambda: play


def check(find: Find) -> None:
    """Speeds can be compared only of those that find the job they are asked for.

    Raises:
        ValueError: it was another one.
    """
    every = jobs()
    for place in range(0, PATTERNS, PATTERNS // _QUERIES):
        if (found := find(every[place])) != place:
            raise ValueError(f"asked for job {place}, found {found}")


def retrieval(repeats: int) -> list[Figure]:
    """CPU time of a query, one at a time, on one thread."""
    finds = [ours(), *([theirs()] if has_torchhd() else ())]
    check(finds[0])
    seconds = [each / _QUERIES for each in best([_side(find) for find in finds], repeats)]
    name = f"hypervectors: {PATTERNS:,} x {BITS:,} bits"
    figures = [figure(name, 1e6 * seconds[0], "us", _BAR)]
    if len(seconds) > 1:
        unit = "x, of queries/CPU-s"
        name, own, other = "hypervectors / torchhd", 1 / seconds[0], 1 / seconds[1]
        figures.append(ratio(name, own, other, unit, _RIVAL_BAR))
    return figures
