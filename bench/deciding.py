"""What one decision costs: compiled policies inside the kernel, and those that call a solver."""

from __future__ import annotations

import contextlib
import time

import numpy as np

from adlro.config.files import adjusted, find_scenario
from adlro.model.state import Floats, Records
from adlro.model.view import View
from adlro.policies.registry import Policy
from adlro.sim import simulator
from bench.clock import best
from bench.figure import Bar, Figure, figure
from bench.ground import episodes, ground_of

CALLS = 40  # that are timed
SOLVERS = {  # policy -> jobs waiting at least, at most; milliseconds that a call may take
    "allox": (150, 250, 20.0),
    "hetero-srpt": (150, 250, 5.0),
    "gavel-max-sum": (900, 1_100, 300.0),
}
COMPILED = {  # policy -> load of paper16, microseconds that a real decision may take
    "drain-argmin": (0.8, 6.0),
    "adlro": (0.95, 10.0),
}


class _EnoughError(Exception):
    """As many calls as were wanted have been timed."""


class _Timed:
    """A decide that, while so many jobs wait, also takes the time of a call with empty memory."""

    def __init__(self, policy: Policy, fewest: int, most: int) -> None:
        self._policy, self._range = policy, range(fewest, most + 1)
        self.seconds: list[float] = []

    def decide(self, view: View, params: Floats, memory: Floats, out: Records) -> int:
        if len(view.queue) in self._range:
            before = time.thread_time()
            self._policy.decide(view, params, np.zeros_like(memory), out)
            self.seconds.append(time.thread_time() - before)
            if len(self.seconds) > CALLS:
                raise _EnoughError
        return self._policy.decide(view, params, memory, out)


def in_kernel(name: str, seeds: int, repeats: int) -> list[Figure]:
    """CPU time of a policy's compiled runs on paper16 for each of its real decisions."""
    load, limit = COMPILED[name]
    on = ground_of(adjusted(find_scenario("paper16"), load=load), seeds)
    policy = on.policy(name)
    runs = [simulator.run(on.empty, w, policy, i).totals for i, w in enumerate(on.workloads)]
    real = sum(int(run["real_decisions"]) for run in runs)
    [seconds] = best([episodes(on, policy)], repeats)
    what = f"{name}, load {load:g}: a real decision"
    return [figure(what, 1e6 * seconds / real, "us", Bar("<", limit))]


def with_solver(name: str) -> list[Figure]:
    """CPU milliseconds of a call with nothing planned before, on hetero64 while many jobs wait.

    The first call is left out: it compiles what the policy has compiled.
    """
    fewest, most, limit = SOLVERS[name]
    on = ground_of(adjusted(find_scenario("hetero64"), jobs=3 * most, load=100.0))
    policy = on.policy(name)
    timed = _Timed(policy, fewest, most)
    with contextlib.suppress(_EnoughError):
        simulator.run(on.empty, on.workloads[0], policy._replace(decide=timed.decide))
    mean, p95 = 1e3 * np.mean(timed.seconds[1:]), 1e3 * np.percentile(timed.seconds[1:], 95)
    what = f"{name}, 64 GPUs, {fewest:,} to {most:,} waiting"
    return [
        figure(f"{what}: a call", float(mean), "ms", Bar("<", limit)),
        figure(f"{what}: 95 % of calls are below", float(p95), "ms"),
    ]
