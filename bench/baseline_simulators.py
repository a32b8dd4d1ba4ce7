"""Speed of the kernel compared with baseline simulators on the same jobs, in the same process."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adlro.sim import simulator
from bench import plain
from bench.clock import Setup, Work, best_times
from bench.figure import Bar, Figure, ratio
from bench.fixture import CALLS, Fixture, episodes, prepared_runs
from bench.world import Pool, Schedule, Task, take_pools, take_tasks

_HEAPQ_BAR = Bar(">=", 20)


class BaselineSimulator(NamedTuple):
    """A simulator to compare with, under one policy."""

    name: str
    policy: str
    run: Callable[[list[Task], list[Pool]], Schedule]
    bar: Bar | None = None


def has_simpy() -> bool:
    """Whether simpy is installed; it comes with the extra `bench`."""
    return importlib.util.find_spec("simpy") is not None


def heapq_simulator(policy: str) -> BaselineSimulator:
    """Plain Python with heapq under one of plain.POLICIES."""
    choose = plain.POLICIES[policy]
    return BaselineSimulator(
        "heapq", policy, lambda tasks, pools: plain.run(tasks, pools, choose), _HEAPQ_BAR
    )


def simpy_simulator() -> BaselineSimulator:
    """First come, first served on simpy, which must be installed."""
    from bench import with_simpy

    return BaselineSimulator("simpy", "fcfs", with_simpy.run)


def check_same(result: simulator.RunResult, schedule: Schedule) -> None:
    """Check that two simulators agree; otherwise their speeds are not comparable.

    Raises:
        ValueError: start or finish times differ by more than 1e-9 (relative), or the numbers of
            decisions or events differ.
    """
    for key, theirs in (("start", schedule.start), ("finish", schedule.finish)):
        if not np.allclose(result.outcome[key], theirs, rtol=1e-9, atol=0):
            raise ValueError(f"the simulators disagree on the {key} of a job")
    for key in ("decisions", "real_decisions", "events"):
        if result.totals[key] != getattr(schedule, key):
            raise ValueError(f"the simulators disagree on the number of {key}")


def _runs(fixture: Fixture, other: BaselineSimulator) -> Setup:
    """Time the runs of a baseline simulator; its lists and objects are built beforehand."""
    tasks = [take_tasks(workload, fixture.empty) for workload in fixture.workloads]

    def ready() -> Work:
        prepared = [(each, take_pools(fixture.empty)) for each in tasks]

        def play() -> None:
            for arguments in prepared:
                other.run(*arguments)

        return play

    return ready


def compare_speed(fixture: Fixture, other: BaselineSimulator, repeats: int) -> list[Figure]:
    """Ratio of the kernel's speed to a baseline simulator's, whose preparation is not timed."""
    policy = fixture.policy(other.policy)
    calls = 0
    for seed, workload in enumerate(fixture.workloads):
        schedule = other.run(take_tasks(workload, fixture.empty), take_pools(fixture.empty))
        check_same(simulator.run(fixture.empty, workload, policy, seed), schedule)
        calls += schedule.decisions
    setups = [episodes(fixture, policy), prepared_runs(fixture, policy), _runs(fixture, other)]
    alone, prepared, theirs = (calls / seconds for seconds in best_times(setups, repeats))
    unit, versus = f"x, of {CALLS}", f"kernel / {other.name}"
    return [
        ratio(f"{policy.name}, {versus}", alone, theirs, unit, other.bar),
        ratio(f"{policy.name}, prepared {versus}", prepared, theirs, unit),
    ]
