"""Plain versions of lp-sjf, lp-price and of the policies that plan in other orders than Min-Min's.

Every plan is made to its end; the compiled policies stop early, which must not change the result.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt
from typing import NamedTuple

from tests.plain import policies
from tests.plain.cases import Case
from tests.plain.records import Decision
from tests.plain.simulator import PlainWorld, Policy


class LpSjf:
    """The pair of a job and one of its LP pools, on which it fits, with the smallest p."""

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
    """The cheapest feasible pair at a fair price; if none and nothing runs, the fastest pair."""

    def __init__(self, prices: list[float]) -> None:
        self.prices = [max(price, 0.1) for price in prices]

    def price(self, world: PlainWorld, pair: policies.Pair) -> float:
        """Price of the whole job on the pool, per GPU."""
        return world.est[pair.job][world.pools[pair.pool].model] * self.prices[pair.pool]

    def fair(self, world: PlainWorld, pair: policies.Pair) -> bool:
        pools = policies.large_enough(world, pair.job)
        least = min(self.price(world, policies.Pair(pair.job, pool)) for pool in pools)
        return self.price(world, pair) <= 1.5 * least

    def decide(self, world: PlainWorld) -> list[Decision]:
        pairs = [pair for pair in policies.feasible_pairs(world) if self.fair(world, pair)]
        if pairs:
            left = [world.carried[pair.job].left for pair in pairs]
            costs = [self.price(world, pair) * rest for pair, rest in zip(pairs, left, strict=True)]
            return policies.start(*pairs[costs.index(min(costs))])
        return [] if world.runs else policies.start_quickest_pair(world)


class End(NamedTuple):
    """An expected completion; ties go to the lower pool."""

    at: float
    pool: int
    ready: float


Ends = dict[int, list[End]]  # by job that some pool can hold, in queue order; best pool first


class Planned:
    """Plans the jobs in the order given by `choose`; starts the first one that is ready now."""

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
    """Plans the job with the smallest time to completion over the root of its priority next."""

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
    """The first job of the queue."""
    return next(iter(ends))


def last_completed(ends: Ends) -> int:
    """The job whose smallest completion is largest."""
    return max(ends, key=lambda job: ends[job][0].at)


def largest_sufferage(ends: Ends) -> int:
    """The job that loses most without its best pool; ties go to the earlier completion."""

    def sufferage(job: int) -> float:
        """Second-smallest minus smallest completion, in whole microseconds."""
        return round((ends[job][1].at - ends[job][0].at) * 1e6) if len(ends[job]) > 1 else inf

    return min(ends, key=lambda job: (-sufferage(job), ends[job][0].at))


MAKERS: dict[str, Callable[[Case, int], Policy]] = {
    "lp-sjf": lambda case, seed: LpSjf(case.pools_of_type),
    "mct": lambda case, seed: Planned(oldest),
    "max-min": lambda case, seed: Planned(last_completed),
    "sufferage": lambda case, seed: Planned(largest_sufferage),
    "weighted-min-min": lambda case, seed: Weighted(case),
    "lp-price": lambda case, seed: LpPrice(case.pools["worth"].tolist()),
}
