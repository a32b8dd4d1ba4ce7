"""Tiresias, two-queue least attained service: who has had the least goes first, and may preempt.

A job with less than 18,000 GPU-seconds so far is in the first queue, the others in the second; in
each, older first (Gu et al., NSDI 2019; threshold and rounds as in POLICIES 1.4). Whoever fits
starts, in this order. Every 60 s those who wait may preempt those behind them in the list, the last
first, on their fastest pool where that makes room: nobody is stopped in vain. Whoever cannot
checkpoint, or is younger than its least run time, is left alone.
"""

from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_allocating, wide
from adlro.model.feasibility import fastest_feasible, fits, served
from adlro.model.feasibility import start as write_start
from adlro.model.placement import release
from adlro.model.state import PREEMPT, START, WAKE, WHOLE, Records

PREEMPTIVE = True

_THRESHOLD, _ROUND = range(2)  # params
_NEXT = 1  # memory: when the next round is due
_SOON = 1.0  # seconds after a border at which it is surely crossed
_LATE = 2.0**52  # what the second queue adds to an id: more than any, and their sum is exact


class _Cluster(NamedTuple):
    pools: Records
    nodes: Records
    gpus: Records


def params(context):
    """GPU-seconds that end a job's time in the first queue, and seconds between two rounds."""
    return np.array([18_000.0, 60.0])


def memory(context):
    """The run's seed (unused) and when the next round is due."""
    return 2


@njit
def _may_stop(now, run, job):
    """True when a run can be preempted without losing its work."""
    return job.checkpoint >= 0 and now - run.start >= job.least_run


@njit_allocating
def _listed(now, jobs, queue, running, threshold):
    """All jobs, the first of the list first: i < R is running[i], else queue[i - R]."""
    count = len(running)
    keys = np.empty(count + len(queue))
    for r in range(count):
        late = served(now, running[r], jobs[running[r].job]) >= threshold
        keys[r] = jobs[running[r].job].id + _LATE * late
    for q in range(len(queue)):
        keys[count + q] = jobs[queue[q].job].id + _LATE * (queue[q].served >= threshold)
    return np.argsort(keys)


@njit
def _copy(records, to):
    for i in range(len(records)):
        to[i] = records[i]


@njit
def _make_room(j, p, behind, view, cluster, out):
    """Preempt runs on pool p, the last `behind` first, until job j fits; how many, 0 = in vain."""
    now, jobs, running = view.now, view.jobs, view.running
    _copy(view.pools, cluster.pools)
    _copy(view.nodes, cluster.nodes)
    _copy(view.gpus, cluster.gpus)
    count = 0
    for i in behind[::-1]:
        if i < len(running) and running[i].pool == p:
            job = jobs[running[i].job]
            if _may_stop(now, running[i], job):
                release(running[i], jobs, cluster.pools, cluster.nodes, cluster.gpus)
                out[count].kind, out[count].job = PREEMPT, running[i].job
                count += 1
                if fits(jobs[j], cluster.pools[p], cluster.nodes, cluster.gpus):
                    return count
    return 0


@njit
def _next_pool(q, view, tried):
    """The fastest eligible pool that was not tried, or -1; tried [P]."""
    j, best, best_p = view.queue[q].job, np.inf, wide(-1)
    for p in range(len(view.pools)):
        seconds = view.est[j, view.pools[p].model]
        if view.eligible[q, p] and not tried[p] and seconds < best:
            best, best_p = seconds, wide(p)
    return best_p


@njit
def _help_first(order, tried, cluster, view, out):
    """As `_help`, which brings the list and scratch: tried [P], and a cluster to try moves on."""
    now, jobs, queue, running = view.now, view.jobs, view.queue, view.running
    behind = len(order)  # nobody from here on can be stopped
    while behind > 0:
        i = order[behind - 1]
        if i < len(running) and _may_stop(now, running[i], jobs[running[i].job]):
            break
        behind -= 1
    for k in range(behind):
        q = order[k] - len(running)
        if q < 0:
            continue
        j = queue[q].job
        tried[:] = False
        for _ in range(len(tried)):
            p = _next_pool(q, view, tried)
            if p < 0:
                break
            tried[p] = True
            count = _make_room(j, p, order[k + 1 : behind], view, cluster, out)
            if count > 0:
                out[count].kind, out[count].job, out[count].pool = START, j, p
                out[count].node = out[count].gpu = -1
                return count + 1
    return 0


@njit_allocating
def _help(view, threshold, out):
    """Preemptions that let a waiting job start, and its start; returns how many decisions."""
    order = _listed(view.now, view.jobs, view.queue, view.running, threshold)
    cluster = _Cluster(view.pools.copy(), view.nodes.copy(), view.gpus.copy())
    return _help_first(order, np.empty(len(view.pools), np.bool_), cluster, view, out)


@njit
def _next_change(now, jobs, running, threshold):
    """When time alone next changes the list, or who may be stopped; infinite = never."""
    soonest = np.inf
    for r in range(len(running)):
        run, job = running[r], jobs[running[r].job]
        if job.checkpoint >= 0:
            had = served(now, run, job)
            if had < threshold:
                rest = (threshold - had) / (job.gpus * job.share / WHOLE)
                soonest = min(soonest, now + rest)
            if now - run.start < job.least_run:
                soonest = min(soonest, run.start + job.least_run)
    return soonest + _SOON


@njit
def decide(view, params, memory, out):
    """The first of the list that fits; else, if a round is due, the first that can make room."""
    now, queue = view.now, view.queue
    if len(queue) == 0:
        return 0
    threshold, at = params[_THRESHOLD], memory[_NEXT]
    for late in range(2):
        for q in range(len(queue)):
            if (queue[q].served >= threshold) == late:
                p = fastest_feasible(q, view)
                if p >= 0:
                    return write_start(out, queue[q].job, p)
    if now >= memory[_NEXT]:
        count = _help(view, threshold, out)
        if count > 0:
            return count
        memory[_NEXT] = now + params[_ROUND]
        at = max(memory[_NEXT], _next_change(now, view.jobs, view.running, threshold))
    if at == np.inf:
        return 0
    out[0].kind, out[0].at = WAKE, at
    return 1
