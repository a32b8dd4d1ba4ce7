"""A policy that makes random feasible decisions, to exercise all rules, and a replay policy."""

from __future__ import annotations

from math import ceil

import numpy as np

from tests.plain.records import Decision
from tests.plain.rules import Moment
from tests.plain.simulator import PlainWorld
from tests.plain.timeline import NEAR

MAX_DECISIONS = 3  # in one answer: what the kernel accepts on the smallest cluster


class Script:
    """Makes random decisions; it knows future events, to set timers at exactly their times."""

    def __init__(self, rng: np.random.Generator, whole: bool) -> None:
        self.rng = rng
        self.whole = whole  # whole seconds: timers ring at quarters of a second
        self.budget = int(rng.choice([0, 5, 40]))  # preemptions and migrations still allowed

    def decide(self, world: PlainWorld) -> list[Decision]:
        must_act = not (world.running or world.arrivals_left or world.events_left)
        roll = self.rng.random()
        if roll < 0.15 and not must_act:
            return []
        if roll < 0.3:
            return [self.wake(world) for _ in range(self.rng.integers(1, 3))]
        draft = Draft(world, self.rng)
        for _ in range(self.rng.integers(1, MAX_DECISIONS + 1)):
            roll = self.rng.random()
            if roll < 0.4 and self.budget > 0 and draft.disturb(migrate=roll < 0.2):
                self.budget -= 1
            else:
                draft.start()
        answer = draft.undo()
        if len(answer) < MAX_DECISIONS and self.rng.random() < 0.2:
            answer.insert(int(self.rng.integers(len(answer) + 1)), self.wake(world))
        return answer

    def wake(self, world: PlainWorld) -> Decision:
        """A timer soon, at any time, or exactly when another event is due."""
        known = [job.arrival for job in world.jobs[world.arrived : world.arrived + 2]]
        known += [event.time for event in world.events[world.happened : world.happened + 2]]
        known += [run.start + world.jobs[run.job].least_run for run in world.running]
        if self.whole:  # two correct simulators may differ in the last bit of real numbers
            known += [ceil(4 * run.expected) / 4 for run in world.running]
        known = [at for at in known if at > world.now]
        roll = self.rng.random()
        if known and roll < 0.5:
            return Decision("wake", at=known[self.rng.integers(len(known))])
        if roll < 0.8:
            return Decision("wake", at=world.now + int(self.rng.integers(1, 5)))
        later = float(self.rng.uniform(0.01, 10))
        return Decision("wake", at=world.now + (ceil(4 * later) / 4 if self.whole else later))


class Draft:
    """An answer under construction: each decision is feasible after the previous ones."""

    def __init__(self, world: PlainWorld, rng: np.random.Generator) -> None:
        self.world, self.rng = world, rng
        self.waiting = list(world.waiting)
        self.mask = {job: world.eligible(job) for job in world.waiting}
        self.waits, self.on = dict(world.moment.since), dict(world.moment.on)
        self.held = {run.job: run.gpus for run in world.running}
        self.since = {run.job: run.start for run in world.running}
        self.answer: list[Decision] = []

    def start(self) -> None:
        """Add the start of a random waiting job, if one fits."""
        pairs = [(job, pool) for job in self.waiting for pool in self._open(job)]
        if pairs:
            job, pool = pairs[self.rng.integers(len(pairs))]
            self._place("start", job, pool)

    def _open(self, job: int) -> list[int]:
        """Pools where a waiting job could start after the decisions so far."""
        world, pools = self.world, self.mask[job]
        return [g for g in pools if world.fits(job, g) and not world.rules.breaks(job, g, self.on)]

    def disturb(self, migrate: bool) -> bool:
        """Add a random preemption or migration; False if no run is old enough."""
        world = self.world
        preemptible = [
            job
            for job, since in self.since.items()
            if world.now - since >= world.jobs[job].least_run - NEAR
        ]
        if not preemptible:
            return False
        job = preemptible[self.rng.integers(len(preemptible))]
        world.cluster.give(world.jobs[job], self.held.pop(job))
        self.since.pop(job)
        self.waiting.append(job)
        held = self.on.pop(job)
        self.waits[job] = world.now
        since = {other: self.waits[other] for other in self.waiting}
        eligible = world.rules.mask(Moment(world.now, since, self.on))[job]
        self.mask[job] = sorted({*eligible, held}) if migrate else eligible
        pools = self._open(job) if migrate else []  # none if it ran on a draining node
        if pools:
            self._place("migrate", job, pools[self.rng.integers(len(pools))])
        else:
            self.mask[job] = eligible
            self.answer.append(Decision("preempt", job))
        return True

    def _place(self, kind: str, job: int, pool: int) -> None:
        """Add a decision that names nothing, a node, a GPU, or a GPU and its node."""
        cluster, need = self.world.cluster, self.world.jobs[job]
        least = need.gpus if need.one_node else 1
        nodes = [n for n in cluster.pools[pool].nodes if cluster.capacity(need, n) >= least]
        node = nodes[self.rng.integers(len(nodes))]
        able = [g for g in node.gpus if cluster.takes(g, need)] if not need.whole else []
        able = able or node.free_gpus()
        gpu = able[self.rng.integers(len(able))].id
        named = [(-1, -1), (node.id, -1), (-1, gpu), (node.id, gpu)]
        decision = Decision(kind, job, pool, *named[self.rng.integers(4)])
        self.held[job] = cluster.place(need, decision)
        self.since[job] = self.world.now
        cluster.take(need, self.held[job])
        self.waiting.remove(job)
        self.on[job] = pool
        self.answer.append(decision)

    def undo(self) -> list[Decision]:
        """The answer; restores the allocation of the world."""
        jobs, cluster = self.world.jobs, self.world.cluster
        for job, gpus in self.held.items():
            cluster.give(jobs[job], gpus)
        for run in self.world.running:
            cluster.take(jobs[run.job], run.gpus)
        return self.answer


class Replay:
    """Repeats the answers of an earlier run, call by call."""

    def __init__(self, trace: list[list[Decision]]) -> None:
        self.trace = trace
        self.calls = 0

    def decide(self, world: PlainWorld) -> list[Decision]:
        self.calls += 1
        return self.trace[self.calls - 1]
