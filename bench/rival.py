"""The kernel beside other simulators that do the same work: same jobs, same process, in turns."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adlro.sim import simulator
from bench import plain
from bench.clock import Side, Work, best
from bench.figure import Bar, Figure, ratio
from bench.ground import CALLS, Ground, episodes, prepared_runs
from bench.world import Pool, Schedule, Task, take_pools, take_tasks

_HEAPQ_BAR = Bar(">=", 20)


class Rival(NamedTuple):
    """Another simulator under one policy."""

    name: str
    policy: str
    run: Callable[[list[Task], list[Pool]], Schedule]
    bar: Bar | None = None


def has_simpy() -> bool:
    """True when the extra `bench` is installed."""
    return importlib.util.find_spec("simpy") is not None


def heapq_rival(policy: str) -> Rival:
    """Plain Python with heapq; policy is one of plain.POLICIES."""
    choose = plain.POLICIES[policy]
    return Rival("heapq", policy, lambda tasks, pools: plain.run(tasks, pools, choose), _HEAPQ_BAR)


def simpy_rival() -> Rival:
    """First come, first served on simpy, which must be installed."""
    from bench import with_simpy

    return Rival("simpy", "fcfs", with_simpy.run)


def check_same(result: simulator.RunResult, schedule: Schedule) -> None:
    """Speeds can be compared only of simulators that do the same.

    Raises:
        ValueError: the schedules differ by more than 1e-9, or took other numbers of decisions.
    """
    for key, theirs in (("start", schedule.start), ("finish", schedule.finish)):
        if not np.allclose(result.outcome[key], theirs, rtol=1e-9, atol=0):
            raise ValueError(f"the simulators disagree on the {key} of a job")
    for key in ("decisions", "real_decisions", "events"):
        if result.totals[key] != getattr(schedule, key):
            raise ValueError(f"the simulators disagree on the number of {key}")


def _runs(on: Ground, rival: Rival) -> Side:
    """The rival's episodes; lists and objects are made ready before."""
    tasks = [take_tasks(workload, on.empty) for workload in on.workloads]

    def ready() -> Work:
        prepared = [(each, take_pools(on.empty)) for each in tasks]

        def play() -> None:
            for arguments in prepared:
                rival.run(*arguments)

        return play

    return ready


def beside(on: Ground, rival: Rival, repeats: int) -> list[Figure]:
    """How many times faster the kernel is; the rival's own preparation is never counted."""
    policy = on.policy(rival.policy)
    calls = 0
    for seed, workload in enumerate(on.workloads):
        schedule = rival.run(take_tasks(workload, on.empty), take_pools(on.empty))
        check_same(simulator.run(on.empty, workload, policy, seed), schedule)
        calls += schedule.decisions
    sides = [episodes(on, policy), prepared_runs(on, policy), _runs(on, rival)]
    alone, prepared, theirs = (calls / seconds for seconds in best(sides, repeats))
    unit, versus = f"x, of {CALLS}", f"kernel / {rival.name}"
    return [
        ratio(f"{policy.name}, {versus}", alone, theirs, unit, rival.bar),
        ratio(f"{policy.name}, prepared {versus}", prepared, theirs, unit),
    ]
