"""Eligibility of docs/simulator.md in plain Python: sets of pools, quota by quota."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tests.plain.cases import Case
from tests.plain.placement import PlainCluster
from tests.plain.quotas import Quota


class Moment(NamedTuple):
    """The state that the rules depend on: time, waiting jobs, running jobs."""

    now: float
    since: Mapping[int, float]  # start of waiting, by waiting job
    on: Mapping[int, int]  # pool, by running job


class Rules:
    """The quotas and the ageing of a case."""

    def __init__(self, case: Case, cluster: PlainCluster) -> None:
        self.cluster = cluster
        self.quotas, self.ageing = case.quotas, case.ageing
        self.est: list[list[float]] = case.est.tolist()
        self.gang: list[int] = case.jobs["gpus"].tolist()
        self.size: list[int] = (case.jobs["gpus"] * case.jobs["share"]).tolist()
        self.allowed = [{g for g, may in enumerate(row) if may} for row in case.allowed.tolist()]
        self.worth: list[float] = case.pools["worth"].tolist()
        self.model: list[int] = case.pools["model"].tolist()
        gpus = [sum(len(node.gpus) for node in pool.nodes) for pool in cluster.pools]
        self.total = sum(n * worth for n, worth in zip(gpus, self.worth, strict=True))
        names = zip(case.jobs["account"].tolist(), case.jobs["user"].tolist(), strict=True)
        self.under = [
            [q for q in case.quotas if q.account == account or q.user == user]
            for account, user in names
        ]

    def mask(self, moment: Moment) -> dict[int, list[int]]:
        """Eligible pools of every waiting job, in rising order."""
        waiting = sorted(moment.since)
        claims = {job: self.entitled(job, moment.on) for job in waiting}
        mask = {job: self.open(job, moment.on, claims) for job in waiting}
        aged = [job for job in waiting if self.is_aged(moment.now - moment.since[job])]
        for job in aged:
            for later in waiting:
                if later > job and self.in_the_way(job, moment.on) & set(self.under[later]):
                    mask[later] = set()
        for job in aged:
            usable = sorted(mask[job] & self.large_enough(job))
            if usable:
                claim = min(usable, key=lambda pool: self.est[job][self.model[pool]])
                mask[job] = {claim}
                for later in waiting:
                    if later > job:
                        mask[later] = mask[later] - {claim}
                break
        return {job: sorted(pools) for job, pools in mask.items()}

    def is_aged(self, waited: float) -> bool:
        """Whether a job that has waited this many seconds is aged."""
        return self.ageing is not None and waited > self.ageing

    def in_the_way(self, job: int, on: Mapping[int, int]) -> set[Quota]:
        """Quotas because of which a job is within all its quotas on no pool; else none."""
        allowed = self.allowed[job]
        left = {
            q: allowed & self.within(q, job, on) & self.uncapped(q, job, on)
            for q in self.under[job]
        }
        if allowed.intersection(*left.values()):
            return set()
        return {quota for quota, pools in left.items() if pools != allowed}

    def open(self, job: int, on: Mapping[int, int], claims: dict[int, set[int]]) -> set[int]:
        """Pools where the quotas let a job start, given the pools that waiting jobs claim."""
        pools = set(self.allowed[job])
        for quota in self.under[job]:
            beyond = pools - self.within(quota, job, on)
            pools &= self.uncapped(quota, job, on)
            if not quota.borrow:
                pools -= beyond
            for other, claimed in claims.items():
                if quota not in self.under[other]:
                    pools -= beyond & claimed
        return pools

    def entitled(self, job: int, on: Mapping[int, int]) -> set[int]:
        """Pools where a waiting job is within its share, so that no other holder may borrow."""
        if all(quota.share is None for quota in self.under[job]):
            return set()
        pools = self.allowed[job] & self.large_enough(job)
        for quota in self.under[job]:
            pools = pools & self.within(quota, job, on) & self.uncapped(quota, job, on)
        return pools

    def breaks(self, job: int, pool: int, on: Mapping[int, int]) -> bool:
        """Whether a start now exceeds a cap, or a share without borrowing."""
        return any(
            pool not in self.uncapped(quota, job, on)
            or (not quota.borrow and pool not in self.within(quota, job, on))
            for quota in self.under[job]
        )

    def large_enough(self, job: int) -> set[int]:
        """Pools with enough GPUs up."""
        return {p.id for p in self.cluster.pools if len(p.up()) >= self.gang[job]}

    def uncapped(self, quota: Quota, job: int, on: Mapping[int, int]) -> set[int]:
        """Pools on whose model the job stays within the holder's cap."""
        left = {model: 1000 * most for model, most in quota.caps}
        for other, pool in on.items():
            if quota in self.under[other] and self.model[pool] in left:
                left[self.model[pool]] -= self.size[other]
        need = self.size[job]
        return {p for p, model in enumerate(self.model) if left.get(model, need) >= need}

    def within(self, quota: Quota, job: int, on: Mapping[int, int]) -> set[int]:
        """Pools where the job stays within the holder's share."""
        runs = [(other, pool) for other, pool in on.items() if quota in self.under[other]]
        everywhere = set(range(len(self.worth)))
        if quota.share is None or not runs:
            return everywhere
        use = 0.0
        for p, worth in enumerate(self.worth):
            use += sum(self.size[other] for other, pool in runs if pool == p) / 1000 * worth
        most = quota.share * self.total * (1 + 1e-9)
        return {p for p in everywhere if use + self.size[job] / 1000 * self.worth[p] <= most}
