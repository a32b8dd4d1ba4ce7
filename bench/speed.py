"""Decide calls and events a CPU-second, policy by policy; and what a second thread brings."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from adlro.sim import simulator
from bench.clock import Side, best
from bench.figure import Bar, Figure, figure, ratio
from bench.ground import CALLS, Ground, episodes, generated_runs

EVENTS = "events/CPU-s"
POLICIES = ("fcfs", "pair-sjf", "easy-backfill", "min-min", "drain-argmin", "tiresias")
_BARS = {"fcfs": Bar(">=", 3e6), "min-min": Bar(">=", 2e6)}


def policy_speed(on: Ground, name: str, repeats: int) -> list[Figure]:
    """Decide calls and events a CPU-second of one policy, episode only and with generation."""
    policy = on.policy(name)
    runs = [simulator.run(on.empty, w, policy, i).totals for i, w in enumerate(on.workloads)]
    calls = sum(int(run["decisions"]) for run in runs)
    events = sum(int(run["events"]) for run in runs)
    alone, generated = best([episodes(on, policy), generated_runs(on, policy)], repeats)
    return [
        figure(f"{name}, episode: calls", calls / alone, CALLS, _BARS.get(name)),
        figure(f"{name}, episode: events", events / alone, EVENTS),
        figure(f"{name}, generated: calls", calls / generated, CALLS),
        figure(f"{name}, generated: events", events / generated, EVENTS),
    ]


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
    name = "min-min, 2 threads / 1 thread (wall)"
    return [ratio(name, runs / two, runs / one, "x, of runs/s")]
