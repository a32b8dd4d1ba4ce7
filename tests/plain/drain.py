"""Plain twin of drain-argmin: every choice's cost in full, with sorted lists."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from tests.plain import policies
from tests.plain.cases import Case
from tests.plain.policies import Pair
from tests.plain.simulator import PlainWorld, Policy
from tests.plain.things import Decision

MOST_PAIRS, MOST_SHORTEST = 15, 40
CLEARLY = 1e-6
Choice = Pair | None  # None = wait


class DrainArgmin:
    """Of Min-Min's choice, waiting and the shortest pairs the one that drains the queue soonest."""

    def decide(self, world: PlainWorld) -> list[Decision]:
        if not policies.feasible_pairs(world):
            return []
        choices = self.choices(world)
        jobs = self.planned(world, choices)
        best, least = choices[0], inf
        for choice in choices:
            cost = self.cost(world, choice, jobs)
            if cost < least - CLEARLY:
                best, least = choice, cost
        return policies.start(*best) if best else []

    def choices(self, world: PlainWorld) -> list[Choice]:
        """In the order in which they are preferred if their costs are equal."""
        started = policies.MinMin().decide(world)
        first = Pair(started[0].job, started[0].pool) if started else None
        pairs = sorted(policies.feasible_pairs(world), key=lambda pair: policies.p(world, *pair))
        unique = list(dict.fromkeys([first, None, *pairs[:MOST_PAIRS]]))
        return [choice for choice in unique if choice or world.runs]

    def planned(self, world: PlainWorld, choices: list[Choice]) -> list[int]:
        """The jobs that every cost counts, in queue order."""
        able = [job for job in world.waiting if policies.large_enough(world, job)]
        able.sort(key=lambda job: min(self.ps(world, job)))
        return sorted({*able[:MOST_SHORTEST], *(choice.job for choice in choices if choice)})

    def ps(self, world: PlainWorld, job: int) -> list[float]:
        return [policies.p(world, job, pool) for pool in policies.large_enough(world, job)]

    def cost(self, world: PlainWorld, choice: Choice, jobs: list[int]) -> float:
        free_at = [sorted(world.free_at(gpu) for gpu in g.up()) for g in world.pools]
        if choice is None:
            finish = min(world.expected_end(run) for run in world.running)
            free_at = [[max(time, finish) for time in times] for times in free_at]
            return self.rest(world, finish, free_at, jobs)
        own = policies.p(world, *choice) * self.span(world, choice)
        self.hold(world, world.now, free_at, choice, world.now + own)
        others = [job for job in jobs if job != choice.job]
        return own + self.rest(world, world.now, free_at, others)

    def span(self, world: PlainWorld, pair: Pair) -> float:
        """The penalty if no node of the pool could hold the whole gang."""
        job, pool = world.jobs[pair.job], world.pools[pair.pool]
        room = max(world.cluster.capacity(job, node) for node in pool.nodes)
        return 1 if room >= job.gpus else 1 + job.communication * pool.span_cost

    def hold(
        self, world: PlainWorld, at: float, free_at: list[list[float]], pair: Pair, until: float
    ) -> None:
        """A job holds its GPUs; a slice that fits now holds one that is free, if there is one."""
        times, job = free_at[pair.pool], world.jobs[pair.job]
        if job.whole or not world.fits(*pair) or times[0] <= at:
            free_at[pair.pool] = sorted([until] * job.gpus + times[job.gpus :])

    def ready(self, world: PlainWorld, at: float, times: list[float], pair: Pair) -> float:
        if not world.jobs[pair.job].whole and world.fits(*pair):
            return at
        return times[world.jobs[pair.job].gpus - 1]

    def rest(
        self, world: PlainWorld, at: float, free_at: list[list[float]], jobs: list[int]
    ) -> float:
        """Seconds from now until each job is completed in Min-Min's plan, added up."""
        total, unplanned = 0.0, list(jobs)
        while unplanned:
            ends = {
                Pair(job, pool): self.ready(world, at, free_at[pool], Pair(job, pool))
                + policies.p(world, job, pool)
                for job in unplanned
                for pool in policies.large_enough(world, job)
            }
            pair = min(ends, key=lambda pair: ends[pair])
            self.hold(world, at, free_at, pair, ends[pair])
            total += ends[pair] - world.now
            unplanned.remove(pair.job)
        return total


MAKERS: dict[str, Callable[[Case, int], Policy]] = {
    "drain-argmin": lambda case, seed: DrainArgmin(),
}
