"""Plain version of drain-argmin: the full cost of every choice, with sorted lists."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import inf
from typing import NamedTuple

from tests.plain import policies
from tests.plain.cases import Case
from tests.plain.policies import Pair
from tests.plain.records import Decision
from tests.plain.simulator import PlainWorld, Policy

MAX_PAIRS, MAX_SHORTEST, MAX_TAIL, PLANNED_LOADS = 15, 40, 216, 2
MIN_GAIN_S = 1e-6  # a choice must cost less by more than this to replace the best so far
Choice = Pair | None  # None = wait


class Planned(NamedTuple):
    """The planned jobs and the free times, shared by the costs of all choices."""

    now: float
    jobs: list[int]  # in queue order
    tail: list[int]  # planned after these, the shortest first
    p: dict[Pair, float]  # estimated seconds, on every pool that can hold the job
    gpus: dict[int, int]  # gang size of each job
    beside: set[Pair]  # slices that fit a pool now
    free_at: list[list[float]]  # expected free times by pool, sorted
    one_node: dict[Pair, float]  # when one node can hold a gang that needs it


class DrainArgmin:
    """The choice with the smallest drain cost: Min-Min's, waiting, or one of the shortest pairs."""

    def decide(self, world: PlainWorld) -> list[Decision]:
        if not policies.feasible_pairs(world):
            return []
        choices = self.choices(world)
        plan = self.plan(world, choices)
        best, least = choices[0], inf
        for choice in choices:
            cost = self.cost(world, choice, plan)
            if cost < least - MIN_GAIN_S:
                best, least = choice, cost
        return policies.start(*best) if best else []

    def choices(self, world: PlainWorld) -> list[Choice]:
        """The choices, in order of preference on ties."""
        started = policies.MinMin().decide(world)
        first = Pair(started[0].job, started[0].pool) if started else None
        pairs = sorted(policies.feasible_pairs(world), key=lambda pair: policies.p(world, *pair))
        unique = list(dict.fromkeys([first, None, *pairs[:MAX_PAIRS]]))
        return [choice for choice in unique if choice or world.runs]

    def plan(self, world: PlainWorld, choices: list[Choice]) -> Planned:
        p = {
            Pair(job, pool): policies.p(world, job, pool)
            for job in world.waiting
            for pool in policies.large_enough(world, job)
        }
        least: dict[int, float] = {}
        for pair, seconds in p.items():
            least[pair.job] = min(seconds, least.get(pair.job, inf))
        short = sorted(least, key=lambda job: least[job])[:MAX_SHORTEST]
        jobs = sorted({*short, *(choice.job for choice in choices if choice)})
        rest = sorted(least.keys() - set(jobs), key=lambda job: (least[job], job))[:MAX_TAIL]
        room = PLANNED_LOADS * sum(len(pool.up()) for pool in world.pools)
        room -= sum(world.jobs[job].gpus for job in jobs)
        before = accumulate((world.jobs[job].gpus for job in rest), initial=0)
        tail = [job for job, gpus in zip(rest, before, strict=False) if gpus < room]
        return Planned(
            world.now,
            jobs,
            tail,
            p,
            {job: world.jobs[job].gpus for job in [*jobs, *tail]},
            {pair for pair in p if not world.jobs[pair.job].whole and world.fits(*pair)},
            [sorted(world.free_at(gpu) for gpu in g.up()) for g in world.pools],
            {
                pair: policies.one_node_at(world, pair.pool, world.jobs[pair.job].gpus)
                for pair in p
                if policies.needs_one_node(world, pair.job)
            },
        )

    def cost(self, world: PlainWorld, choice: Choice, plan: Planned) -> float:
        if choice is None:
            finish = min(world.expected_end(run) for run in world.running)
            free_at = [[max(time, finish) for time in times] for times in plan.free_at]
            return self.rest(plan, finish, free_at, plan.jobs)
        seconds = plan.p[choice] * self.span(world, choice)
        free_at = [list(times) for times in plan.free_at]
        self.hold(plan, world.now, free_at, choice, world.now + seconds)
        others = [job for job in plan.jobs if job != choice.job]
        return seconds + self.rest(plan, world.now, free_at, others)

    def span(self, world: PlainWorld, pair: Pair) -> float:
        """Span factor if no node of the pool can hold the whole gang, else 1."""
        job, pool = world.jobs[pair.job], world.pools[pair.pool]
        room = max(world.cluster.capacity(job, node) for node in pool.nodes)
        return 1 if room >= job.gpus else 1 + job.communication * pool.span_cost

    def hold(
        self, plan: Planned, at: float, free_at: list[list[float]], pair: Pair, until: float
    ) -> None:
        """Reserve the GPUs of a job; a slice that fits now holds a free GPU, if there is one."""
        times, gpus = free_at[pair.pool], plan.gpus[pair.job]
        if pair not in plan.beside or times[0] <= at:
            free_at[pair.pool] = sorted([until] * gpus + times[gpus:])

    def rest(self, plan: Planned, at: float, free_at: list[list[float]], jobs: list[int]) -> float:
        """Sum of the times from now until each job completes in Min-Min's plan."""

        def end(pair: Pair) -> float:
            ready = at if pair in plan.beside else free_at[pair.pool][plan.gpus[pair.job] - 1]
            return max(ready, plan.one_node.get(pair, ready)) + plan.p[pair]

        total, pairs = 0.0, [pair for pair in plan.p if pair.job in jobs]
        while pairs:
            pair = min(pairs, key=end)
            total += end(pair) - plan.now
            self.hold(plan, at, free_at, pair, end(pair))
            pairs = [other for other in pairs if other.job != pair.job]
        return total + self.after(plan, free_at)

    def after(self, plan: Planned, free_at: list[list[float]]) -> float:
        """The same sum over the tail: each job in turn where it completes first."""
        total = 0.0
        for job in plan.tail:
            gpus = plan.gpus[job]
            ends = {
                pair.pool: free_at[pair.pool][gpus - 1] + seconds
                for pair, seconds in plan.p.items()
                if pair.job == job
            }
            pool = min(ends, key=lambda pool: (ends[pool], pool))
            free_at[pool] = sorted([ends[pool]] * gpus + free_at[pool][gpus:])
            total += ends[pool] - plan.now
        return total


MAKERS: dict[str, Callable[[Case, int], Policy]] = {
    "drain-argmin": lambda case, seed: DrainArgmin(),
}
