"""Who may start where, compiled: quotas and ageing make the mask. Rules: docs/simulator.md.

The mask follows from what waits, what runs and the rules alone: there is nothing to keep between
calls. Dimensions as in model/state.py; [H] is a quota, and GPUs are counted in thousandths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.state import WHOLE, Counts, Floats, Mask, Records, Row

_CAPPED, _BEYOND, _WITHIN = range(3)  # how a job stands to a quota on a pool
_NEARLY = 1e-9  # of what a holder is entitled to


class _Use(NamedTuple):
    """What the holders of quotas use now."""

    worth: Floats  # [H]
    runs: Counts  # [H]
    of_model: Counts  # [H, M] thousandths of GPUs


@njit
def has_rules(quotas: Records, ageing: Floats) -> bool:
    """False when the mask is `allowed`, as it is without any rules."""
    return len(quotas) > 0 or len(ageing) > 0


@njit_allocating
def _use(
    w: Row,
    running: Records,
    pools: Records,
    jobs: Records,
    holders: Counts,
    quotas: Records,
    caps: Counts,
) -> _Use:
    """Worth is added up pool by pool, so that the order of the runs cannot change a digit."""
    of_pool = np.zeros((len(quotas), len(pools)), np.int64)
    use = _Use(np.zeros(len(quotas)), np.zeros(len(quotas), np.int64), np.zeros_like(caps))
    for r in range(w.running):
        j, p = running[r].job, running[r].pool
        for h in holders[j]:
            if h >= 0:
                of_pool[h, p] += jobs[j].gpus * jobs[j].share
                use.runs[h] += 1
    for h in range(len(quotas)):
        for p in range(len(pools)):
            use.worth[h] += of_pool[h, p] / WHOLE * pools[p].worth
            use.of_model[h, pools[p].model] += of_pool[h, p]
    return use


@njit
def _standing(h: int, job: Row, pool: Row, use: _Use, quotas: Records, caps: Counts) -> int:
    """How a job that would start on a pool stands to one quota that it is under."""
    size, cap = job.gpus * job.share, caps[h, pool.model]
    if cap >= 0 and use.of_model[h, pool.model] + size > cap * WHOLE:
        return _CAPPED
    after = use.worth[h] + size / WHOLE * pool.worth
    if use.runs[h] == 0 or after <= quotas[h].worth * (1 + _NEARLY):
        return _WITHIN
    return _BEYOND


@njit
def _may_claim(
    job: Row, pool: Row, own: Counts, use: _Use, quotas: Records, caps: Counts
) -> bool:
    """True when a waiting job is entitled to a pool by its share; own [2] are its quotas."""
    shared = False
    for h in own:
        if h >= 0:
            if _standing(h, job, pool, use, quotas, caps) != _WITHIN:
                return False
            shared = shared or quotas[h].worth < np.inf
    return shared and pool.gpus >= job.gpus


@njit_allocating
def _by_quotas(
    w: Row,
    queue: Records,
    mask: Mask,
    running: Records,
    pools: Records,
    jobs: Records,
    holders: Counts,
    quotas: Records,
    caps: Counts,
) -> None:
    """Close what the quotas close; mask [Q, P] comes as `allowed`."""
    use = _use(w, running, pools, jobs, holders, quotas, caps)
    claims = np.zeros(len(pools), np.int64)  # jobs that wait for what is theirs
    own_claims = np.zeros((len(quotas), len(pools)), np.int64)
    for q in range(len(queue)):
        job, own = jobs[queue[q].job], holders[queue[q].job]
        for p in range(len(pools)):
            if mask[q, p] and _may_claim(job, pools[p], own, use, quotas, caps):
                claims[p] += 1
                for h in own:
                    if h >= 0:
                        own_claims[h, p] += 1
    for q in range(len(queue)):
        job = jobs[queue[q].job]
        for h in holders[queue[q].job]:
            if h < 0:
                continue
            for p in range(len(pools)):
                standing = _standing(h, job, pools[p], use, quotas, caps)
                may_borrow = quotas[h].borrows and claims[p] == own_claims[h, p]
                if standing == _CAPPED or (standing == _BEYOND and not may_borrow):
                    mask[q, p] = False


@njit_allocating
def _by_age(
    now: float,
    limit: float,
    queue: Records,
    mask: Mask,
    pools: Records,
    jobs: Records,
    est: Floats,
) -> None:
    """Let each aged job claim a pool, for itself alone against all that come later."""
    claimed = np.zeros(len(pools), np.bool_)
    for q in range(len(queue)):
        j, best, own = queue[q].job, np.inf, -1
        for p in range(len(pools)):
            mask[q, p] = mask[q, p] and not claimed[p]
            seconds = est[j, pools[p].model]
            if mask[q, p] and pools[p].gpus >= jobs[j].gpus and seconds < best:
                best, own = seconds, p
        if own >= 0 and now - queue[q].since > limit:
            mask[q] = False
            mask[q, own] = claimed[own] = True


@njit_allocating
def renew(
    first: int,
    count: int,
    w: Row,
    queue: Records,
    eligible: Mask,
    running: Records,
    pools: Records,
    jobs: Records,
    est: Floats,
    allowed: Mask,
    holders: Counts,
    quotas: Records,
    caps: Counts,
    ageing: Floats,
) -> None:
    """Bring the rows of the mask from place `first` of the queue on, so many, up to date."""
    if count == 0:
        return
    waiting = queue[w.head : w.head + w.waiting]
    mask = np.empty((len(waiting), len(pools)), np.bool_)
    for q in range(len(waiting)):
        mask[q] = allowed[waiting[q].job]
    if len(quotas) > 0:
        _by_quotas(w, waiting, mask, running, pools, jobs, holders, quotas, caps)
    if len(ageing) > 0:
        _by_age(w.now, ageing[0], waiting, mask, pools, jobs, est)
    eligible[first : first + count] = mask[first - w.head : first - w.head + count]


@njit_allocating
def is_over(
    decision: Row,
    w: Row,
    running: Records,
    pools: Records,
    jobs: Records,
    holders: Counts,
    quotas: Records,
    caps: Counts,
) -> bool:
    """True when a start would exceed a cap, or a share that may not borrow, by now."""
    use = _use(w, running, pools, jobs, holders, quotas, caps)
    for h in holders[decision.job]:
        if h >= 0:
            job, pool = jobs[decision.job], pools[decision.pool]
            standing = _standing(h, job, pool, use, quotas, caps)
            if standing == _CAPPED or (standing == _BEYOND and not quotas[h].borrows):
                return True
    return False
