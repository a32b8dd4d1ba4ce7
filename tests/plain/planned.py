"""Plain twins of lp-sjf, of lp-price and of the policies that plan in another order than Min-Min's.

Every plan goes on to its end: that the compiled ones stop early must not show.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt
from typing import NamedTuple

from tests.plain import policies
from tests.plain.cases import Case
from tests.plain.simulator import PlainWorld, Policy
from tests.plain.things import Decision


class LpSjf:
    """Of the pairs of a job and one of its LP pools with room, the one with the smallest p."""

    def __init__(self, pools_of_type: list[set[int]]) -> None:
        self.affinity = policies.StaticAffinityLp(pools_of_type)

    def decide(self, world: PlainWorld) -> list[Decision]:
        pairs = [
            policies.Pair(job, pool)
            for job in world.waiting
            for pool in self.affinity.homes(world, job)
            if world.fits(job, pool)
        ]
        if not pairs:
            return []
        return policies.start(*min(pairs, key=lambda pair: policies.p(world, *pair)))


class LpPrice:
    """Of the pairs at a fair price with room, the cheapest; if nothing runs, the quickest."""

    def __init__(self, prices: list[float]) -> None:
        self.prices = [max(price, 0.1) for price in prices]

    def pays(self, world: PlainWorld, pair: policies.Pair) -> float:
        """For the whole job, a GPU."""
        return world.est[pair.job][world.pools[pair.pool].model] * self.prices[pair.pool]

    def fair(self, world: PlainWorld, pair: policies.Pair) -> bool:
        known = policies.large_enough(world, pair.job)
        least = min(self.pays(world, policies.Pair(pair.job, pool)) for pool in known)
        return self.pays(world, pair) <= 1.5 * least

    def decide(self, world: PlainWorld) -> list[Decision]:
        pairs = [pair for pair in policies.feasible_pairs(world) if self.fair(world, pair)]
        if pairs:
            left = [world.carried[pair.job].left for pair in pairs]
            paid = [self.pays(world, pair) * rest for pair, rest in zip(pairs, left, strict=True)]
            return policies.start(*pairs[paid.index(min(paid))])
        return [] if world.runs else policies.start_quickest_pair(world)


class End(NamedTuple):
    """An expected completion; of equal ones the lower pool comes first."""

    at: float
    pool: int
    ready: float


Ends = dict[int, list[End]]  # of each job that some pool can take, in queue order: best pool first


class Planned:
    """Plan the job that `choose` names, again and again; start the first whose turn is now."""

    def __init__(self, choose: Callable[[Ends], int]) -> None:
        self.choose = choose

    def decide(self, world: PlainWorld) -> list[Decision]:
        free_at = [sorted(world.free_at(gpu) for gpu in g.up()) for g in world.pools]
        unplanned = list(world.waiting)
        while ends := {job: e for job in unplanned if (e := self.ends(world, free_at, job))}:
            job = self.choose(ends)
            best, gpus = ends[job][0], world.jobs[job].gpus
            if best.ready <= world.now and world.fits(job, best.pool):
                return policies.start(job, best.pool)
            free_at[best.pool] = sorted([best.at] * gpus + free_at[best.pool][gpus:])
            unplanned.remove(job)
        return []

    def ends(self, world: PlainWorld, free_at: list[list[float]], job: int) -> list[End]:
        found = []
        for pool in world.eligible(job):
            ready = policies.MinMin().ready(world, free_at[pool], policies.Pair(job, pool))
            found.append(End(ready + policies.p(world, job, pool), pool, ready))
        return sorted(end for end in found if end.at < inf)


class Weighted(Planned):
    """The job with the smallest time to its end over the root of its priority goes next."""

    def __init__(self, case: Case) -> None:
        super().__init__(self.heaviest)
        self.root = [sqrt(max(priority, 0.01)) for priority in case.jobs["priority"].tolist()]
        self.now = 0.0

    def decide(self, world: PlainWorld) -> list[Decision]:
        self.now = world.now
        return super().decide(world)

    def heaviest(self, ends: Ends) -> int:
        return min(
            ends, key=lambda job: ((ends[job][0].at - self.now) / self.root[job], ends[job][0].at)
        )


def oldest(ends: Ends) -> int:
    """The first of the queue."""
    return next(iter(ends))


def last_completed(ends: Ends) -> int:
    """The job whose smallest completion is largest."""
    return max(ends, key=lambda job: ends[job][0].at)


def neediest(ends: Ends) -> int:
    """The job that loses most without its best pool; of equals the one completed first."""

    def loss(job: int) -> float:
        """In whole microseconds."""
        return round((ends[job][1].at - ends[job][0].at) * 1e6) if len(ends[job]) > 1 else inf

    return min(ends, key=lambda job: (-loss(job), ends[job][0].at))


MAKERS: dict[str, Callable[[Case, int], Policy]] = {
    "lp-sjf": lambda case, seed: LpSjf(case.pools_of_type),
    "mct": lambda case, seed: Planned(oldest),
    "max-min": lambda case, seed: Planned(last_completed),
    "sufferage": lambda case, seed: Planned(neediest),
    "weighted-min-min": lambda case, seed: Weighted(case),
    "lp-price": lambda case, seed: LpPrice(case.pools["worth"].tolist()),
}
