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
def _is_within(job: Row, pool: Row, own: Counts, use: _Use, quotas: Records, caps: Counts) -> bool:
    """True when all quotas of a job, own [2], have room for it on a pool."""
    for h in own:  # noqa: SIM110  compiled code knows no generators
        if h >= 0 and _standing(h, job, pool, use, quotas, caps) != _WITHIN:
            return False
    return True


@njit
def _has_share(own: Counts, quotas: Records) -> bool:
    """True when one of a job's quotas, own [2], entitles it to a share."""
    for h in own:  # noqa: SIM110  compiled code knows no generators
        if h >= 0 and quotas[h].worth < np.inf:
            return True
    return False


@njit_allocating
def _by_quotas(
    w: Row,
    queue: Records,
    mask: Mask,
    in_the_way: Mask,
    running: Records,
    pools: Records,
    jobs: Records,
    allowed: Mask,
    holders: Counts,
    quotas: Records,
    caps: Counts,
) -> None:
    """Close what the quotas close; mask [Q, P] comes as `allowed`.

    Which of its quotas, in_the_way [Q, 2], keep a job from being within anywhere is noted.
    """
    use = _use(w, running, pools, jobs, holders, quotas, caps)
    claims = np.zeros(len(pools), np.int64)  # jobs that wait for what is theirs
    own_claims = np.zeros((len(quotas), len(pools)), np.int64)
    for q in range(len(queue)):
        job, own = jobs[queue[q].job], holders[queue[q].job]
        in_the_way[q, 0] = in_the_way[q, 1] = True
        for p in range(len(pools)):
            if mask[q, p] and _is_within(job, pools[p], own, use, quotas, caps):
                in_the_way[q, 0] = in_the_way[q, 1] = False
                if _has_share(own, quotas) and pools[p].gpus >= job.gpus:
                    claims[p] += 1
                    for h in own:
                        if h >= 0:
                            own_claims[h, p] += 1
    for q in range(len(queue)):
        j = queue[q].job
        for i in range(2):
            h, closes = holders[j, i], False
            for p in range(len(pools)):
                if h < 0 or not allowed[j, p]:
                    continue
                standing = _standing(h, jobs[j], pools[p], use, quotas, caps)
                closes |= standing != _WITHIN
                may_borrow = quotas[h].borrows and claims[p] == own_claims[h, p]
                if standing == _CAPPED or (standing == _BEYOND and not may_borrow):
                    mask[q, p] = False
            in_the_way[q, i] &= closes


@njit
def _close(mask: Mask, q: int) -> None:
    """Keep a job from every pool; a loop, for to assign a whole row takes seconds to compile."""
    for p in range(mask.shape[1]):
        mask[q, p] = False


@njit_allocating
def _by_age(
    now: float,
    limit: float,
    queue: Records,
    mask: Mask,
    in_the_way: Mask,
    pools: Records,
    jobs: Records,
    est: Floats,
    holders: Counts,
    quotas: Records,
) -> None:
    """Let the first aged job claim a pool, and those without a place keep theirs from others."""
    claimed, held_back = -1, np.zeros(len(quotas), np.bool_)
    for q in range(len(queue)):
        j, best, own = queue[q].job, np.inf, -1
        for h in holders[j]:
            if h >= 0 and held_back[h]:
                _close(mask, q)
        if claimed >= 0:
            mask[q, claimed] = False
        if not now - queue[q].since > limit:
            continue
        for i in range(2):
            if in_the_way[q, i]:
                held_back[holders[j, i]] = True
        for p in range(len(pools)):
            seconds = est[j, pools[p].model]
            if mask[q, p] and pools[p].gpus >= jobs[j].gpus and seconds < best:
                best, own = seconds, p
        if own >= 0 and claimed < 0:
            _close(mask, q)
            mask[q, own] = True
            claimed = own


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
    in_the_way = np.zeros((len(waiting), 2), np.bool_)
    for q in range(len(waiting)):
        for p in range(len(pools)):
            mask[q, p] = allowed[waiting[q].job, p]
    if len(quotas) > 0:
        _by_quotas(
            w, waiting, mask, in_the_way, running, pools, jobs, allowed, holders, quotas, caps
        )
    if len(ageing) > 0:
        _by_age(w.now, ageing[0], waiting, mask, in_the_way, pools, jobs, est, holders, quotas)
    for q in range(first, first + count):
        for p in range(len(pools)):
            eligible[q, p] = mask[q - w.head, p]


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
