"""Plain versions of the baselines, each as close to its line in docs/simulator.md as possible.

Each answers with one start per call. `p` is the estimated time that a job still needs on a pool.
Python's `min` returns the first of equals: lists in queue order, then pool order, break every tie.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

import numpy as np

from tests.plain.cases import Case
from tests.plain.records import Decision
from tests.plain.script import Script
from tests.plain.simulator import PlainWorld, Policy

MASK = 2**64 - 1
TIRESIAS = (37.12345, 4.0)  # GPU-seconds and seconds, for cases much shorter than real ones


class Pair(NamedTuple):
    """A job and a pool."""

    job: int
    pool: int


def p(world: PlainWorld, job: int, pool: int) -> float:
    """Estimated seconds that the job still needs on the pool."""
    return world.est[job][world.pools[pool].model] * world.carried[job].left


def quickest(world: PlainWorld, job: int, pools: list[int]) -> int:
    """The pool with the smallest p."""
    return min(pools, key=lambda pool: p(world, job, pool))


def large_enough(world: PlainWorld, job: int) -> list[int]:
    """The eligible pools with as many GPUs up as the job needs."""
    need, gang = world.jobs[job].gpus, needs_one_node(world, job)
    pools = [pool for pool in world.eligible(job) if len(world.pools[pool].up()) >= need]
    return [pool for pool in pools if not gang or len(world.pools[pool].nodes[0].gpus) >= need]


def needs_one_node(world: PlainWorld, job: int) -> bool:
    """Whether the job is a gang of several GPUs that must be on one node."""
    return bool(world.jobs[job].one_node) and world.jobs[job].gpus > 1


def one_node_at(world: PlainWorld, pool: int, need: int) -> float:
    """Expected time when one node of the pool has `need` GPUs free, by the runs on it."""
    ends = [inf]
    for node in world.pools[pool].nodes:
        if node.up and len(node.gpus) >= need:
            ends.append(sorted(world.free_at(gpu) for gpu in node.gpus)[need - 1])
    return min(ends)


def feasible(world: PlainWorld, job: int) -> list[int]:
    """The eligible pools on which the job fits now."""
    return [pool for pool in world.eligible(job) if world.fits(job, pool)]


def feasible_pairs(world: PlainWorld) -> list[Pair]:
    """All feasible pairs, in queue order, then pool order."""
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
    """The oldest job that is eligible at all, on the lowest-numbered feasible pool."""

    def decide(self, world: PlainWorld) -> list[Decision]:
        for job in [job for job in world.waiting if world.eligible(job)][:1]:
            for pool in feasible(world, job)[:1]:
                return start(job, pool)
        return []


class Random:
    """A random feasible pair, drawn by splitmix64."""

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

    def home(self, world: PlainWorld, job: int) -> int | None:
        usable = large_enough(world, job)
        model = self.affinity[world.jobs[job].type]
        of_model = [pool for pool in usable if world.pools[pool].model == model]
        if of_model:
            return of_model[0]
        return quickest(world, job, usable) if usable else None

    def decide(self, world: PlainWorld) -> list[Decision]:
        closed: set[int] = set()
        for job in world.waiting:
            pool = self.home(world, job)
            if pool is None or pool in closed:
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
        usable = large_enough(world, job)
        given = [pool for pool in usable if pool in self.pools_of_type[world.jobs[job].type]]
        if given or not usable:
            return given
        return [quickest(world, job, usable)]

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
    """Pool and time of the oldest job's expected start, and the GPUs that remain free there."""

    pool: int
    at: float
    spare: int
    node: int | None  # of a gang that needs one node


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
                return self.backfill(world, plan, job, quickest(world, job, pools))
        return []

    def backfill(
        self, world: PlainWorld, plan: Reservation | None, job: int, pool: int
    ) -> list[Decision]:
        """The start of a job, apart from the reserved node if it ends after the reservation."""
        if plan is None or plan.node is None or not self.clashes(world, plan, job, pool):
            return start(job, pool)
        nodes = self.nodes_beside(world, plan, job)
        node = min(nodes, key=lambda n: (world.cluster.nodes[n].free, n))
        return [Decision("start", job, pool, node)]

    def reserve(self, world: PlainWorld, head: int) -> Reservation | None:
        need, gang = world.jobs[head].gpus, needs_one_node(world, head)
        at = {pool: self.earliest(world, pool, need) for pool in world.eligible(head)}
        if gang:
            at = {pool: max(at[pool], one_node_at(world, pool, need)) for pool in at}
        best = min(at, key=lambda pool: at[pool] + p(world, head, pool), default=None)
        if best is None or at[best] == inf:
            return None
        if not gang:
            return Reservation(best, at[best], self.free_by(world, best, at[best]) - need, None)
        nodes = [node for node in world.pools[best].nodes if node.up]
        free = {node.id: sum(world.free_at(g) <= at[best] for g in node.gpus) for node in nodes}
        node = max(free, key=lambda n: (free[n], -n))
        return Reservation(best, at[best], free[node] - need, node)

    def earliest(self, world: PlainWorld, pool: int, need: int) -> float:
        """Expected time when `need` GPUs of the pool are free; infinite if fewer are up."""
        times = sorted(world.free_at(gpu) for gpu in world.pools[pool].up())
        return times[need - 1] if len(times) >= need else inf

    def free_by(self, world: PlainWorld, pool: int, s: float) -> int:
        return sum(world.free_at(gpu) <= s for gpu in world.pools[pool].up())

    def harmless(self, world: PlainWorld, plan: Reservation | None, job: int, pool: int) -> bool:
        if plan is None or not self.clashes(world, plan, job, pool):
            return True
        if plan.node is not None:
            return bool(self.nodes_beside(world, plan, job))
        return world.jobs[job].gpus <= plan.spare

    def clashes(self, world: PlainWorld, plan: Reservation, job: int, pool: int) -> bool:
        """Whether the job would still run on the reserved pool at the reserved time."""
        return pool == plan.pool and world.now + p(world, job, pool) > plan.at

    def nodes_beside(self, world: PlainWorld, plan: Reservation, job: int) -> list[int]:
        """Nodes of the reserved pool that hold the whole job now beside the reservation."""
        need, nodes = world.jobs[job], world.pools[plan.pool].nodes
        able = [node.id for node in nodes if world.cluster.capacity(need, node) >= need.gpus]
        return [n for n in able if n != plan.node or need.gpus <= plan.spare]


class MinMin:
    """Plans the job that would complete first, again and again; starts it if it is ready now."""

    def decide(self, world: PlainWorld) -> list[Decision]:
        free_at = [sorted(world.free_at(gpu) for gpu in g.up()) for g in world.pools]
        unplanned = list(world.waiting)
        while unplanned and self.may_start(world, free_at, unplanned):
            pairs = [Pair(job, pool) for job in unplanned for pool in world.eligible(job)]
            ready = [self.ready(world, free_at[pair.pool], pair) for pair in pairs]
            ends = [r + p(world, *pair) for r, pair in zip(ready, pairs, strict=True)]
            c = min(ends, default=inf)
            if c == inf:
                break
            job, pool = pairs[ends.index(c)]
            if ready[ends.index(c)] <= world.now and world.fits(job, pool):
                return start(job, pool)
            gpus = world.jobs[job].gpus
            free_at[pool] = sorted([c] * gpus + free_at[pool][gpus:])
            unplanned.remove(job)
        return []

    def may_start(self, world: PlainWorld, free_at: list[list[float]], jobs: list[int]) -> bool:
        slices = any(not world.jobs[job].whole for job in jobs)
        return slices or any(times and times[0] <= world.now for times in free_at)

    def ready(self, world: PlainWorld, times: list[float], pair: Pair) -> float:
        """Earliest start of the job on the pool whose GPUs are free at these times."""
        job = world.jobs[pair.job]
        if not job.whole and world.fits(*pair):
            return world.now
        if len(times) < job.gpus:
            return inf
        at = one_node_at(world, pair.pool, job.gpus) if needs_one_node(world, pair.job) else -inf
        return max(times[job.gpus - 1], at)


class Tiresias:
    """Two-queue least attained service, preemptive, in rounds."""

    def __init__(self, threshold: float, pause: float) -> None:
        self.threshold, self.pause = threshold, pause
        self.due = -inf

    def decide(self, world: PlainWorld) -> list[Decision]:
        if not world.waiting:
            return []
        ranked = sorted([*world.waiting, *world.runs], key=lambda job: (self.late(world, job), job))
        for job in ranked:
            if job in world.waiting and feasible(world, job):
                return start(job, self.by_speed(world, job, feasible(world, job))[0])
        at = self.due
        if world.now >= self.due:
            for place, job in enumerate(ranked):
                if job in world.waiting:
                    for pool in self.by_speed(world, job, world.eligible(job)):
                        victims = self.make_room(world, job, pool, ranked[place + 1 :])
                        if victims:
                            stops = [Decision("preempt", victim) for victim in victims]
                            return [*stops, *start(job, pool)]
            self.due = world.now + self.pause
            at = max(self.due, self.next_change(world) + 1)
        return [Decision("wake", at=at)] if at < inf else []

    def served(self, world: PlainWorld, job: int) -> float:
        """GPU-seconds that the job has received."""
        spans = [span for span in world.result.spans if span.job == job]
        received = sum((span.end - span.start) * span.share / 1000 for span in spans)
        if job in world.runs:
            received += (world.now - world.runs[job].start) * self.width(world, job)
        return received

    def width(self, world: PlainWorld, job: int) -> float:
        """Number of GPUs that the job holds while it runs."""
        return world.jobs[job].gpus * world.jobs[job].share / 1000

    def late(self, world: PlainWorld, job: int) -> bool:
        """Whether the job is in the second queue."""
        return self.served(world, job) >= self.threshold

    def by_speed(self, world: PlainWorld, job: int, pools: list[int]) -> list[int]:
        """The pools, the one with the smallest estimate for the whole job first."""
        return sorted(pools, key=lambda pool: world.est[job][world.pools[pool].model])

    def make_room(self, world: PlainWorld, job: int, pool: int, behind: list[int]) -> list[int]:
        """Runs on the pool to preempt, from the end of the list, until the job fits; or none."""
        stopped: list[int] = []
        for other in reversed(behind):
            if (
                other in world.runs
                and world.runs[other].pool == pool
                and self.preemptible(world, other)
            ):
                world.cluster.give(world.jobs[other], world.runs[other].gpus)
                stopped.append(other)
                if world.fits(job, pool):
                    break
        room = bool(stopped) and world.fits(job, pool)
        for other in stopped:
            world.cluster.take(world.jobs[other], world.runs[other].gpus)
        return stopped if room else []

    def preemptible(self, world: PlainWorld, job: int) -> bool:
        """Whether the run can checkpoint and is old enough."""
        need, run = world.jobs[job], world.runs[job]
        return need.checkpoint >= 0 and world.now - run.start >= need.least_run

    def next_change(self, world: PlainWorld) -> float:
        """Next time at which the list or the set of preemptible runs changes without an event."""
        moments = [inf]
        for job, run in world.runs.items():
            if world.jobs[job].checkpoint >= 0:
                rest = self.threshold - self.served(world, job)
                if rest > 0:
                    moments.append(world.now + rest / self.width(world, job))
                if world.now - run.start < world.jobs[job].least_run:
                    moments.append(run.start + world.jobs[job].least_run)
        return min(moments)


MAKERS: dict[str, Callable[[Case, int], Policy]] = {
    "fcfs": lambda case, seed: Fcfs(),
    "random": lambda case, seed: Random(seed),
    "static-affinity": lambda case, seed: StaticAffinity(case.affinity),
    "static-affinity-lp": lambda case, seed: StaticAffinityLp(case.pools_of_type),
    "sjf": lambda case, seed: Sjf(),
    "pair-sjf": lambda case, seed: PairSjf(),
    "easy-backfill": lambda case, seed: EasyBackfill(),
    "min-min": lambda case, seed: MinMin(),
    "tiresias": lambda case, seed: Tiresias(*TIRESIAS),
    "script": lambda case, seed: Script(np.random.default_rng(seed), case.whole),
}
