"""The cost of a plan that may preempt: total completion time of the active jobs if no more arrive.

Jobs that run after the plan run to their ends. The others follow by rising time left, each on the
pool where it completes first. A job that restores a checkpoint takes longer by its restart cost.
Only GPUs are counted, and slices hold none. Dimensions as in active_jobs.py; G GPUs.
"""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.state import WHOLE, Floats, Row
from adlro.model.view import View
from adlro.planning.active_jobs import ActiveJobs, Indices
from adlro.planning.min_min import reserve


@njit
def _gang(job: Row, pool: Row) -> int:
    """Number of GPUs that a job holds on a pool in the plan: none if it is a slice."""
    return min(job.gpus, pool.gpus) if job.share == WHOLE else 0


@njit
def _end(a: int, p: int, stays: bool, active: ActiveJobs, view: View, times: Floats) -> float:
    """Completion time of job a if it runs on pool p as soon as its GPUs are free.

    stays: it goes on with its present run. times [G]: seconds until each GPU is free, sorted within
    each pool.
    """
    j, pool = active.rows[a], view.pools[p]
    job, gang = view.jobs[j], _gang(view.jobs[j], view.pools[p])
    end = active.left[a] * view.est[j, pool.model]
    if active.begun[a] and not stays:
        end += job.checkpoint
    return end + times[pool.first_gpu + gang - 1] if gang > 0 else end


@njit_allocating
def plan_cost(pools: Indices, active: ActiveJobs, view: View) -> float:
    """Return the cost in seconds if each active job now runs on one of `pools` [A], -1 = waits."""
    count, total = active.seconds.shape
    times = np.zeros(len(view.gpus))
    key, cost = np.full(count, -1.0), 0.0  # of the order: first the jobs that run after the plan
    for a in range(count):
        if pools[a] < 0:
            key[a] = active.seconds[a].min()
    for a in np.argsort(key, kind="mergesort"):
        best, where = np.inf, -1
        for p in range(total):
            if p == pools[a] or (pools[a] < 0 and active.seconds[a, p] < np.inf):
                stays = p == pools[a] and p == active.pool[a]
                end = _end(a, p, stays, active, view, times)
                if end < best:
                    best, where = end, p
        if where >= 0:
            cost += best
            pool = view.pools[where]
            gang = _gang(view.jobs[active.rows[a]], pool)
            reserve(pool.first_gpu, pool.gpus, gang, best, times)
    return cost
