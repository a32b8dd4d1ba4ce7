"""The steps of the benchmark and its JSON report."""

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
    round_trip,
    run_times,
    size,
    speed,
    startup,
)
from bench.baseline_simulators import (
    compare_speed,
    has_simpy,
    heapq_simulator,
    simpy_simulator,
)
from bench.figure import Figure
from bench.fixture import paper16


class Effort(NamedTuple):
    """Size of the measurements: more gives more precise figures, not different ones."""

    seeds: int = 50
    repeats: int = 15  # the best counts
    clones: int = 2000
    runs: int = 1000  # distributed over threads
    warm_starts: int = 5
    help_rounds: int = 5
    sizes: tuple[int, ...] = size.SIZES
    budget: size.TimeBudget = size.TimeBudget(repeats=3, longest_s=2.0)
    learning: learning.TrainingSteps = learning.TrainingSteps()
    imported: int = importing.JOBS  # jobs of a history
    million: bool = True  # whether to run a million jobs on ten thousand GPUs


QUICK = Effort(
    seeds=20,
    repeats=4,
    clones=500,
    runs=400,
    warm_starts=2,
    budget=size.TimeBudget(repeats=1, longest_s=0.5),
    learning=learning.TrainingSteps(ours=20_480, theirs=1000),
    million=False,
)


class Step(NamedTuple):
    """One part of the benchmark."""

    about: str
    measure: Callable[[], list[Figure]]


class Report(Record):
    """The figures and what they were measured on; `python -m bench --json` writes it."""

    version: str = __version__
    python: str
    packages: dict[str, str]
    machine: str
    seeds: int
    repeats: int
    figures: list[Figure]


def in_process(effort: Effort) -> Iterator[Step]:
    """Yield the steps that run in this process."""
    fixture = paper16(effort.seeds)
    repeats = effort.repeats
    for name in speed.POLICIES:
        yield Step(f"{name}: speed", partial(speed.policy_speed, fixture, name, repeats))
    for name in deciding.COMPILED:
        about = f"{name}: a decision"
        yield Step(about, partial(deciding.in_kernel, name, effort.seeds, repeats))
    for name in deciding.SOLVERS:
        yield Step(f"{name}: a decision", partial(deciding.with_solver, name))
    for name in plain.POLICIES:
        heapq = heapq_simulator(name)
        yield Step(f"{name}: beside heapq", partial(compare_speed, fixture, heapq, repeats))
    if has_simpy():
        simpy = simpy_simulator()
        yield Step("fcfs: beside simpy", partial(compare_speed, fixture, simpy, repeats))
    jobs = fixture.setting.scenario.jobs
    for count in (jobs, 10 * jobs):
        yield Step(
            f"clone: {count:,} jobs", partial(clone.clone_cost, count, effort.clones, repeats)
        )
    if learning.has_sb3():
        rounds = max(repeats // 3, 1)
        yield Step(
            "paper-dqn: training", partial(learning.compare_with_sb3, rounds, effort.learning)
        )
    yield Step("hypervectors", partial(hypervectors.retrieval, repeats))
    yield Step("memory: a prediction", partial(run_times.predicting, repeats))
    yield Step("telemetry", partial(round_trip.parsing, round_trip.GPUS, repeats))
    for name in importing.FORMATS:
        reads = partial(importing.speed, name, effort.imported, max(repeats // 4, 1))
        yield Step(f"import: {name}", reads)
    yield Step("threads", partial(speed.thread_scaling, fixture, effort.runs, repeats))
    for name in size.POLICIES:
        yield Step(f"{name}: size", partial(size.growth, name, effort.sizes, effort.budget))


def steps(effort: Effort) -> list[Step]:
    """Return all steps, in the order of the table."""
    large = million.POLICIES if effort.million else ()
    return [
        *in_process(effort),
        *(Step(f"{name}: a million jobs", partial(million.in_own_process, name)) for name in large),
        Step("cold and warm start", partial(startup.compare_starts, effort.warm_starts)),
        Step("help", partial(startup.help_cost, effort.help_rounds)),
    ]


def report(figures: list[Figure], effort: Effort) -> Report:
    """Build the report of the figures."""
    names = ["numba", "numpy", *(["simpy"] if has_simpy() else [])]
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
