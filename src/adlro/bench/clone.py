"""What a copy of a state in the middle of a run costs."""

from __future__ import annotations

import numpy as np

from adlro.bench.clock import best
from adlro.bench.clone_kernel import bounce
from adlro.bench.figure import Bar, Figure, figure
from adlro.bench.speed import SCENARIO
from adlro.config import adjusted, find_scenario
from adlro.model.state import OUTCOME, SPAN
from adlro.policies import registry
from adlro.sim import kernel
from adlro.sim.simulator import view
from adlro.sim.state import Empty, State, answers, clone, fresh
from adlro.workloads.synthetic import generate, prepare

WAITING = 8  # the states compared have queues of this length, whatever the number of jobs
_BAR = Bar("<", 5)


def mid_run(jobs: int) -> State:
    """The state of paper16 with so many jobs under min-min, first past half of the events with WAITING jobs."""
    setting = prepare(adjusted(find_scenario(SCENARIO), jobs=jobs))
    layout, workload = setting.layout, generate(setting, 0)
    policy = registry.load("min-min", setting)
    state = fresh(Empty(layout.pools, layout.nodes, layout.gpus), jobs, policy.memory, 0)
    world, out = state.world[0], answers(len(state.gpus))
    outcome, spans = np.zeros(jobs, OUTCOME), np.zeros(0, SPAN)
    world["now"] = workload.jobs["arrival"][0]
    while kernel.advance(*state[:8], workload.jobs, workload.allowed, outcome, spans):
        started = 1
        while started > 0:
            answered = policy.decide(*view(state, workload), policy.params, state.memory, out)
            started = kernel.apply(
                answered, out, *state[:8], workload.jobs, workload.est, workload.seconds, outcome
            )
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

    inside_s, python_s = best(
        [lambda: lambda: bounce(times, there, back), lambda: from_python], repeats
    )
    what = f"{jobs:,} jobs, {WAITING} waiting"
    return [
        figure(f"clone in compiled code: {what}", inside_s / (2 * times) * 1e6, "µs", _BAR),
        figure(f"clone from Python: {what}", python_s / times * 1e6, "µs"),
    ]
