"""First come, first served on simpy: the same world, its events driven by simpy's processes."""

from __future__ import annotations

from collections.abc import Generator

import simpy

from bench.plain import fcfs
from bench.world import Pool, Run, Schedule, Task, any_feasible, release, start


class _Simulation:
    """The books of one run, and the three kinds of process that write them."""

    def __init__(self, tasks: list[Task], pools: list[Pool]) -> None:
        self.env = simpy.Environment(initial_time=tasks[0].arrival)
        self.bell = self.env.event()
        self.tasks, self.pools = tasks, pools
        self.free = sum(pool.free for pool in pools)
        self.queue: list[int] = []
        self.begun, self.finish = [0.0] * len(tasks), [0.0] * len(tasks)
        self.where, self.spans = [0] * len(tasks), [0] * len(tasks)
        self.busy = [0.0] * self.free
        self.runs = self.events = self.decisions = self.real = 0
        self.counted = self.env.now
        self.job_seconds = self.idle_seconds = 0.0

    def note(self) -> None:
        """Bring both integrals up to now, count an event, and ring for a decision."""
        passed = self.env.now - self.counted
        self.job_seconds += passed * (len(self.queue) + self.runs)
        self.idle_seconds += passed * self.free
        self.counted = self.env.now
        self.events += 1
        if not self.bell.triggered:
            self.bell.succeed()

    def arrive(self) -> Generator[simpy.Event, None, None]:
        """Bring the jobs, one after another."""
        for j, task in enumerate(self.tasks):
            if task.arrival > self.env.now:
                yield self.env.timeout(task.arrival - self.env.now)
            self.note()
            self.queue.append(j)

    def serve(self, run: Run) -> Generator[simpy.Event, None, None]:
        """Hold what a run holds until its end."""
        yield self.env.timeout(run.end - run.start)
        self.note()
        self.finish[run.job] = self.env.now
        self.runs -= 1
        self.free += self.tasks[run.job].gpus
        release(run, self.tasks[run.job], self.pools, self.busy)

    def schedule(self) -> Generator[simpy.Event, None, None]:
        """Decide at each moment at which something happened, until nothing more starts."""
        while self.events < 2 * len(self.tasks):
            yield self.bell
            self.bell = self.env.event()
            while self.events < 2 * len(self.tasks):
                self.decisions += 1
                if self.free and any_feasible(self.tasks, self.queue, self.pools):
                    self.real += 1
                answer = fcfs(self.env.now, self.tasks, self.queue, [], self.pools)
                if answer is None:
                    break
                j, option = answer
                self.queue.remove(j)
                run = start(self.env.now, j, self.tasks[j], option, self.pools)
                self.runs += 1
                self.free -= self.tasks[j].gpus
                self.begun[j], self.where[j], self.spans[j] = run.start, run.pool, len(run.held)
                self.env.process(self.serve(run))


def run(tasks: list[Task], pools: list[Pool]) -> Schedule:
    """Play a workload to its end, first come, first served.

    Args:
        tasks: the jobs, by arrival.
        pools: the empty cluster, which is filled and emptied again.
    """
    world = _Simulation(tasks, pools)
    world.env.process(world.arrive())
    world.env.process(world.schedule())
    world.env.run()
    return Schedule(
        world.begun, world.finish, world.where, world.spans, world.busy, world.job_seconds,
        world.idle_seconds, world.events, world.decisions, world.real,
    )  # fmt: skip
