"""Plain version of adlro: the choices of a state, their features by name, a network in lists."""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, exp, inf, log, log2
from typing import NamedTuple

import numpy as np

from adlro.features.start_kernel import PLAIN
from tests.plain import policies
from tests.plain.cases import Case
from tests.plain.drain import Choice, DrainArgmin, Planned
from tests.plain.policies import Pair
from tests.plain.records import Decision
from tests.plain.simulator import PlainWorld, Policy

MAX_PAIRS = 15
PATIENCE = 20.0  # maximum wait, in run times of the shortest job
FAR = 1000.0  # clip value of times, in tau
MIN_SECONDS = 1e-9
RECENT, MIN_RECENT = 32, 8  # arrivals used for the features of the arrival process; minimum
TIE = 1e-9  # predictions that differ by less may be ordered by rounding errors

Features = dict[str, float]


class Net(NamedTuple):
    """Weights of a network with F features and two hidden layers of H1 and H2 units."""

    residual: list[float]  # weights of the drain difference, plain and squeezed
    first: list[list[float]]  # [F][H1]
    first_bias: list[float]
    second: list[list[float]]  # [H1][H2]
    second_bias: list[float]
    last: list[float]  # [H2]


def random_net(seed: int, sizes: tuple[int, int] = (6, 5), scale: float = 0.3) -> Net:
    """A random network of all features; with a residual for odd seeds."""
    rng = np.random.default_rng(seed)
    shapes = (2, (len(PLAIN), sizes[0]), sizes[0], sizes, sizes[1], sizes[1])
    net = Net(*((scale * rng.standard_normal(shape)).tolist() for shape in shapes))
    return net if seed % 2 else net._replace(residual=[0.0, 0.0])


def as_params(net: Net) -> list[float]:
    """Parameters of the compiled policy: sizes, residual, no kinds, one member, no caution.

    Columns, bounds (none) and weights by row follow.
    """
    count = len(net.first)
    sizes = [count, len(net.first_bias), len(net.last)]
    rows = [x for layer in (net.first, [net.first_bias], net.second) for row in layer for x in row]
    head = [*sizes, *net.residual, 0.0, 1.0, 0.0, *range(count), *[-inf] * count, *[inf] * count]
    return [*head, *rows, *net.second_bias, *net.last]


def predicted(net: Net, x: Features) -> float:
    """The cost that the network predicts."""

    def layer(values: list[float], weights: list[list[float]], bias: list[float]) -> list[float]:
        columns = zip(*weights, strict=True)
        sums = (sum(v * w for v, w in zip(values, c, strict=True)) for c in columns)
        return [max(b + s, 0.0) for b, s in zip(bias, sums, strict=True)]

    hidden = layer([x[name] for name in PLAIN], net.first, net.first_bias)
    hidden = layer(hidden, net.second, net.second_bias)
    residual = net.residual[0] * x["drain"] + net.residual[1] * x["drain_log"]
    return residual + sum(h * w for h, w in zip(hidden, net.last, strict=True))


class Pick(NamedTuple):
    """Pool, times and rank of a job in the plan."""

    pool: int
    start: float
    end: float
    rank: int


class Choices(NamedTuple):
    """The choices of a state and their features."""

    choices: list[Choice]  # the first is to wait
    planned: int  # index of Min-Min's choice
    tau: float
    costs: list[float]  # drain costs
    features: list[Features]


class Learned(DrainArgmin):
    """The choice for which the network predicts the smallest cost."""

    def __init__(self, case: Case, net: Net) -> None:
        self.priority: list[float] = case.jobs["priority"].tolist()
        self.net = net

    def decide(self, world: PlainWorld) -> list[Decision]:
        seen = self.look(world)
        if not seen:
            return []
        costs = self.costs(world, seen)
        least = min(costs.values())
        best = seen.planned if costs.get(seen.planned) == least else min(costs, key=costs.get)
        if best == 0 and self.is_too_long(world, seen):
            best = 1
        choice = seen.choices[best]
        return policies.start(*choice) if choice else []

    def is_too_long(self, world: PlainWorld, seen: Choices) -> bool:
        """Whether the shortest startable job would end long before the next running one."""
        shortest = seen.choices[1]
        seconds = policies.p(world, *shortest) * self.span(world, shortest)
        end = min((world.expected_end(run) for run in world.running), default=inf)
        return end - world.now > PATIENCE * seconds

    def costs(self, world: PlainWorld, seen: Choices) -> dict[int, float]:
        """Predicted cost of each allowed choice."""
        allowed = range(0 if world.runs else 1, len(seen.choices))
        if not world.runs and seen.planned > 0:
            allowed = range(seen.planned, seen.planned + 1)
        return {i: predicted(self.net, seen.features[i]) for i in allowed}

    def look(self, world: PlainWorld) -> Choices | None:
        """The choices of the present state; None = no job can start."""
        pairs = sorted(policies.feasible_pairs(world), key=lambda pair: policies.p(world, *pair))
        if not pairs:
            return None
        started = policies.MinMin().decide(world)
        choices: list[Choice] = [None, *pairs[:MAX_PAIRS]]
        first = Pair(started[0].job, started[0].pool) if started else None
        if first not in choices:
            choices[-1] = first
        plan = self.plan(world, choices)
        asked = sum(plan.gpus.values())
        plan = plan._replace(free_at=[times[:asked] for times in plan.free_at])
        return self.described(world, choices, choices.index(first), plan)

    def described(
        self, world: PlainWorld, choices: list[Choice], planned: int, plan: Planned
    ) -> Choices:
        state = State(self, world, plan, len(choices))
        drained = [self.drained(world, choice, plan, state.tau) for choice in choices]
        costs = [cost for cost, _ in drained]
        features = []
        for i, (choice, (cost, busy)) in enumerate(zip(choices, drained, strict=True)):
            x = dict.fromkeys(PLAIN, 0.0) | state.shared
            x |= state.pair(choice) if choice else {"wait": 1.0}
            x["planned"] = float(i == planned)
            x["drain"] = max(-FAR, min(FAR, (cost - costs[planned]) / state.tau))
            x["drain_log"] = state.squeezed(cost - costs[planned])
            x["drain_regret"] = state.squeezed(cost - min(costs))
            x["drain_busy"] = state.squeezed(busy - drained[planned][1])
            x["drain_wait"] = state.squeezed(costs[0] - costs[planned])
            x["drain_mean"] = state.squeezed(costs[planned] / len(plan.jobs))
            features.append(x)
        return Choices(choices, planned, state.tau, costs, features)

    def drained(
        self, world: PlainWorld, choice: Choice, plan: Planned, tau: float
    ) -> tuple[float, float]:
        """Drain cost of a choice, and the sum over GPUs of the time until they are free."""
        free_at, others, at, seconds = [list(t) for t in plan.free_at], plan.jobs, world.now, 0.0
        if choice is None:
            at = min((world.expected_end(run) for run in world.running), default=inf)
            at = min(at, world.now + FAR * tau)
            free_at = [[max(time, at) for time in times] for times in free_at]
        else:
            seconds = plan.p[choice] * self.span(world, choice)
            self.hold(plan, world.now, free_at, choice, world.now + seconds)
            others = [job for job in others if job != choice.job]
        picks = self.picks(plan, at, free_at, others)
        cost = seconds + sum(pick.end - world.now for pick in picks.values())
        return cost, sum(time - world.now for times in free_at for time in times)

    def picks(
        self, plan: Planned, at: float, free_at: list[list[float]], jobs: list[int]
    ) -> dict[int, Pick]:
        """Min-Min's plan of these jobs; updates free_at."""

        def ready(pair: Pair) -> float:
            free = at if pair in plan.beside else free_at[pair.pool][plan.gpus[pair.job] - 1]
            return max(free, plan.one_node.get(pair, free))

        found: dict[int, Pick] = {}
        pairs = [pair for pair in plan.p if pair.job in jobs]
        while pairs:
            pair = min(pairs, key=lambda pair: ready(pair) + plan.p[pair])
            end = ready(pair) + plan.p[pair]
            found[pair.job] = Pick(pair.pool, ready(pair), end, len(found))
            self.hold(plan, at, free_at, pair, end)
            pairs = [other for other in pairs if other.job != pair.job]
        return found


class State:
    """Features of one state, and of the pairs in it."""

    def __init__(self, policy: Learned, world: PlainWorld, plan: Planned, choices: int) -> None:
        self.policy, self.world, self.plan = policy, world, plan
        self.fastest = {
            job: min(seconds for pair, seconds in plan.p.items() if pair.job == job)
            for job in plan.jobs
        }
        lengths = [*self.fastest.values(), *(run.expected - run.start for run in world.running)]
        self.tau = exp(sum(log(max(length, MIN_SECONDS)) for length in lengths) / len(lengths))
        self.work, self.next = self.pressure()
        now = plan.now
        self.picks = policy.picks(plan, now, [list(t) for t in plan.free_at], plan.jobs)
        up = sum(len(pool.up()) for pool in world.pools)
        self.up = up
        self.free = sum(pool.free() for pool in world.pools)
        self.queue = self.waiting_work()
        overdue = [run.expected <= now for run in world.running]
        shares = [
            (now - run.start) / max(run.expected - run.start, MIN_SECONDS) for run in world.running
        ]
        over = [min(max(share, 1), FAR) for share, o in zip(shares, overdue, strict=True) if o]
        soon = sum(pick.start <= now for pick in self.picks.values())
        self.shared = {
            "pressure": self.squeezed(sum(self.work) / up),
            "next": self.squeezed(min(self.next) - now),
            "waiting": log(1 + len(world.waiting)),
            "free": self.free / up,
            "choices": log(choices),
            "asked": log(1 + sum(plan.gpus.values()) / up),
            "widest": log2(max(plan.gpus.values())),
            "overdue": sum(overdue) / max(len(overdue), 1),
            "progress": sum(min(share, 2) for share in shares) / max(len(shares), 1),
            "overdue_by": sum(log(share) for share in over) / max(len(over), 1),
            "gpus_up": log2(up),
            "gpus_free": log2(1 + self.free),
            "plan_now": log(1 + soon),
            "queue": self.squeezed(sum(self.queue) / up),
            **self.recent(up),
        }

    def recent(self, up: int) -> Features:
        """Features of the last arrivals; none if there are too few."""
        world, known = self.world, range(self.world.arrived)[-RECENT:]
        span = world.now - world.jobs[known[0]].arrival
        if world.arrived < MIN_RECENT or span <= 0:
            return {}
        models = {pool.model for pool in world.pools}
        fastest = [min(world.est[j][m] for m in models) for j in known]
        gpus = [world.jobs[j].gpus * world.jobs[j].share / 1000 for j in known]
        work = sum(seconds * n for seconds, n in zip(fastest, gpus, strict=True))
        logs = [log(max(seconds, MIN_SECONDS) / self.tau) for seconds in fastest]
        scale = sum(logs) / len(known)
        spread = sum(x * x for x in logs) / len(known) - scale**2
        return {
            "recent_load": max(-5.0, min(5.0, log(max(work, MIN_SECONDS) / (span * up)))),
            "recent_gap": self.squeezed(span / len(known)),
            "recent_scale": max(-5.0, min(5.0, scale)),
            "recent_spread": min(max(spread, 0) ** 0.5, 5.0),
        }

    def pressure(self) -> tuple[list[float], list[float]]:
        """GPU-seconds of running and waiting work by pool, and the next expected end there."""
        world, plan = self.world, self.plan
        work, soonest = [0.0] * len(world.pools), [inf] * len(world.pools)
        for job, seconds in self.fastest.items():
            pool = next(k for k in range(len(work)) if plan.p.get(Pair(job, k)) == seconds)
            work[pool] += seconds * plan.gpus[job]
        for run in world.running:
            end = world.expected_end(run)
            work[run.pool] += (end - world.now) * world.jobs[run.job].gpus
            soonest[run.pool] = min(soonest[run.pool], end)
        return work, soonest

    def waiting_work(self) -> list[float]:
        """GPU-seconds of all waiting jobs by pool, each job on the pool that is fastest for it."""
        work = [0.0] * len(self.world.pools)
        for job in self.world.waiting:
            pairs = [pair for pair in self.plan.p if pair.job == job]
            if pairs:
                best = min(pairs, key=lambda pair: (self.plan.p[pair], pair.pool))
                work[best.pool] += self.plan.p[best] * self.world.jobs[job].gpus
        return work

    def squeezed(self, seconds: float) -> float:
        times = max(-FAR, min(FAR, seconds / self.tau))
        return copysign(log(1 + abs(times)), times)

    def pair(self, pair: Pair) -> Features:
        world, plan, now = self.world, self.plan, self.world.now
        plain, pick, fastest = plan.p[pair], self.picks[pair.job], self.fastest[pair.job]
        seconds = plain * self.policy.span(world, pair)
        job, gpus, pool = world.jobs[pair.job], plan.gpus[pair.job], world.pools[pair.pool]
        up = len(pool.up())
        return {
            "seconds": self.squeezed(seconds),
            "slowdown": log(max(seconds, MIN_SECONDS) / max(fastest, MIN_SECONDS)),
            "is_fastest": float(plain == fastest),
            "elsewhere": self.squeezed(self.elsewhere(pair) - now - seconds),
            "plan_end": self.squeezed(pick.end - now),
            "plan_gain": self.squeezed(pick.end - now - seconds),
            "plan_start": self.squeezed(pick.start - now),
            "plan_rank": pick.rank / len(plan.jobs),
            "plan_here": float(pick.pool == pair.pool),
            "over_shortest": self.squeezed(seconds - min(self.fastest.values())),
            "gpus_log": log2(gpus),
            "gpus_of_pool": gpus / up,
            "gpus_of_free": gpus / max(self.free, 1),
            "left_free": (pool.free() - gpus) / up,
            "area": self.squeezed(seconds * gpus),
            "spans": self.policy.span(world, pair) - 1 if plain > 0 else 0.0,
            "waited": self.squeezed(now - job.arrival),
            "priority": self.policy.priority[pair.job],
            "pool_pressure": self.squeezed(self.work[pair.pool] / up),
            "pool_next": self.squeezed(self.next[pair.pool] - now),
            "pool_queue": self.squeezed(self.queue[pair.pool] / up),
            "may_use": sum(
                len(other.up())
                for k, other in enumerate(world.pools)
                if Pair(pair.job, k) in plan.p
            )
            / self.up,
            **self.rivals(pair),
        }

    def elsewhere(self, pair: Pair) -> float:
        """Expected end of the job on the best other pool if no other job started."""
        plan, ends = self.plan, [inf]
        for other, seconds in plan.p.items():
            if other.job == pair.job and other.pool != pair.pool:
                ready = plan.free_at[other.pool][plan.gpus[other.job] - 1]
                ready = max(ready, plan.one_node.get(other, ready))
                ends.append((plan.now if other in plan.beside else ready) + seconds)
        return min(ends)

    def rivals(self, pair: Pair) -> Features:
        plan, free = self.plan, self.world.pools[pair.pool].free()
        others = {
            job: plan.p[Pair(job, pair.pool)]
            for job in plan.jobs
            if job != pair.job and Pair(job, pair.pool) in plan.p
        }
        left = free - plan.gpus[pair.job]
        blocked = [others[job] for job in others if left < plan.gpus[job] <= free]
        speeds = [self.fastest[job] / max(here, MIN_SECONDS) for job, here in others.items()]
        return {
            "blocked": log(1 + len(blocked)),
            "blocked_seconds": self.squeezed(sum(blocked)),
            "rivals": len(others) / len(plan.jobs),
            "rival_speed": sum(speeds) / max(len(speeds), 1),
        }


class Audit:
    """Replays decisions recorded in the kernel, and checks each against the plain policy.

    If two predictions differ only by rounding, either choice is correct.
    """

    def __init__(self, trace: list[list[Decision]], plain: Learned) -> None:
        self.trace, self.plain = iter(trace), plain

    def decide(self, world: PlainWorld) -> list[Decision]:
        answer = next(self.trace)
        seen = self.plain.look(world)
        if seen is None:
            assert answer == []
            return answer
        costs = self.plain.costs(world, seen)
        taken = Pair(answer[0].job, answer[0].pool) if answer else None
        assert taken in seen.choices, f"{taken} at {world.now} is no choice"
        least = min(costs.values())
        best = {i for i, cost in costs.items() if cost <= least + TIE * (1 + abs(least))}
        if 0 in best and self.plain.is_too_long(world, seen):
            best = best - {0} | {1}
        assert seen.choices.index(taken) in best, f"{taken} at {world.now} is not the best"
        return answer


NET = random_net(1)
MAKERS: dict[str, Callable[[Case, int], Policy]] = {"adlro": lambda case, seed: Learned(case, NET)}
