"""First come, first served on simpy: the same cluster, with events driven by simpy's processes."""

from __future__ import annotations

from collections.abc import Generator

import simpy

from bench.plain import fcfs
from bench.world import Pool, Run, Schedule, Task, any_feasible, release, start


class _Simulation:
    """State and totals of one run, and its three kinds of simpy processes."""

    def __init__(self, tasks: list[Task], pools: list[Pool]) -> None:
        self.env = simpy.Environment(initial_time=tasks[0].arrival)
        self.decision_due = self.env.event()
        self.tasks, self.pools = tasks, pools
        self.free = sum(pool.free for pool in pools)
        self.queue: list[int] = []
        self.begun, self.finish = [0.0] * len(tasks), [0.0] * len(tasks)
        self.where, self.spans = [0] * len(tasks), [0] * len(tasks)
        self.busy = [0.0] * self.free
        self.runs = self.events = self.decisions = self.real = 0
        self.counted = self.env.now
        self.job_seconds = self.idle_seconds = 0.0

    def record_event(self) -> None:
        """Update both integrals, count an event and trigger a decision."""
        passed = self.env.now - self.counted
        self.job_seconds += passed * (len(self.queue) + self.runs)
        self.idle_seconds += passed * self.free
        self.counted = self.env.now
        self.events += 1
        if not self.decision_due.triggered:
            self.decision_due.succeed()

    def arrive(self) -> Generator[simpy.Event, None, None]:
        """Let the jobs arrive one after another."""
        for j, task in enumerate(self.tasks):
            if task.arrival > self.env.now:
                yield self.env.timeout(task.arrival - self.env.now)
            self.record_event()
            self.queue.append(j)

    def serve(self, run: Run) -> Generator[simpy.Event, None, None]:
        """Hold the resources of a run until its end."""
        yield self.env.timeout(run.end - run.start)
        self.record_event()
        self.finish[run.job] = self.env.now
        self.runs -= 1
        self.free += self.tasks[run.job].gpus
        release(run, self.tasks[run.job], self.pools, self.busy)

    def schedule(self) -> Generator[simpy.Event, None, None]:
        """Decide after each event until nothing more starts."""
        while self.events < 2 * len(self.tasks):
            yield self.decision_due
            self.decision_due = self.env.event()
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
    """Run a workload to its end, first come, first served.

    Args:
        tasks: the jobs, by arrival.
        pools: the empty cluster; it is empty again afterwards.
    """
    world = _Simulation(tasks, pools)
    world.env.process(world.arrive())
    world.env.process(world.schedule())
    world.env.run()
    return Schedule(
        world.begun, world.finish, world.where, world.spans, world.busy, world.job_seconds,
        world.idle_seconds, world.events, world.decisions, world.real,
    )  # fmt: skip
