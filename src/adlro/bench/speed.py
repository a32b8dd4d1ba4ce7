"""Decide calls and events a CPU-second on paper16, alone and beside simulators in plain Python."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from adlro.bench import plain
from adlro.bench.clock import Side, Work, best
from adlro.bench.figure import Bar, Figure, figure, ratio
from adlro.bench.world import Pool, Schedule, Task, take_pools, take_tasks
from adlro.config import find_scenario
from adlro.model.state import OUTCOME, SPAN, Records
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.sim import simulator
from adlro.sim.signature import compile_decide, compiled_run
from adlro.sim.state import Empty, answers, fresh
from adlro.workloads.synthetic import Setting, generate, prepare
from adlro.workloads.workload import Workload

SCENARIO = "paper16"
CALLS = "calls/CPU-s"
_BARS = {"fcfs": Bar(">=", 3e6), "min-min": Bar(">=", 2e6)}
_RATIO_BAR = Bar(">=", 20)

Rival = Callable[[list[Task], list[Pool]], Schedule]


class Ground(NamedTuple):
    """What all measurements run on: a scenario and its jobs for several seeds."""

    setting: Setting
    empty: Empty
    workloads: list[Workload]

    @property
    def seeds(self) -> range:
        """Of the workloads, in their order."""
        return range(len(self.workloads))

    def policy(self, name: str) -> Policy:
        """A policy, compiled."""
        ready = registry.load(name, self.setting)
        simulator.warm_up([ready])
        return ready


class Counts(NamedTuple):
    """How much work a pass over all workloads is."""

    decisions: int
    events: int


def ground(seeds: int) -> Ground:
    """paper16 with its jobs for seeds 0, 1, ..."""
    setting = prepare(find_scenario(SCENARIO))
    layout = setting.layout
    empty = Empty(layout.pools, layout.nodes, layout.gpus)
    return Ground(setting, empty, [generate(setting, seed) for seed in range(seeds)])


def compiled_names(on: Ground) -> list[str]:
    """The policies whose decide runs inside the kernel."""
    policies = [registry.load(name, on.setting) for name in registry.names()]
    return [policy.name for policy in policies if simulator.is_compiled(policy.decide)]


def _arguments(on: Ground, policy: Policy, seed: int) -> tuple[Any, ...]:
    """All that the compiled run is called with: a fresh state and room for its results."""
    jobs, est, allowed, seconds = on.workloads[seed]
    state = fresh(on.empty, len(jobs), max(policy.memory, 1), seed)
    state.world["now"] = jobs["arrival"][0]
    decide, out = compile_decide(policy.decide), answers(len(state.gpus))
    outcome, spans = np.zeros(len(jobs), OUTCOME), np.zeros(0, SPAN)
    return (
        decide, policy.params, state.memory, out, *state[:8], jobs, est, allowed, seconds,
        outcome, spans,
    )  # fmt: skip


def _episodes(on: Ground, policy: Policy) -> Side:
    """Only the compiled run; states and outcomes are made ready before."""
    run = compiled_run()

    def ready() -> Work:
        prepared = [_arguments(on, policy, seed) for seed in on.seeds]

        def play() -> None:
            for arguments in prepared:
                run(*arguments)

        return play

    return ready


def _prepared_runs(on: Ground, policy: Policy) -> Side:
    """As a caller from Python gets it: a fresh state, the run and the check for faults."""

    def play() -> None:
        for seed, workload in enumerate(on.workloads):
            simulator.run(on.empty, workload, policy, seed)

    return lambda: play


def _generated_runs(on: Ground, policy: Policy) -> Side:
    """From the seed: the jobs are drawn, too."""

    def play() -> None:
        for seed in on.seeds:
            simulator.run(on.empty, generate(on.setting, seed), policy, seed)

    return lambda: play


def _counts(on: Ground, policy: Policy) -> Counts:
    worlds = [simulator.run(on.empty, w, policy, i).world for i, w in enumerate(on.workloads)]
    return Counts(*(sum(int(world[key]) for world in worlds) for key in Counts._fields))


def policy_speed(on: Ground, name: str, repeats: int) -> list[Figure]:
    """Decide calls and events a CPU-second of one policy, episode only and with generation."""
    policy = on.policy(name)
    counts = _counts(on, policy)
    alone, generated = best([_episodes(on, policy), _generated_runs(on, policy)], repeats)
    return [
        figure(
            f"{name}: decide calls, episode only", counts.decisions / alone, CALLS, _BARS.get(name)
        ),
        figure(f"{name}: events, episode only", counts.events / alone, "events/CPU-s"),
        figure(f"{name}: decide calls, with generation", counts.decisions / generated, CALLS),
        figure(f"{name}: events, with generation", counts.events / generated, "events/CPU-s"),
    ]


def _check_same(outcome: Records, schedule: Schedule, name: str) -> None:
    for key, theirs in (("start", schedule.start), ("finish", schedule.finish)):
        if not np.allclose(outcome[key], theirs, rtol=1e-9, atol=0):
            raise ValueError(f"{name} and the kernel disagree on a {key}: no speed can be compared")


def _rival_runs(on: Ground, rival: Rival) -> Side:
    """The same episodes elsewhere; lists and objects are made ready before."""
    tasks = [take_tasks(workload, on.empty) for workload in on.workloads]

    def ready() -> Work:
        prepared = [(each, take_pools(on.empty)) for each in tasks]

        def play() -> None:
            for arguments in prepared:
                rival(*arguments)

        return play

    return ready


def _beside(
    on: Ground, policy: Policy, rival: Rival, rival_name: str, repeats: int
) -> list[Figure]:
    for seed, workload in enumerate(on.workloads):
        outcome = simulator.run(on.empty, workload, policy, seed).outcome
        theirs = rival(take_tasks(workload, on.empty), take_pools(on.empty))
        _check_same(outcome, theirs, rival_name)
    calls = _counts(on, policy).decisions
    sides = [_episodes(on, policy), _prepared_runs(on, policy), _rival_runs(on, rival)]
    alone, prepared, theirs_s = best(sides, repeats)
    unit = f"x, of {CALLS}"
    title = f"{policy.name}: kernel / {rival_name}"
    bar = _RATIO_BAR if rival_name == "heapq" else None
    return [
        ratio(f"{title}, episode only", calls / alone, calls / theirs_s, unit, bar),
        ratio(f"{title}, kernel with its preparation", calls / prepared, calls / theirs_s, unit),
    ]


def beside_heapq(on: Ground, name: str, repeats: int) -> list[Figure]:
    """The kernel beside plain Python with heapq, on the same jobs, in turns."""
    choose = plain.POLICIES[name]
    rival: Rival = lambda tasks, pools: plain.run(tasks, pools, choose)  # noqa: E731
    return _beside(on, on.policy(name), rival, "heapq", repeats)


def has_simpy() -> bool:
    """True when the extra `bench` is installed."""
    return importlib.util.find_spec("simpy") is not None


def beside_simpy(on: Ground, repeats: int) -> list[Figure]:
    """The kernel beside simpy, first come, first served, on the same jobs, in turns."""
    from adlro.bench import with_simpy

    return _beside(on, on.policy("fcfs"), with_simpy.run, "simpy", repeats)


def thread_scaling(on: Ground, runs: int, repeats: int) -> list[Figure]:
    """Wall seconds of the same runs in one thread and in two."""
    policy = on.policy("min-min")

    def part(seeds: range) -> None:
        for seed in seeds:
            simulator.run(on.empty, on.workloads[seed % len(on.workloads)], policy, seed)

    def side(threads: int) -> Side:
        def play() -> None:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(part, [range(i, runs, threads) for i in range(threads)]))

        return lambda: play

    two, one = best([side(2), side(1)], repeats, perf_counter)
    name = "min-min: 2 threads / 1 thread, wall time"
    return [ratio(name, runs / two, runs / one, "x, of runs/s (wall)")]
