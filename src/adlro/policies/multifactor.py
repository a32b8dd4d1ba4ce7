"""Slurm's multifactor priority: a weighted sum of age, size, job priority and fair share.

Largest W_age * min(1, age / age_max) + W_size * n / N + W_qos * priority + W_fair * 2^(-usage /
share) first (slurm.schedmd.com/priority_multifactor.html), with age = now - arrival, n the job's
GPUs (a slice: its share) and N all GPUs. Usage is the user's share of the GPU-seconds of all
running jobs (0 if there are none); users with a waiting or running job have equal shares. All
weights are 1000, age_max is 7 days.
"""

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.feasibility import better, no_pick, served, start_pick, width

_AGE, _SIZE, _QOS, _FAIR, _AGE_MAX = range(5)  # params


def params(context):
    """The four weights, and age_max in seconds."""
    return np.array([1000.0, 1000.0, 1000.0, 1000.0, 7 * 86_400.0])


@njit_allocating
def _usage(now, jobs, queue, running):
    """Lowest user id, number of active users, GPU-seconds of the users lowest..highest."""
    lowest, highest = 2**31, -(2**31)
    for q in range(len(queue)):
        user = jobs[queue[q].job].user
        lowest, highest = min(lowest, user), max(highest, user)
    for r in range(len(running)):
        user = jobs[running[r].job].user
        lowest, highest = min(lowest, user), max(highest, user)
    held = np.zeros(highest - lowest + 1)
    here = np.zeros(len(held), np.bool_)
    for q in range(len(queue)):
        here[jobs[queue[q].job].user - lowest] = True
    for r in range(len(running)):
        job = jobs[running[r].job]
        here[job.user - lowest] = True
        held[job.user - lowest] += served(now, running[r], job)
    return lowest, here.sum(), held


@njit
def _highest(lowest, users, held, params, view):
    """The feasible job with the highest priority; users and held as returned by `_usage`."""
    total, pick = 0.0, no_pick()
    for seconds in held:
        total += seconds
    for q in range(len(view.queue)):
        job = view.jobs[view.queue[q].job]
        age = min(1.0, (view.now - job.arrival) / params[_AGE_MAX])
        usage = held[job.user - lowest] / total if total > 0.0 else 0.0
        fair = 2.0 ** (-usage * users)
        rank = params[_AGE] * age + params[_SIZE] * (width(job) / len(view.gpus))
        score = -(rank + params[_QOS] * job.priority + params[_FAIR] * fair)
        pick = better(pick, score, q, view)
    return pick


@njit_allocating
def _pick(view, params):
    lowest, users, held = _usage(view.now, view.jobs, view.queue, view.running)
    return _highest(lowest, users, held, params, view)


@njit
def decide(view, params, memory, out):
    """Start the feasible job with the highest priority."""
    if len(view.queue) == 0:
        return 0
    return start_pick(_pick(view, params), view, out)
