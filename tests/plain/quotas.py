"""Random quotas and ageing limits for random cases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.model.state import WHOLE, Floats, Mask, Records


class Quota(NamedTuple):
    """Quota of an account or a user; None = no such limit."""

    account: int | None
    user: int | None
    share: float | None  # of the cluster's worth
    caps: tuple[tuple[int, int], ...]  # model, maximum number of its GPUs
    borrow: bool


def draw_quotas(
    rng: np.random.Generator, jobs: Records, allowed: Mask, pools: Records
) -> tuple[Quota, ...]:
    """Quotas of some accounts and users, in a third of the cases; caps leave each job a pool."""
    if rng.random() > 1 / 3:
        return ()
    holders = [(a, None) for a in range(2) if rng.random() < 0.7]
    holders += [(None, u) for u in range(5) if rng.random() < 0.25]
    quotas: list[Quota] = []
    for account, user in holders:
        share = float(rng.choice([0.05, 0.1, 0.25, 0.5])) if rng.random() < 0.8 else None
        gpus = {int(m): pools["gpus"][pools["model"] == m].sum() for m in set(pools["model"])}
        caps = [(m, int(rng.integers(0, most))) for m, most in gpus.items() if rng.random() < 0.3]
        quota = Quota(account, user, share, tuple(caps), bool(rng.random() < 0.6))
        if not _leave_a_pool([*quotas, quota], jobs, allowed, pools):
            quota = quota._replace(caps=())
        if quota.share is not None or quota.caps:
            quotas.append(quota)
    return tuple(quotas)


def _leave_a_pool(quotas: list[Quota], jobs: Records, allowed: Mask, pools: Records) -> bool:
    """Whether the caps leave each job a pool where it may run alone."""
    left = allowed.copy()
    for quota in quotas:
        under = (jobs["account"] == quota.account) | (jobs["user"] == quota.user)
        for model, most in quota.caps:
            too_large = under & (jobs["gpus"] * jobs["share"] > most * WHOLE)
            left[np.ix_(too_large, pools["model"] == model)] = False
    return bool(left.any(axis=1).all())


def draw_ageing(rng: np.random.Generator, seconds: Floats, whole: bool) -> float | None:
    """Ageing limit in seconds, about the length of a job; None in three cases of four."""
    if rng.random() > 1 / 4:
        return None
    limit = float(seconds.mean() * rng.choice([0.1, 0.5, 1, 2, 5]))
    return float(np.ceil(limit)) if whole else limit
