"""The eligibility mask: on which pools each waiting job may start, by quotas and ageing.

The mask is computed from queue, runs and rules alone; nothing is remembered between calls. Rules:
docs/simulator.md. Dimensions as in model/state.py; GPUs are counted in thousandths. A holder is an
account or a user with a quota.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.feasibility import large_enough
from adlro.model.state import WHOLE, Counts, Floats, Mask, Records, Row
from adlro.model.view import View

_CAPPED, _BEYOND, _WITHIN = range(3)  # status of a job under a quota on a pool
_TOLERANCE = 1e-9  # relative to the entitlement of a holder


class Rules(NamedTuple):
    """Eligibility rules of a world; the first two fields are indexed by row of the job table."""

    allowed: Mask  # [rows, P] pools where each job may run at all
    holders: Counts  # [rows, 2] quota of the job's account and of its user, -1 = none
    quotas: Records  # [H] QUOTA
    caps: Counts  # [H, M] maximum number of GPUs of a model in use by a holder, -1 = no limit
    ageing: Floats  # [1] seconds of waiting after which a job claims a pool; [0] = no ageing


class _Usage(NamedTuple):
    """What the running jobs of each quota holder use now."""

    worth: Floats  # [H] worth of the GPUs in use
    runs: Counts  # [H] number of running jobs
    of_model: Counts  # [H, M] thousandths of GPUs in use


@njit
def has_rules(quotas: Records, ageing: Floats) -> bool:
    """True when there are quotas or ageing; without them the mask equals `allowed`."""
    return len(quotas) > 0 or len(ageing) > 0


@njit_allocating
def _usage(view: View, rules: Rules) -> _Usage:
    """Compute what the running jobs of each quota holder use.

    Worth is summed pool by pool, so that rounding does not depend on the order of the runs.
    """
    jobs, pools, holders, count = view.jobs, view.pools, rules.holders, len(rules.quotas)
    of_pool = np.zeros((count, len(pools)), np.int64)
    usage = _Usage(np.zeros(count), np.zeros(count, np.int64), np.zeros_like(rules.caps))
    for run in view.running:
        j, p = run.job, run.pool
        for h in holders[j]:
            if h >= 0:
                of_pool[h, p] += jobs[j].gpus * jobs[j].share
                usage.runs[h] += 1
    for h in range(count):
        for p in range(len(pools)):
            usage.worth[h] += of_pool[h, p] / WHOLE * pools[p].worth
            usage.of_model[h, pools[p].model] += of_pool[h, p]
    return usage


@njit
def _quota_status(h: int, job: Row, pool: Row, usage: _Usage, quotas: Records, caps: Counts) -> int:
    """Status of a job under quota h if it started on a pool now.

    _CAPPED: the holder would use more GPUs of this model than its cap. _BEYOND: it has running jobs
    and would use more than its share. _WITHIN: neither.
    """
    size, cap = job.gpus * job.share, caps[h, pool.model]
    if cap >= 0 and usage.of_model[h, pool.model] + size > cap * WHOLE:
        return _CAPPED
    after = usage.worth[h] + size / WHOLE * pool.worth
    if usage.runs[h] == 0 or after <= quotas[h].worth * (1 + _TOLERANCE):
        return _WITHIN
    return _BEYOND


@njit
def _is_within(
    job: Row, pool: Row, job_holders: Counts, usage: _Usage, quotas: Records, caps: Counts
) -> bool:
    """True when a job that starts on a pool stays within all its quotas.

    job_holders [2]: quotas of the job's account and of its user, -1 = none.
    """
    for h in job_holders:
        if h >= 0 and _quota_status(h, job, pool, usage, quotas, caps) != _WITHIN:
            return False
    return True


@njit
def _has_share(job_holders: Counts, quotas: Records) -> bool:
    """True when one of a job's quotas is limited to a share of the cluster.

    job_holders [2]: quotas of the job's account and of its user, -1 = none.
    """
    for h in job_holders:  # noqa: SIM110  numba compiles no generators
        if h >= 0 and quotas[h].worth < np.inf:
            return True
    return False


@njit
def _count_claims(
    mask: Mask, blocking: Mask, claims: Counts, usage: _Usage, view: View, rules: Rules
) -> None:
    """Count, by quota and pool, the waiting jobs that may start there within all their quotas.

    claims [H + 1, P]: row h counts the jobs under quota h, the last row all jobs; only jobs with a
    share, and only pools with enough GPUs up. blocking [Q, 2] is set to True for a job that is
    within all its quotas on no pool, else to False.
    """
    queue, jobs, pools, quotas = view.queue, view.jobs, view.pools, rules.quotas
    for q in range(len(queue)):
        job, job_holders = jobs[queue[q].job], rules.holders[queue[q].job]
        blocking[q, 0] = blocking[q, 1] = True
        for p in range(len(pools)):
            if mask[q, p] and _is_within(job, pools[p], job_holders, usage, quotas, rules.caps):
                blocking[q, 0] = blocking[q, 1] = False
                if _has_share(job_holders, quotas) and large_enough(job, pools[p]):
                    claims[len(quotas), p] += 1
                    for h in job_holders:
                        if h >= 0:
                            claims[h, p] += 1


@njit_allocating
def _apply_quotas(mask: Mask, blocking: Mask, view: View, rules: Rules) -> None:
    """Clear the entries of mask [Q, P] that the quotas forbid; on entry it equals `allowed`.

    blocking [Q, 2] is set to True for each quota that a job exceeds, provided that the job is
    within all its quotas on no pool.
    """
    queue, jobs, pools, quotas = view.queue, view.jobs, view.pools, rules.quotas
    usage = _usage(view, rules)
    claims = np.zeros((len(quotas) + 1, len(pools)), np.int64)
    _count_claims(mask, blocking, claims, usage, view, rules)
    for q in range(len(queue)):
        j = queue[q].job
        for i in range(2):
            h, exceeded = rules.holders[j, i], False
            for p in range(len(pools)):
                if h < 0 or not rules.allowed[j, p]:
                    continue
                status = _quota_status(h, jobs[j], pools[p], usage, quotas, rules.caps)
                exceeded |= status != _WITHIN
                may_borrow = quotas[h].borrows and claims[len(quotas), p] == claims[h, p]
                if status == _CAPPED or (status == _BEYOND and not may_borrow):
                    mask[q, p] = False
            blocking[q, i] &= exceeded


@njit
def _close_all(mask: Mask, q: int) -> None:
    """Clear row q of the mask: the job may start nowhere.

    In a loop, as assigning a whole row takes seconds to compile.
    """
    for p in range(mask.shape[1]):
        mask[q, p] = False


@njit
def _fastest_open(q: int, mask: Mask, view: View) -> int:
    """Pool with the smallest estimate for the job at queue position q; -1 if none.

    Only pools that the mask leaves open to it and that have enough GPUs up count.
    """
    j, best, fastest = view.queue[q].job, np.inf, -1
    for p in range(len(view.pools)):
        seconds = view.est[j, view.pools[p].model]
        if mask[q, p] and large_enough(view.jobs[j], view.pools[p]) and seconds < best:
            best, fastest = seconds, p
    return fastest


@njit_allocating
def _apply_ageing(mask: Mask, blocking: Mask, view: View, rules: Rules) -> None:
    """Clear the entries of mask [Q, P] that ageing forbids.

    A job that has waited longer than the limit is aged. The first aged job with an open pool claims
    the fastest one: this job may start only there, and later jobs may not start there. If an aged
    job is blocked by its own quotas, later jobs under these quotas may start nowhere.
    """
    queue, holders, limit = view.queue, rules.holders, rules.ageing[0]
    claimed, is_blocked = -1, np.zeros(len(rules.quotas), np.bool_)
    for q in range(len(queue)):
        j = queue[q].job
        for h in holders[j]:
            if h >= 0 and is_blocked[h]:
                _close_all(mask, q)
        if claimed >= 0:
            mask[q, claimed] = False
        if not view.now - queue[q].since > limit:
            continue
        for i in range(2):
            if blocking[q, i]:
                is_blocked[holders[j, i]] = True
        fastest = _fastest_open(q, mask, view)
        if fastest >= 0 and claimed < 0:
            _close_all(mask, q)
            mask[q, fastest] = True
            claimed = fastest


@njit_allocating
def refresh_mask(first: int, count: int, view: View, rules: Rules) -> None:
    """Recompute the mask, and write rows `first` to first + count - 1 of view.eligible."""
    if count == 0:
        return
    queue, pools = view.queue, view.pools
    mask = np.empty((len(queue), len(pools)), np.bool_)
    blocking = np.zeros((len(queue), 2), np.bool_)
    for q in range(len(queue)):
        for p in range(len(pools)):
            mask[q, p] = rules.allowed[queue[q].job, p]
    if len(rules.quotas) > 0:
        _apply_quotas(mask, blocking, view, rules)
    if len(rules.ageing) > 0:
        _apply_ageing(mask, blocking, view, rules)
    for q in range(first, first + count):
        for p in range(len(pools)):
            view.eligible[q, p] = mask[q, p]


@njit_allocating
def exceeds_quota(decision: Row, view: View, rules: Rules) -> bool:
    """True when a start would now exceed a cap, or the share of a holder that may not borrow."""
    usage = _usage(view, rules)
    job, pool = view.jobs[decision.job], view.pools[decision.pool]
    for h in rules.holders[decision.job]:
        if h >= 0:
            status = _quota_status(h, job, pool, usage, rules.quotas, rules.caps)
            if status == _CAPPED or (status == _BEYOND and not rules.quotas[h].borrows):
                return True
    return False
