"""Single jobs matched with the GPUs of pools so that the sum of their worth is largest.

Not a policy. The GPUs of a pool are alike, so this is a transport problem with few sinks: jobs come
one by one, each by the cheapest chain of moves (it takes a place in a pool, whose cheapest job goes
on to another pool, or out), which keeps the sum the largest of all for those who have come.
Dimensions: A jobs, P pools; place P is outside.
"""

import numpy as np

from adlro.compiled import njit, njit_allocating


@njit
def _refresh(p, worth, where, loss, who):
    """The least that is lost when one job of pool p goes elsewhere (loss [P, P + 1]), and whose."""
    total = worth.shape[1]
    for q in range(total + 1):
        loss[p, q], who[p, q] = np.inf, -1
    for a in range(len(where)):
        if where[a] == p:
            for q in range(total + 1):
                there = worth[a, q] if q < total else 0.0
                is_open = q == total or there > 0.0
                if q != p and is_open and worth[a, p] - there < loss[p, q]:
                    loss[p, q], who[p, q] = worth[a, p] - there, a


@njit
def _leads_to(p, q, before):
    """True when the chain to p passes q: by rounding it can seem to pay to close a circle."""
    while p >= 0 and p != q:
        p = before[p]
    return p == q


@njit
def _find(a, worth, room, loss, cost, before):
    """The end of the cheapest chain that makes place for job a; cost, before [P + 1] trace it."""
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
def match(worth, free):
    """Pools [A] of the matching with the largest sum; -1 = none.

    Args:
        worth: [A, P], 0 = cannot.
        free: [P] GPUs; only whole ones count.
    """
    count, total = worth.shape
    room, where = np.floor(free + 1e-9), np.full(count, -1)
    loss, who = np.full((total, total + 1), np.inf), np.full((total, total + 1), -1)
    cost, before = np.empty(total + 1), np.empty(total + 1, np.int64)
    for a in range(count):
        p = _find(a, worth, room, loss, cost, before)
        if p < total:
            room[p] -= 1.0
        while before[p] >= 0:
            where[who[before[p], p]] = p if p < total else -1
            if p < total:
                _refresh(p, worth, where, loss, who)
            p = before[p]
        if p < total:
            where[a] = p
            _refresh(p, worth, where, loss, who)
    return where
