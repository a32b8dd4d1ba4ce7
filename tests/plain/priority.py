"""Plain versions of the policies that rank the waiting jobs by a score.

Each starts the best job that fits, on its fastest feasible pool. `MAKERS` maps names to policies.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2, log10

from tests.plain.cases import Case
from tests.plain.policies import p
from tests.plain.records import Decision
from tests.plain.simulator import PlainWorld, Policy

DAY = 86_400.0


def shortest(world: PlainWorld, job: int) -> float:
    """Estimated seconds that the job still needs on the best of its eligible pools, never 0."""
    return max(min(p(world, job, pool) for pool in world.eligible(job)), 1e-9)


def wait(world: PlainWorld, job: int) -> float:
    """Seconds since the arrival of the job."""
    return world.now - world.jobs[job].arrival


def n(world: PlainWorld, job: int) -> float:
    """Number of GPUs of the job; a slice counts as its share."""
    return world.jobs[job].gpus * world.jobs[job].share / 1000


def f1(world: PlainWorld, job: int) -> float:
    submit = world.jobs[job].arrival
    return log10(shortest(world, job)) * n(world, job) + 870 * log10(submit + 1)


def wfp3(world: PlainWorld, job: int) -> float:
    ratio = wait(world, job) / shortest(world, job)
    return -(ratio * ratio * ratio * n(world, job))


def unicep(world: PlainWorld, job: int) -> float:
    return -(wait(world, job) / (max(1, log2(world.jobs[job].gpus)) * shortest(world, job)))


def qssf(world: PlainWorld, job: int) -> float:
    return shortest(world, job) * n(world, job)


class Ranked:
    """The startable job with the smallest score; on ties Python's `min` returns the oldest."""

    def __init__(self, score: Callable[[PlainWorld, int], float]) -> None:
        self.score = score

    def decide(self, world: PlainWorld) -> list[Decision]:
        startable = [job for job in world.waiting if self.feasible(world, job)]
        if not startable:
            return []
        job = min(startable, key=lambda job: self.score(world, job))
        pool = min(self.feasible(world, job), key=lambda pool: p(world, job, pool))
        return [Decision("start", job, pool)]

    def feasible(self, world: PlainWorld, job: int) -> list[int]:
        return [pool for pool in world.eligible(job) if world.fits(job, pool)]


class Multifactor:
    """Slurm's multifactor priority of a job, negated so that the smallest is best."""

    def __init__(self, case: Case) -> None:
        self.user: list[int] = case.jobs["user"].tolist()
        self.priority: list[float] = case.jobs["priority"].tolist()

    def __call__(self, world: PlainWorld, job: int) -> float:
        age = min(1, wait(world, job) / (7 * DAY))
        size = n(world, job) / sum(len(node.gpus) for node in world.cluster.nodes)
        factors = [age, size, self.priority[job], self.fair(world, self.user[job])]
        return -sum(1000 * factor for factor in factors)

    def fair(self, world: PlainWorld, user: int) -> float:
        """Fair-share factor 2^(-usage / share), with equal shares for all active users."""
        total = sum(self.served(world, job) for job in world.runs)
        used = sum(self.served(world, job) for job in world.runs if self.user[job] == user)
        users = {self.user[job] for job in [*world.waiting, *world.runs]}
        return 2.0 ** (-used / total * len(users)) if total > 0 else 1.0

    def served(self, world: PlainWorld, job: int) -> float:
        """GPU-seconds that a running job has received, in this and earlier runs."""
        spans = [span for span in world.result.spans if span.job == job]
        before = sum((span.end - span.start) * span.share / 1000 for span in spans)
        return before + (world.now - world.runs[job].start) * n(world, job)


MAKERS: dict[str, Callable[[Case, int], Policy]] = {
    "f1": lambda case, seed: Ranked(f1),
    "wfp3": lambda case, seed: Ranked(wfp3),
    "unicep": lambda case, seed: Ranked(unicep),
    "qssf": lambda case, seed: Ranked(qssf),
    "multifactor": lambda case, seed: Ranked(Multifactor(case)),
}
