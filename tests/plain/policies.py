"""The baselines of docs/simulator.md, each as close to its line of the table as Python allows.

Each answers one start a call. `p` is the estimated run time of a job on a pool's model. Python's
`min` keeps the first of equals, so lists in queue order, then pool order, settle every tie.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tests.plain.cases import Case
from tests.plain.simulator import Decision, PlainWorld, Policy

MASK = 2**64 - 1
BASELINES = (
    "fcfs",
    "random",
    "static-affinity",
    "static-affinity-lp",
    "sjf",
    "pair-sjf",
    "easy-backfill",
    "min-min",
)


class Pair(NamedTuple):
    """A job and a pool for it."""

    job: int
    pool: int


def p(world: PlainWorld, job: int, pool: int) -> float:
    """Estimated seconds of the job there."""
    return world.est[job][world.pools[pool].model]


def quickest(world: PlainWorld, job: int, pools: list[int]) -> int:
    """The pool with the smallest p."""
    return min(pools, key=lambda pool: p(world, job, pool))


def feasible(world: PlainWorld, job: int) -> list[int]:
    """The eligible pools with room for the job now."""
    return [pool for pool in world.eligible(job) if world.fits(job, pool)]


def feasible_pairs(world: PlainWorld) -> list[Pair]:
    """All that could start now, in queue order, then pool order."""
    return [Pair(job, pool) for job in world.waiting for pool in feasible(world, job)]


def start(job: int, pool: int) -> list[Decision]:
    """The answer that starts one job."""
    return [Decision("start", job, pool)]


def start_quickest_pair(world: PlainWorld) -> list[Decision]:
    """Start the feasible pair with the smallest p, if there is one."""
    pairs = feasible_pairs(world)
    if not pairs:
        return []
    return start(*min(pairs, key=lambda pair: p(world, *pair)))


class Fcfs:
    """The oldest job only, on the lowest-numbered feasible pool."""

    def decide(self, world: PlainWorld) -> list[Decision]:
        for job in world.waiting[:1]:
            for pool in feasible(world, job)[:1]:
                return start(job, pool)
        return []


class Random:
    """Any feasible pair, drawn by splitmix64."""

    def __init__(self, seed: int) -> None:
        self.state = seed & MASK

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def decide(self, world: PlainWorld) -> list[Decision]:
        pairs = feasible_pairs(world)
        return start(*pairs[self.next() % len(pairs)]) if pairs else []


class StaticAffinity:
    """Each job belongs to one pool, and each pool serves its jobs strictly in order."""

    def __init__(self, affinity: list[int]) -> None:
        self.affinity = affinity  # model by job type

    def home(self, world: PlainWorld, job: int) -> int:
        eligible = world.eligible(job)
        model = self.affinity[world.jobs[job].type]
        for pool in eligible:
            if world.pools[pool].model == model:
                return pool
        return quickest(world, job, eligible)

    def decide(self, world: PlainWorld) -> list[Decision]:
        closed = set()
        for job in world.waiting:
            pool = self.home(world, job)
            if pool in closed:
                continue
            if world.fits(job, pool):
                return start(job, pool)
            closed.add(pool)
        return []


class StaticAffinityLp:
    """The same walk, but a job may use every eligible pool that the capacity LP gives its type."""

    def __init__(self, pools_of_type: list[set[int]]) -> None:
        self.pools_of_type = pools_of_type

    def homes(self, world: PlainWorld, job: int) -> list[int]:
        eligible = world.eligible(job)
        given = [pool for pool in eligible if pool in self.pools_of_type[world.jobs[job].type]]
        return given or [quickest(world, job, eligible)]

    def decide(self, world: PlainWorld) -> list[Decision]:
        closed: set[int] = set()
        for job in world.waiting:
            homes = self.homes(world, job)
            usable = [pool for pool in homes if pool not in closed and world.fits(job, pool)]
            if usable:
                return start(job, quickest(world, job, usable))
            closed.update(homes)
        return []


class Sjf:
    """The startable job that is shortest on the best of its eligible pools."""

    def decide(self, world: PlainWorld) -> list[Decision]:
        startable = [job for job in world.waiting if feasible(world, job)]
        if not startable:
            return []
        job = min(startable, key=lambda job: min(p(world, job, g) for g in world.eligible(job)))
        return start(job, quickest(world, job, feasible(world, job)))


class PairSjf:
    """The feasible pair with the smallest p."""

    def decide(self, world: PlainWorld) -> list[Decision]:
        return start_quickest_pair(world)


class Reservation(NamedTuple):
    """Where and when the oldest job should start, and how many GPUs it leaves there."""

    pool: int
    at: float
    spare: int


class EasyBackfill:
    """The oldest job first; younger ones only where they do not delay it."""

    def decide(self, world: PlainWorld) -> list[Decision]:
        if not world.waiting:
            return []
        head, *others = world.waiting
        pools = feasible(world, head)
        if pools:
            return start(head, quickest(world, head, pools))
        plan = self.reserve(world, head)
        for job in others:
            pools = [g for g in feasible(world, job) if self.harmless(world, plan, job, g)]
            if pools:
                return start(job, quickest(world, job, pools))
        return []

    def reserve(self, world: PlainWorld, head: int) -> Reservation:
        need = world.jobs[head].gpus
        at = {pool: self.earliest(world, pool, need) for pool in world.eligible(head)}
        best = min(at, key=lambda pool: at[pool] + p(world, head, pool))
        return Reservation(best, at[best], self.free_at(world, best, at[best]) - need)

    def earliest(self, world: PlainWorld, pool: int, need: int) -> float:
        ends = [world.expected_end(run) for run in world.running if run.pool == pool]
        return min(s for s in [world.now, *ends] if self.free_at(world, pool, s) >= need)

    def free_at(self, world: PlainWorld, pool: int, s: float) -> int:
        runs = [run for run in world.running if run.pool == pool and world.expected_end(run) <= s]
        return world.pools[pool].free() + sum(len(run.gpus) for run in runs)

    def harmless(self, world: PlainWorld, plan: Reservation, job: int, pool: int) -> bool:
        if pool != plan.pool or world.now + p(world, job, pool) <= plan.at:
            return True
        return world.jobs[job].gpus <= plan.spare


class MinMin:
    """Plan the job that would be completed first, again and again; start it if its turn is now."""

    def decide(self, world: PlainWorld) -> list[Decision]:
        free_at = [self.free_times(world, pool.id) for pool in world.pools]
        unplanned = list(world.waiting)
        while unplanned and any(times[0] <= world.now for times in free_at):
            pairs = [Pair(job, pool) for job in unplanned for pool in world.eligible(job)]
            ends = [self.completion(world, free_at, pair) for pair in pairs]
            c = min(ends)
            job, pool = pairs[ends.index(c)]
            gpus = world.jobs[job].gpus
            if free_at[pool][gpus - 1] <= world.now and world.fits(job, pool):
                return start(job, pool)
            free_at[pool] = sorted([c] * gpus + free_at[pool][gpus:])
            unplanned.remove(job)
        return []

    def free_times(self, world: PlainWorld, pool: int) -> list[float]:
        runs = [run for run in world.running if run.pool == pool]
        held = [world.expected_end(run) for run in runs for _ in run.gpus]
        return sorted([world.now] * world.pools[pool].free() + held)

    def completion(self, world: PlainWorld, free_at: list[list[float]], pair: Pair) -> float:
        return free_at[pair.pool][world.jobs[pair.job].gpus - 1] + p(world, *pair)


class Script:
    """Random feasible decisions, to lead a world through all that can happen in it.

    Unlike an honest policy it looks at the next arrival, so that timers ring at the same moment.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def decide(self, world: PlainWorld) -> list[Decision]:
        must_act = not world.running and not world.arrivals_left
        roll = self.rng.random()
        if roll < 0.15 and not must_act:
            return []
        if roll < 0.3:
            return [self.wake(world) for _ in range(self.rng.integers(1, 3))]
        answer = self.starts(world, int(self.rng.integers(1, 4)))
        if len(answer) < 3 and self.rng.random() < 0.2:
            answer.insert(int(self.rng.integers(len(answer) + 1)), self.wake(world))
        return answer

    def wake(self, world: PlainWorld) -> Decision:
        """A timer in whole seconds from now, at any time, or just when something else is due."""
        known = [run.expected for run in world.running]
        known += [job.arrival for job in world.jobs[world.arrived : world.arrived + 2]]
        known = [at for at in known if at > world.now]
        roll = self.rng.random()
        if known and roll < 0.5:
            return Decision("wake", at=known[self.rng.integers(len(known))])
        if roll < 0.8:
            return Decision("wake", at=world.now + int(self.rng.integers(1, 5)))
        return Decision("wake", at=world.now + float(self.rng.uniform(0.01, 10)))

    def starts(self, world: PlainWorld, most: int) -> list[Decision]:
        """Up to `most` starts that are feasible one after the other."""
        answer: list[Decision] = []
        taken: dict[int, list[int]] = {}
        for _ in range(most):
            pairs = [pair for pair in feasible_pairs(world) if pair.job not in taken]
            if not pairs:
                break
            decision = self.name(world, pairs[self.rng.integers(len(pairs))])
            taken[decision.job] = world.place(decision)
            world.take(decision.job, taken[decision.job])
            answer.append(decision)
        for job, gpus in taken.items():
            world.give(job, gpus)
        return answer

    def name(self, world: PlainWorld, pair: Pair) -> Decision:
        """A start that names nothing, a node, a GPU, or a GPU and its node."""
        nodes = [n for n in world.pools[pair.pool].nodes if world.capacity(pair.job, n.id) >= 1]
        node = nodes[self.rng.integers(len(nodes))]
        free = sorted(node.free_gpus)
        gpu = free[self.rng.integers(len(free))]
        named = [(-1, -1), (node.id, -1), (-1, gpu), (node.id, gpu)]
        return Decision("start", *pair, *named[self.rng.integers(4)])


class Replay:
    """The answers of an earlier run, call by call."""

    def __init__(self, trace: list[list[Decision]]) -> None:
        self.trace = trace
        self.calls = 0

    def decide(self, world: PlainWorld) -> list[Decision]:
        self.calls += 1
        return self.trace[self.calls - 1]


def make(name: str, case: Case, seed: int = 0) -> Policy:
    """A fresh policy by its name in the table, or the `script`."""
    makers: dict[str, Callable[[], Policy]] = {
        "fcfs": Fcfs,
        "random": lambda: Random(seed),
        "static-affinity": lambda: StaticAffinity(case.affinity),
        "static-affinity-lp": lambda: StaticAffinityLp(case.pools_of_type),
        "sjf": Sjf,
        "pair-sjf": PairSjf,
        "easy-backfill": EasyBackfill,
        "min-min": MinMin,
        "script": lambda: Script(np.random.default_rng(seed)),
    }
    return makers[name]()
