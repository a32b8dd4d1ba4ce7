"""Plain twins of lp-sjf and of the policies that plan in another order than Min-Min's.

Every plan goes on to its end: that the compiled ones stop early must not show.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
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
}
