"""Tiresias, two-queue least attained service: jobs with little service are first, with preemption.

A job with less than 18,000 GPU-seconds of service is in the first queue, the others are in the
second; within each queue older jobs come first (discretized 2D-LAS, Gu et al. 2019, NSDI, section
3.2; the threshold and the rounds of 60 s are those of Hu et al. 2023, Lucid, ASPLOS). Jobs that fit
start in this order. In each round a waiting job may preempt running jobs that come later in the
order, the last one first, on its fastest pool where this makes it fit; otherwise nothing is
preempted for it. Jobs that cannot checkpoint, or have not yet run for their least run time, are not
preempted.
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
_NEXT = 1  # memory: time of the next round
_SOON = 1.0  # seconds added to a threshold's time, so that it is surely crossed
_LATE = 2.0**52  # added to the id in the second queue: larger than any id, and the sum is exact


class _Cluster(NamedTuple):
    pools: Records
    nodes: Records
    gpus: Records


def params(context):
    """GPU-seconds of service at which a job leaves the first queue, and seconds between rounds."""
    return np.array([18_000.0, 60.0])


def memory(context):
    """Length of the memory: the run's seed (unused) and the time of the next round."""
    return 2


@njit
def _is_preemptible(now, run, job):
    """Return True if a run can checkpoint and has lasted at least its least run time."""
    return job.checkpoint >= 0 and now - run.start >= job.least_run


@njit_allocating
def _order(now, jobs, queue, running, threshold):
    """Return the indices of all active jobs, first to last in the order of the policy.

    Of R running jobs, index i < R is running[i], and any other i is queue[i - R].
    """
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
def _preempt_until_fits(j, p, behind, view, cluster, out):
    """Write preemptions of runs on pool p until job j fits there, and return their number.

    behind: indices of later jobs as in `_order`; the last is preempted first. 0 = job j would not
    fit, and nothing is to be preempted. cluster: scratch for a copy of the view's.
    """
    now, jobs, running = view.now, view.jobs, view.running
    _copy(view.pools, cluster.pools)
    _copy(view.nodes, cluster.nodes)
    _copy(view.gpus, cluster.gpus)
    count = 0
    for i in behind[::-1]:
        if i < len(running) and running[i].pool == p:
            job = jobs[running[i].job]
            if _is_preemptible(now, running[i], job):
                release(running[i], jobs, cluster.pools, cluster.nodes, cluster.gpus)
                out[count].kind, out[count].job = PREEMPT, running[i].job
                count += 1
                if fits(jobs[j], cluster.pools[p], cluster.nodes, cluster.gpus):
                    return count
    return 0


@njit
def _next_pool(q, view, tried):
    """Return the fastest eligible pool of waiting job q that is not marked in tried [P], or -1."""
    j, best, best_p = view.queue[q].job, np.inf, wide(-1)
    for p in range(len(view.pools)):
        seconds = view.est[j, view.pools[p].model]
        if view.eligible[q, p] and not tried[p] and seconds < best:
            best, best_p = seconds, wide(p)
    return best_p


@njit
def _preempt_in_order(order, tried, cluster, view, out):
    """Do the work of `_preempt_for_waiting`, given the order of jobs and two scratch buffers.

    Buffers: tried [P], and cluster for a copy of pools, nodes and GPUs.
    """
    now, jobs, queue, running = view.now, view.jobs, view.queue, view.running
    behind = len(order)  # no run from here on is preemptible
    while behind > 0:
        i = order[behind - 1]
        if i < len(running) and _is_preemptible(now, running[i], jobs[running[i].job]):
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
            count = _preempt_until_fits(j, p, order[k + 1 : behind], view, cluster, out)
            if count > 0:
                out[count].kind, out[count].job, out[count].pool = START, j, p
                out[count].node = out[count].gpu = -1
                return count + 1
    return 0


@njit_allocating
def _preempt_for_waiting(view, threshold, out):
    """Write the preemptions that let one waiting job start, and its start; return their number."""
    order = _order(view.now, view.jobs, view.queue, view.running, threshold)
    cluster = _Cluster(view.pools.copy(), view.nodes.copy(), view.gpus.copy())
    return _preempt_in_order(order, np.empty(len(view.pools), np.bool_), cluster, view, out)


@njit
def _next_change(now, jobs, running, threshold):
    """Return the next time at which a run enters the second queue or becomes preemptible.

    Infinite = never.
    """
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
    """Start the first job that fits; else, in a round, the first one that preemptions make fit."""
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
        count = _preempt_for_waiting(view, threshold, out)
        if count > 0:
            return count
        memory[_NEXT] = now + params[_ROUND]
        at = max(memory[_NEXT], _next_change(now, view.jobs, view.running, threshold))
    if at == np.inf:
        return 0
    out[0].kind, out[0].at = WAKE, at
    return 1
