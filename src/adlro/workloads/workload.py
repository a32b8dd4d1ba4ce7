"""A workload: jobs and estimates, which policies see, and true values, which they do not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.config.scenario import Measure
from adlro.model.state import Counts, Floats, Mask, Records


class Workload(NamedTuple):
    """J jobs on a cluster, with events and rules; arrays are shared and must not be changed.

    Dimensions: T job types, M GPU models, P pools, E events, H quotas, K kinds of demand.
    """

    jobs: Records  # [J] JOB, sorted by arrival
    est: Floats  # [J, M] seconds that policies see
    allowed: Mask  # [J, P] pools where each job may run
    seconds: Floats  # [J, M] true run times: hidden from policies, as all fields below
    events: Records  # [E] EVENT: failures, repairs, speed changes, CPU-only jobs
    colocation: Floats  # [T, T] slowdown of a type by another on the same GPU; 1 = none
    demands: Records  # [K] DEMAND for placement by fragmentation; none = best fit
    readings: Records  # [T + 1, M] READING of each type, the last row idle; [0, 0] = no telemetry
    holders: Counts  # [J, 2] quota of the job's account and that of its user, -1 = none
    quotas: Records  # [H] QUOTA
    caps: Counts  # [H, M] most GPUs of a model that a holder may use at once, -1 = any number
    ageing: Floats  # [1] seconds of waiting after which a job claims a pool; [0] = no ageing
    tick: Floats  # [1] seconds between scheduling cycles; [0] = decisions follow events at once
    lost: Mask  # [J] runs that requeued jobs of a history lost: load, but not measured

    def measured(self, which: Measure) -> Counts:
        """Return the jobs (indices) whose waits and completion times count."""
        return measured(self.lost, which)


def measured(lost: Mask, which: Measure) -> Counts:
    """Return the indices of the jobs to measure: the part that `which` says, without lost runs.

    lost [J]: runs that requeued jobs lost, in order of arrival.
    """
    jobs: Counts = np.flatnonzero(~lost)
    return jobs[which.window(len(jobs))]
