"""Calls of decide and events per CPU second for each policy, and the gain of a second thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from adlro.sim import simulator
from bench.clock import Setup, best_times
from bench.figure import Bar, Figure, figure, ratio
from bench.fixture import CALLS, Fixture, episodes, generated_runs

EVENTS = "events/CPU-s"
POLICIES = ("fcfs", "pair-sjf", "easy-backfill", "min-min", "drain-argmin", "tiresias")
_BARS = {"fcfs": Bar(">=", 3e6), "min-min": Bar(">=", 2e6)}


def policy_speed(fixture: Fixture, name: str, repeats: int) -> list[Figure]:
    """Calls of decide and events per CPU second of one policy, without and with generation."""
    policy = fixture.policy(name)
    runs = [
        simulator.run(fixture.empty, w, policy, i).totals for i, w in enumerate(fixture.workloads)
    ]
    calls = sum(int(run["decisions"]) for run in runs)
    events = sum(int(run["events"]) for run in runs)
    alone, generated = best_times(
        [episodes(fixture, policy), generated_runs(fixture, policy)], repeats
    )
    return [
        figure(f"{name}, episode: calls", calls / alone, CALLS, _BARS.get(name)),
        figure(f"{name}, episode: events", events / alone, EVENTS),
        figure(f"{name}, generated: calls", calls / generated, CALLS),
        figure(f"{name}, generated: events", events / generated, EVENTS),
    ]


def thread_scaling(fixture: Fixture, runs: int, repeats: int) -> list[Figure]:
    """Ratio of runs per second of wall time with two threads to one."""
    policy = fixture.policy("min-min")

    def part(seeds: range) -> None:
        for seed in seeds:
            simulator.run(
                fixture.empty, fixture.workloads[seed % len(fixture.workloads)], policy, seed
            )

    def setup(threads: int) -> Setup:
        def play() -> None:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(part, [range(i, runs, threads) for i in range(threads)]))

        return lambda: play

    two, one = best_times([setup(2), setup(1)], repeats, perf_counter)
    name = "min-min, 2 threads / 1 thread (wall)"
    return [ratio(name, runs / two, runs / one, "x, of runs/s")]
