"""Maximum-weight matching of single-GPU jobs to the GPUs of pools.

The GPUs of a pool are interchangeable, so this is a transportation problem with few sinks. Jobs are
added one by one along the cheapest augmenting path (the job takes a GPU of a pool, the cheapest job
there moves to another pool or becomes unmatched), so that the matching is optimal for the jobs
added so far. Dimensions: A jobs, P pools; index P means unmatched.
"""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.state import Counts, Floats


@njit
def _refresh(p: int, worth: Floats, where: Counts, loss: Floats, mover: Counts) -> None:
    """Recompute the smallest loss of worth if one job of pool p moves to each other pool.

    Writes row p of loss [P, P + 1] and of mover [P, P + 1], the job that would move; the last
    column means that it becomes unmatched. worth [A, P] as in `match`; where [A]: pool of each job.
    """
    total = worth.shape[1]
    for q in range(total + 1):
        loss[p, q], mover[p, q] = np.inf, -1
    for a in range(len(where)):
        if where[a] == p:
            for q in range(total + 1):
                there = worth[a, q] if q < total else 0.0
                is_open = q == total or there > 0.0
                if q != p and is_open and worth[a, p] - there < loss[p, q]:
                    loss[p, q], mover[p, q] = worth[a, p] - there, a


@njit
def _leads_to(p: int, q: int, before: Counts) -> bool:
    """True when the path that ends at pool p contains pool q, so that q must not follow.

    before [P + 1]: the pool before each pool on its path, -1 = none. Rounding errors can make such
    a cycle seem profitable.
    """
    while p >= 0 and p != q:
        p = before[p]
    return p == q


@njit
def _find(a: int, worth: Floats, room: Floats, loss: Floats, cost: Floats, before: Counts) -> int:
    """Return the last pool of the cheapest augmenting path for job a; P = a job becomes unmatched.

    cost [P + 1] is filled with the cost of the cheapest path to each pool, before [P + 1] with the
    previous pool on that path (-1 = none). room [P]: free GPUs; worth and loss as in `_refresh`.
    """
    total = worth.shape[1]
    for p in range(total + 1):
        cost[p], before[p] = np.inf, -1
        if p == total:
            cost[p] = 0.0
        elif worth[a, p] > 0.0:
            cost[p] = -worth[a, p]
    for _ in range(total):
        for p in range(total):
            for q in range(total + 1):
                found = cost[p] + loss[p, q]
                if found < cost[q] and not _leads_to(p, q, before):
                    cost[q], before[q] = found, p
    end = total
    for p in range(total):
        if room[p] >= 1.0 and cost[p] < cost[end]:
            end = p
    return end


@njit_allocating
def match(worth: Floats, free: Floats) -> Counts:
    """Return the pools [A] of the matching with the largest sum of worth; -1 = unmatched.

    Args:
        worth: [A, P] weights, 0 = not allowed.
        free: [P] GPUs; rounded down to whole GPUs.
    """
    count, total = worth.shape
    room, where = np.floor(free + 1e-9), np.full(count, -1)
    loss, mover = np.full((total, total + 1), np.inf), np.full((total, total + 1), -1)
    cost, before = np.empty(total + 1), np.empty(total + 1, np.int64)
    for a in range(count):
        p = _find(a, worth, room, loss, cost, before)
        if p < total:
            room[p] -= 1.0
        while before[p] >= 0:
            where[mover[before[p], p]] = p if p < total else -1
            if p < total:
                _refresh(p, worth, where, loss, mover)
            p = before[p]
        if p < total:
            where[a] = p
            _refresh(p, worth, where, loss, mover)
    return where
