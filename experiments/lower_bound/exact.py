"""The least mean JCT of small instances without preemption, by branch and bound.

Jobs are placed one by one, none before the last start, each as early as its pool has GPUs free, in
every order and on every pool. An optimal schedule is among them: with its jobs in the order of
their starts and on the same pools, by induction, each is placed no later than it starts there, as
those before it end no later.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adlro.evaluate.lower_bound_kernel import Relaxation
from adlro.model.state import Floats

_SLACK = 1e-9  # seconds: an improvement below this is rounding


class _Job(NamedTuple):
    """A job of an instance: its arrival, GPUs, and seconds by pool (infinite = not there)."""

    arrival: float
    width: float
    seconds: tuple[float, ...]

    @property
    def shortest(self) -> float:
        """Seconds on its fastest pool."""
        return min(self.seconds)


class _Run(NamedTuple):
    """GPUs of a pool in use until a time."""

    end: float
    width: float


class _Search:
    """Depth-first search over the order of starts and the pools, with the best total JCT so far."""

    def __init__(self, jobs: list[_Job], gpus: Floats) -> None:
        self._jobs, self._gpus = jobs, gpus
        self.best = math.inf

    def _earliest(self, job: _Job, p: int, time: float, runs: list[_Run]) -> float:
        """Return the first time from `time` on when pool p has GPUs free for the job."""
        free = self._gpus[p] - sum(run.width for run in runs if run.end > time)
        for run in sorted(run for run in runs if run.end > time):
            if free >= job.width:
                break
            free, time = free + run.width, run.end
        return time

    def place(self, left: list[int], last: float, spent: float, runs: list[list[_Run]]) -> None:
        """Place the jobs that are left, none before the time of the `last` start."""
        if not left:
            self.best = min(self.best, spent)
            return
        jobs = [self._jobs[j] for j in left]
        least = sum(max(last - job.arrival, 0.0) + job.shortest for job in jobs)
        if spent + least >= self.best - _SLACK:
            return
        choices = []
        for j, job in zip(left, jobs, strict=True):
            for p, seconds in enumerate(job.seconds):
                if seconds < math.inf:
                    start = self._earliest(job, p, max(last, job.arrival), runs[p])
                    choices.append((start + seconds - job.arrival, start, j, p))
        for jct, start, j, p in sorted(choices):
            job = self._jobs[j]
            more = [[*own, _Run(start + job.seconds[p], job.width)] if k == p else own
                    for k, own in enumerate(runs)]  # fmt: skip
            self.place([k for k in left if k != j], start, spent + jct, more)


def least_mean_jct(instance: Relaxation) -> float:
    """Return the least mean JCT in seconds of all schedules without preemption.

    Pools are taken as single nodes without other limits than their GPUs.
    """
    jobs = [
        _Job(float(arrival), float(width), tuple(seconds.tolist()))
        for arrival, seconds, width in zip(
            instance.arrival, instance.seconds, instance.width, strict=True
        )
    ]
    search = _Search(jobs, np.asarray(instance.gpus))
    search.place(list(range(len(jobs))), 0.0, 0.0, [[] for _ in instance.gpus])
    return search.best / len(jobs)
