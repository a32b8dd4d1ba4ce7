"""Slurm's multifactor priority: a weighted sum of age, size, job priority and fair share.

The job with the largest W_age * min(1, age / age_max) + W_size * n / N + W_qos * priority + W_fair
* 2^(-usage / share) is next (slurm.schedmd.com/priority_multifactor.html), with age = now -
arrival, n the number of its GPUs (a slice: its share of one) and N the number of all GPUs. Usage is
the part that the user's jobs have of the GPU-seconds received by all running jobs (0 if none runs);
share is 1 / the number of users with a waiting or running job. All weights W are 1000, age_max is 7
days.
"""

import numpy as np

from adlro.compiled import njit, njit_allocating
from adlro.model.feasibility import better, no_pick, served, start_pick, width

_AGE, _SIZE, _QOS, _FAIR, _AGE_MAX = range(5)  # params


def params(context):
    """Weights of age, size, job priority and fair share, and age_max in seconds, [5]."""
    return np.array([1000.0, 1000.0, 1000.0, 1000.0, 7 * 86_400.0])


@njit_allocating
def _usage(now, jobs, queue, running):
    """Return the lowest user id of all active jobs, the number of users, and their GPU-seconds.

    The last is an array over all ids from the lowest to the highest: GPU-seconds that the running
    jobs of the user have received.
    """
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
    """Return the pick of the job with the largest sum, of those that fit now.

    lowest, users and held are the three results of `_usage`.
    """
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
    """Start the job with the largest weighted sum, of those that fit now."""
    if len(view.queue) == 0:
        return 0
    return start_pick(_pick(view, params), view, out)
