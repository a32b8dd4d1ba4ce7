"""GPU-seconds of the users whose jobs wait or run now, for fair-share factors."""

from __future__ import annotations

import numpy as np

from adlro.compiled import njit_allocating
from adlro.model.feasibility import served
from adlro.model.state import Floats, Records


@njit_allocating
def usage_by_user(
    now: float, jobs: Records, queue: Records, running: Records
) -> tuple[int, int, Floats]:
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
