"""The benchmark as a list of steps, and what it writes."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from typing import NamedTuple

from adlro import __version__
from adlro.model.record import Record
from bench import (
    clone,
    deciding,
    hypervectors,
    importing,
    learning,
    million,
    plain,
    rival,
    round_trip,
    run_times,
    size,
    speed,
    startup,
)
from bench.figure import Figure
from bench.ground import ground


class Effort(NamedTuple):
    """How much is measured: more makes the figures steadier, not different."""

    seeds: int = 50
    repeats: int = 15  # of which the best counts
    clones: int = 2000
    runs: int = 1000  # shared out to threads
    warm_starts: int = 5
    help_rounds: int = 5
    sizes: tuple[int, ...] = size.SIZES
    patience: size.Patience = size.Patience(repeats=3, longest_s=2.0)
    learning: learning.Length = learning.Length()
    imported: int = importing.JOBS  # jobs of a history
    million: bool = True  # jobs on ten thousand GPUs, too


QUICK = Effort(
    seeds=20,
    repeats=4,
    clones=500,
    runs=400,
    warm_starts=2,
    patience=size.Patience(repeats=1, longest_s=0.5),
    learning=learning.Length(ours=20_480, theirs=1000),
    million=False,
)


class Step(NamedTuple):
    """One part of the benchmark."""

    about: str
    measure: Callable[[], list[Figure]]


class Report(Record):
    """What `python -m bench --json` writes."""

    version: str = __version__
    python: str
    packages: dict[str, str]
    machine: str
    seeds: int
    repeats: int
    figures: list[Figure]


def in_process(effort: Effort) -> Iterator[Step]:
    """The steps that need no other process."""
    on = ground(effort.seeds)
    repeats = effort.repeats
    for name in speed.POLICIES:
        yield Step(f"{name}: speed", partial(speed.policy_speed, on, name, repeats))
    for name in deciding.COMPILED:
        about = f"{name}: a decision"
        yield Step(about, partial(deciding.in_kernel, name, effort.seeds, repeats))
    for name in deciding.SOLVERS:
        yield Step(f"{name}: a decision", partial(deciding.with_solver, name))
    for name in plain.POLICIES:
        other = rival.heapq_rival(name)
        yield Step(f"{name}: beside heapq", partial(rival.beside, on, other, repeats))
    if rival.has_simpy():
        yield Step("fcfs: beside simpy", partial(rival.beside, on, rival.simpy_rival(), repeats))
    jobs = on.setting.scenario.jobs
    for count in (jobs, 10 * jobs):
        yield Step(
            f"clone: {count:,} jobs", partial(clone.clone_cost, count, effort.clones, repeats)
        )
    if learning.has_sb3():
        rounds = max(repeats // 3, 1)
        yield Step("paper-dqn: training", partial(learning.beside_sb3, rounds, effort.learning))
    yield Step("hypervectors", partial(hypervectors.retrieval, repeats))
    yield Step("memory: a prediction", partial(run_times.predicting, repeats))
    yield Step("telemetry", partial(round_trip.parsing, round_trip.GPUS, repeats))
    for name in importing.KINDS:
        reads = partial(importing.speed, name, effort.imported, max(repeats // 4, 1))
        yield Step(f"import: {name}", reads)
    yield Step("threads", partial(speed.thread_scaling, on, effort.runs, repeats))
    for name in size.POLICIES:
        yield Step(f"{name}: size", partial(size.growth, name, effort.sizes, effort.patience))


def steps(effort: Effort) -> list[Step]:
    """The whole benchmark, in the order of its table."""
    large = million.POLICIES if effort.million else ()
    return [
        *in_process(effort),
        *(Step(f"{name}: a million jobs", partial(million.in_own_process, name)) for name in large),
        Step("cold and warm start", partial(startup.compare_starts, effort.warm_starts)),
        Step("help", partial(startup.help_cost, effort.help_rounds)),
    ]


def report(figures: list[Figure], effort: Effort) -> Report:
    """The figures with what they were measured on."""
    names = ["numba", "numpy", *(["simpy"] if rival.has_simpy() else [])]
    names += ["pandas"] if importing.has_pandas() else []
    names += ["stable-baselines3", "torch"] if learning.has_sb3() else []
    names += ["torch-hd"] if hypervectors.has_torchhd() else []
    return Report(
        python=platform.python_version(),
        packages={name: metadata.version(name) for name in names},
        machine=f"{platform.system()} {platform.machine()}",
        seeds=effort.seeds,
        repeats=effort.repeats,
        figures=figures,
    )
