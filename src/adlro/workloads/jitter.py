"""Small random changes of the estimates, which show how much of a result is chance.

Schedules are chaotic: on a window of a real history, estimates that are 1 % longer or shorter can
move the mean completion time by several percent. Averages over repetitions with different jitter
tell policies apart that a single run cannot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.seeds import WorkloadStream
from adlro.workloads.workload import Workload


class Jitter(NamedTuple):
    """How often each seed is repeated, and how far the estimates move each time."""

    repeats: int
    sigma: float = 0.01  # standard deviation of the log of the factor


def jittered(workload: Workload, sigma: float, seed: int, repeat: int) -> Workload:
    """Return a workload whose estimates and requested times are multiplied by lognormal factors.

    Each job has one factor, the same on all GPU models and for every policy. Estimates stay within
    the job's time limit. True run times and time limits do not change.

    Args:
        workload: of one seed; it is not modified.
        sigma: standard deviation of the log of the factor; 0.01 = about 1 %.
        seed: the seed of the workload.
        repeat: number of the repetition; each has factors of its own.
    """
    rng = np.random.default_rng((seed, WorkloadStream.JITTER, repeat))
    factor = np.exp(sigma * rng.standard_normal(len(workload.jobs)))
    jobs = workload.jobs.copy()
    jobs["requested"] *= factor
    est = np.minimum(workload.est * factor[:, None], jobs["limit"][:, None])
    return workload._replace(jobs=jobs, est=est)
