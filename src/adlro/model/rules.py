"""Who may start where: quotas and ageing make the mask. Rules: docs/simulator.md.

The mask follows from what waits, what runs and the rules alone: there is nothing to keep between
calls. Dimensions as in model/state.py; [H] is a quota, and GPUs are counted in thousandths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.state import WHOLE, Counts, Floats, Mask, Records, Row
from adlro.model.view import View

_CAPPED, _BEYOND, _WITHIN = range(3)  # how a job stands to a quota on a pool
_NEARLY = 1e-9  # of what a holder is entitled to


class Rules(NamedTuple):
    """What a world holds every policy to; the first two by row of the table of jobs."""

    allowed: Mask  # [rows, P] where each job may run at all
    holders: Counts  # [rows, 2] quota of the job's account and that of its user, -1 = none
    quotas: Records  # [H] QUOTA
    caps: Counts  # [H, M] most GPUs of a model that a holder may use at once, -1 = any number
    ageing: Floats  # [1] seconds of waiting after which a job claims a pool; [0] = no ageing


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
def _use(view: View, rules: Rules) -> _Use:
    """Worth is added up pool by pool, so that the order of the runs cannot change a digit."""
    jobs, pools, holders, count = view.jobs, view.pools, rules.holders, len(rules.quotas)
    of_pool = np.zeros((count, len(pools)), np.int64)
    use = _Use(np.zeros(count), np.zeros(count, np.int64), np.zeros_like(rules.caps))
    for run in view.running:
        j, p = run.job, run.pool
        for h in holders[j]:
            if h >= 0:
                of_pool[h, p] += jobs[j].gpus * jobs[j].share
                use.runs[h] += 1
    for h in range(count):
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


@njit
def _count_claims(
    mask: Mask, in_the_way: Mask, claims: Counts, use: _Use, view: View, rules: Rules
) -> None:
    """Count who waits on each pool for what is theirs; claims [H + 1, P], the last row of all.

    Quotas are in the way, in_the_way [Q, 2], of a job that is within all of them nowhere.
    """
    queue, jobs, pools, quotas = view.queue, view.jobs, view.pools, rules.quotas
    for q in range(len(queue)):
        job, own = jobs[queue[q].job], rules.holders[queue[q].job]
        in_the_way[q, 0] = in_the_way[q, 1] = True
        for p in range(len(pools)):
            if mask[q, p] and _is_within(job, pools[p], own, use, quotas, rules.caps):
                in_the_way[q, 0] = in_the_way[q, 1] = False
                if _has_share(own, quotas) and pools[p].gpus >= job.gpus:
                    claims[len(quotas), p] += 1
                    for h in own:
                        if h >= 0:
                            claims[h, p] += 1


@njit_allocating
def _by_quotas(mask: Mask, in_the_way: Mask, view: View, rules: Rules) -> None:
    """Close what the quotas close; mask [Q, P] comes as `allowed`.

    Which of its quotas, in_the_way [Q, 2], keep a job from being within anywhere is noted.
    """
    queue, jobs, pools, quotas = view.queue, view.jobs, view.pools, rules.quotas
    use = _use(view, rules)
    claims = np.zeros((len(quotas) + 1, len(pools)), np.int64)
    _count_claims(mask, in_the_way, claims, use, view, rules)
    for q in range(len(queue)):
        j = queue[q].job
        for i in range(2):
            h, closes = rules.holders[j, i], False
            for p in range(len(pools)):
                if h < 0 or not rules.allowed[j, p]:
                    continue
                standing = _standing(h, jobs[j], pools[p], use, quotas, rules.caps)
                closes |= standing != _WITHIN
                may_borrow = quotas[h].borrows and claims[len(quotas), p] == claims[h, p]
                if standing == _CAPPED or (standing == _BEYOND and not may_borrow):
                    mask[q, p] = False
            in_the_way[q, i] &= closes


@njit
def _close(mask: Mask, q: int) -> None:
    """Keep a job from every pool; a loop, for to assign a whole row takes seconds to compile."""
    for p in range(mask.shape[1]):
        mask[q, p] = False


@njit
def _fastest_open(q: int, mask: Mask, view: View) -> int:
    """The pool of the mask with the smallest estimate and enough GPUs up, or -1."""
    j, best, own = view.queue[q].job, np.inf, -1
    for p in range(len(view.pools)):
        seconds = view.est[j, view.pools[p].model]
        if mask[q, p] and view.pools[p].gpus >= view.jobs[j].gpus and seconds < best:
            best, own = seconds, p
    return own


@njit_allocating
def _by_age(mask: Mask, in_the_way: Mask, view: View, rules: Rules) -> None:
    """Let the first aged job claim a pool, and those without a place keep theirs from others."""
    queue, holders, limit = view.queue, rules.holders, rules.ageing[0]
    claimed, held_back = -1, np.zeros(len(rules.quotas), np.bool_)
    for q in range(len(queue)):
        j = queue[q].job
        for h in holders[j]:
            if h >= 0 and held_back[h]:
                _close(mask, q)
        if claimed >= 0:
            mask[q, claimed] = False
        if not view.now - queue[q].since > limit:
            continue
        for i in range(2):
            if in_the_way[q, i]:
                held_back[holders[j, i]] = True
        own = _fastest_open(q, mask, view)
        if own >= 0 and claimed < 0:
            _close(mask, q)
            mask[q, own] = True
            claimed = own


@njit_allocating
def refresh_mask(first: int, count: int, view: View, rules: Rules) -> None:
    """Bring the rows of view.eligible from queue place `first` on, so many, up to date."""
    if count == 0:
        return
    queue, pools = view.queue, view.pools
    mask = np.empty((len(queue), len(pools)), np.bool_)
    in_the_way = np.zeros((len(queue), 2), np.bool_)
    for q in range(len(queue)):
        for p in range(len(pools)):
            mask[q, p] = rules.allowed[queue[q].job, p]
    if len(rules.quotas) > 0:
        _by_quotas(mask, in_the_way, view, rules)
    if len(rules.ageing) > 0:
        _by_age(mask, in_the_way, view, rules)
    for q in range(first, first + count):
        for p in range(len(pools)):
            view.eligible[q, p] = mask[q, p]


@njit_allocating
def is_over(decision: Row, view: View, rules: Rules) -> bool:
    """True when a start would exceed a cap, or a share that may not borrow, by now."""
    use = _use(view, rules)
    job, pool = view.jobs[decision.job], view.pools[decision.pool]
    for h in rules.holders[decision.job]:
        if h >= 0:
            standing = _standing(h, job, pool, use, rules.quotas, rules.caps)
            if standing == _CAPPED or (standing == _BEYOND and not rules.quotas[h].borrows):
                return True
    return False
