"""Cost of one decision: compiled policies inside the kernel, and policies that call a solver."""

from __future__ import annotations

import contextlib
import time

import numpy as np

from adlro.config.files import adjusted, find_scenario
from adlro.model.state import Floats, Records
from adlro.model.view import View
from adlro.policies.registry import Policy
from adlro.sim import simulator
from bench.clock import best_times
from bench.figure import Bar, Figure, figure
from bench.fixture import episodes, fixture_of

CALLS = 40  # timed calls of decide
SOLVERS = {  # policy -> fewest and most waiting jobs; limit of a call in ms
    "allox": (150, 250, 20.0),
    "hetero-srpt": (150, 250, 5.0),
    "gavel-max-sum": (900, 1_100, 300.0),
}
COMPILED = {  # policy -> load of paper16; limit of a real decision in µs
    "drain-argmin": (0.8, 6.0),
    "adlro": (0.95, 10.0),
}


class _EnoughCallsError(Exception):
    """Raised when CALLS calls have been timed."""


class _TimedPolicy:
    """Wraps a policy and times a call with empty memory whenever the queue length is in a range."""

    def __init__(self, policy: Policy, fewest: int, most: int) -> None:
        self._policy, self._range = policy, range(fewest, most + 1)
        self.seconds: list[float] = []

    def decide(self, view: View, params: Floats, memory: Floats, out: Records) -> int:
        if len(view.queue) in self._range:
            before = time.thread_time()
            self._policy.decide(view, params, np.zeros_like(memory), out)
            self.seconds.append(time.thread_time() - before)
            if len(self.seconds) > CALLS:
                raise _EnoughCallsError
        return self._policy.decide(view, params, memory, out)


def in_kernel(name: str, seeds: int, repeats: int) -> list[Figure]:
    """CPU time per real decision of a compiled policy on paper16."""
    load, limit = COMPILED[name]
    fixture = fixture_of(adjusted(find_scenario("paper16"), load=load), seeds)
    policy = fixture.policy(name)
    runs = [
        simulator.run(fixture.empty, w, policy, i).totals for i, w in enumerate(fixture.workloads)
    ]
    real = sum(int(run["real_decisions"]) for run in runs)
    [seconds] = best_times([episodes(fixture, policy)], repeats)
    what = f"{name}, load {load:g}: a real decision"
    return [figure(what, 1e6 * seconds / real, "us", Bar("<", limit))]


def with_solver(name: str) -> list[Figure]:
    """CPU milliseconds of a call without an earlier plan, on hetero64 with a long queue.

    The first call is left out, because it includes compiling.
    """
    fewest, most, limit = SOLVERS[name]
    fixture = fixture_of(adjusted(find_scenario("hetero64"), jobs=3 * most, load=100.0))
    policy = fixture.policy(name)
    timed = _TimedPolicy(policy, fewest, most)
    with contextlib.suppress(_EnoughCallsError):
        simulator.run(fixture.empty, fixture.workloads[0], policy._replace(decide=timed.decide))
    mean, p95 = 1e3 * np.mean(timed.seconds[1:]), 1e3 * np.percentile(timed.seconds[1:], 95)
    what = f"{name}, 64 GPUs, {fewest:,} to {most:,} waiting"
    return [
        figure(f"{what}: a call", float(mean), "ms", Bar("<", limit)),
        figure(f"{what}: 95 % of calls are below", float(p95), "ms"),
    ]
