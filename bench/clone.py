"""What a copy of a world in the middle of a run costs."""

from __future__ import annotations

from adlro.sim.signature import DECIDE, compiled_steps, entry_point
from adlro.sim.simulator import ViewCopies, clone
from adlro.sim.world import World, answers, fresh_memory, open_world
from bench.clock import Side, best
from bench.clone_kernel import bounce
from bench.figure import Bar, Figure, figure
from bench.ground import ground

WAITING = 8  # the worlds compared have queues of this length, whatever the number of jobs
_BAR = Bar("<", 5)


def mid_run(jobs: int) -> World:
    """Paper16 under min-min, past half of the events, when first WAITING jobs wait."""
    on = ground(1, jobs)
    policy, steps = on.policy("min-min"), compiled_steps()
    decide = entry_point(policy.decide, *DECIDE.args)
    world, memory = open_world(on.empty, on.workloads[0]), fresh_memory(policy.memory, 0)
    eyes, totals, out = ViewCopies(world), world.totals[0], answers(world)
    while steps.advance(world):
        started = 1
        while started > 0:
            answered = decide(eyes.view(), policy.params, memory, out)
            started = steps.apply(answered, out, world)
        if totals["events"] >= jobs and totals["waiting"] == WAITING:
            return world
    raise ValueError(f"{jobs} jobs: no moment past half of the run has {WAITING} jobs waiting")


def clone_cost(jobs: int, times: int, repeats: int) -> list[Figure]:
    """Microseconds a copy, within compiled code and from Python."""
    world = mid_run(jobs)
    copy = clone(world)
    bounce(1, world, copy)

    def from_python() -> None:
        for _ in range(times):
            clone(world)

    sides: list[Side] = [lambda: lambda: bounce(times, world, copy), lambda: from_python]
    compiled_s, python_s = best(sides, repeats)
    what = f"{jobs:,} jobs, {WAITING} waiting"
    return [
        figure(f"clone, compiled: {what}", compiled_s / (2 * times) * 1e6, "µs", _BAR),
        figure(f"clone, Python: {what}", python_s / times * 1e6, "µs"),
    ]
