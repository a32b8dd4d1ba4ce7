"""A workload: the jobs that policies see, and the truth that they do not."""

from __future__ import annotations

from typing import NamedTuple

from adlro.model.state import Floats, Mask, Records


class Workload(NamedTuple):
    """J jobs on a cluster of M models and P pools; read-only, shared by every run."""

    jobs: Records  # [J] JOB, sorted by arrival
    est: Floats  # [J, M] seconds that policies see
    allowed: Mask  # [J, P] where each job may run at all
    seconds: Floats  # [J, M] the true run times: never handed to a policy
