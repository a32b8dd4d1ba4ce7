"""Tiresias, two-queue least attained service: who has had the least goes first, and may preempt.

A job with less than 18,000 GPU-seconds so far is in the first queue, the others in the second; in
each, older first (Gu et al., NSDI 2019; threshold and rounds as in POLICIES 1.4). Every 60 s the
list is walked: a job keeps or gets its GPUs while its pool has any left, whoever runs beyond that
is preempted. Whoever cannot checkpoint, or is younger than its least run time, keeps what it has.
"""

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.room import fastest_feasible, served, start
from adlro.model.state import PREEMPT, WAKE, WHOLE

_THRESHOLD, _ROUND = range(2)  # params
_NEXT = 1  # memory: when the next round begins


def params(setting):
    """GPU-seconds that end a job's time in the first queue, and seconds between two rounds."""
    return np.array([18_000.0, 60.0])


def memory(setting):
    """The run's seed (unused) and when the next round begins."""
    return 2


@njit
def may_stop(now, run, job):
    """True when a run can be preempted without losing its work."""
    return job.checkpoint >= 0 and now - run.start >= job.least_run


@njit_allocating
def _order(now, jobs, queue, running, threshold):
    """All jobs, the first of the list first: i < R is running[i], else queue[i - R]."""
    count = len(running)
    keys = np.empty(count + len(queue))
    for r in range(count):
        late = served(now, running[r], jobs[running[r].job]) >= threshold
        keys[r] = running[r].job + len(jobs) * late
    for q in range(len(queue)):
        keys[count + q] = queue[q].job + len(jobs) * (queue[q].served >= threshold)
    return np.argsort(keys)


@njit_allocating
def _preempt(now, jobs, est, queue, eligible, running, pools, threshold, out):
    """Write the preemptions of this round; returns how many."""
    quota = np.empty(len(pools), np.int64)
    for p in range(len(pools)):
        quota[p] = pools[p].gpus * WHOLE
    for r in range(len(running)):
        job = jobs[running[r].job]
        if not may_stop(now, running[r], job):
            quota[running[r].pool] -= job.gpus * job.share
    count = 0
    for i in _order(now, jobs, queue, running, threshold):
        if i < len(running):
            run = running[i]
            job = jobs[run.job]
            if not may_stop(now, run, job):
                continue
            need = job.gpus * job.share
            if quota[run.pool] >= need:
                quota[run.pool] -= need
            else:
                out[count].kind, out[count].job = PREEMPT, run.job
                count += 1
        else:
            q = i - len(running)
            j = queue[q].job
            best, best_p = np.inf, -1
            need = jobs[j].gpus * jobs[j].share
            for p in range(len(pools)):
                seconds = est[j, pools[p].model]
                if eligible[q, p] and quota[p] >= need and seconds < best:
                    best, best_p = seconds, p
            if best_p >= 0:
                quota[best_p] -= need
    return count


@njit
def decide(now, jobs, est, queue, eligible, running, pools, nodes, gpus, params, memory, out):
    """A round of preemptions if one is due, else the first of the list that fits."""
    if len(queue) == 0:
        return 0
    threshold = params[_THRESHOLD]
    if now >= memory[_NEXT]:
        memory[_NEXT] = now + params[_ROUND]
        count = _preempt(now, jobs, est, queue, eligible, running, pools, threshold, out)
        if count > 0:
            return count
    for late in range(2):
        for q in range(len(queue)):
            if (queue[q].served >= threshold) == late:
                j = queue[q].job
                p = fastest_feasible(jobs[j], est[j], eligible[q], pools, nodes, gpus)
                if p >= 0:
                    return start(out, j, p)
    if len(running) == 0:
        return 0
    out[0].kind, out[0].at = WAKE, memory[_NEXT]
    return 1
