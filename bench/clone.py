"""Cost of copying a world in the middle of a run."""

from __future__ import annotations

from adlro.sim.signature import DECIDE, compiled_steps, entry_point
from adlro.sim.simulator import ViewCopies, clone
from adlro.sim.world import World, decision_buffer, fresh_memory, open_world
from bench.clock import Setup, best_times
from bench.clone_kernel import copy_back_and_forth
from bench.figure import Bar, Figure, figure
from bench.fixture import paper16

WAITING = 8  # queue length of the copied worlds, independent of the number of jobs
_BAR = Bar("<", 5)


def mid_run(jobs: int) -> World:
    """Return paper16 under min-min past half of its events, when first WAITING jobs wait."""
    fixture = paper16(1, jobs)
    policy, steps = fixture.policy("min-min"), compiled_steps()
    decide = entry_point(policy.decide, *DECIDE.args)
    world, memory = open_world(fixture.empty, fixture.workloads[0]), fresh_memory(policy.memory, 0)
    views, totals, out = ViewCopies(world), world.totals[0], decision_buffer(world)
    while steps.advance(world):
        started = 1
        while started > 0:
            answered = decide(views.view(), policy.params, memory, out)
            started = steps.apply(answered, out, world)
        if totals["events"] >= jobs and totals["waiting"] == WAITING:
            return world
    raise ValueError(f"{jobs} jobs: no moment past half of the run has {WAITING} jobs waiting")


def clone_cost(jobs: int, times: int, repeats: int) -> list[Figure]:
    """Microseconds per copy, in compiled code and from Python."""
    world = mid_run(jobs)
    copy = clone(world)
    copy_back_and_forth(1, world, copy)

    def from_python() -> None:
        for _ in range(times):
            clone(world)

    setups: list[Setup] = [
        lambda: lambda: copy_back_and_forth(times, world, copy),
        lambda: from_python,
    ]
    compiled_s, python_s = best_times(setups, repeats)
    what = f"{jobs:,} jobs, {WAITING} waiting"
    return [
        figure(f"clone, compiled: {what}", compiled_s / (2 * times) * 1e6, "µs", _BAR),
        figure(f"clone, Python: {what}", python_s / times * 1e6, "µs"),
    ]
