"""What a copy of a state in the middle of a run costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from adlro.bench.clock import Side, best
from adlro.bench.clone_kernel import bounce
from adlro.bench.figure import Bar, Figure, figure
from adlro.bench.ground import ground
from adlro.model.state import OUTCOME, SPAN
from adlro.sim import kernel
from adlro.sim.simulator import lock, view
from adlro.sim.state import State, answers, clone, fresh

WAITING = 8  # the states compared have queues of this length, whatever the number of jobs
_BAR = Bar("<", 5)


def mid_run(jobs: int) -> State:
    """The state of paper16 under min-min, past half of the events, when first WAITING jobs wait."""
    on = ground(1, jobs)
    workload, policy = on.workloads[0], on.policy("min-min")
    state = fresh(on.empty, workload, policy.memory, 0)
    world, out = state.world[0], answers(state)
    rest: tuple[Any, ...] = (*workload, np.zeros(jobs, OUTCOME), np.zeros(0, SPAN))
    locked = lock(state, workload)
    while kernel.advance(*state[:11], *rest):
        started = 1
        while started > 0:
            answered = policy.decide(*view(state, locked), policy.params, state.memory, out)
            started = kernel.apply(answered, out, *state[:11], *rest)
        if world["events"] >= jobs and world["waiting"] == WAITING:
            return state
    raise ValueError(f"{jobs} jobs: no moment past half of the run has {WAITING} jobs waiting")


def clone_cost(jobs: int, times: int, repeats: int) -> list[Figure]:
    """Microseconds a copy, within compiled code and from Python."""
    state = mid_run(jobs)
    copy = clone(state)
    there, back = (*state, *copy), (*copy, *state)
    bounce(1, there, back)

    def from_python() -> None:
        for _ in range(times):
            clone(state)

    sides: list[Side] = [lambda: lambda: bounce(times, there, back), lambda: from_python]
    compiled_s, python_s = best(sides, repeats)
    what = f"{jobs:,} jobs, {WAITING} waiting"
    return [
        figure(f"clone, compiled: {what}", compiled_s / (2 * times) * 1e6, "µs", _BAR),
        figure(f"clone, Python: {what}", python_s / times * 1e6, "µs"),
    ]
