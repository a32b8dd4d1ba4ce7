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
from adlro.model.feasibility import better, no_pick, start_pick, width
from adlro.planning.fair_share import usage_by_user

_AGE, _SIZE, _QOS, _FAIR, _AGE_MAX = range(5)  # params


def params(context):
    """Weights of age, size, job priority and fair share, and age_max in seconds, [5]."""
    return np.array([1000.0, 1000.0, 1000.0, 1000.0, 7 * 86_400.0])


@njit
def _highest(lowest, users, held, params, view):
    """Return the pick of the job with the largest sum, of those that fit now.

    lowest, users and held are the three results of `usage_by_user`.
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
    lowest, users, held = usage_by_user(view.now, view.jobs, view.queue, view.running)
    return _highest(lowest, users, held, params, view)


@njit
def decide(view, params, memory, out):
    """Start the job with the largest weighted sum, of those that fit now."""
    if len(view.queue) == 0:
        return 0
    return start_pick(_pick(view, params), view, out)
