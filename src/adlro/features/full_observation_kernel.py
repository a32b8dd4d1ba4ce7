"""Additions to the paper's observation: estimates, GPUs and waiting time of each slot's job."""

from __future__ import annotations

import math

from adlro.compiled import njit
from adlro.features.observation_kernel import Vector
from adlro.model.feasibility import width
from adlro.model.view import View

_MOST_LOG = math.log(1000.0)  # the scale reaches from tau / 1000 to 1000 tau
_MOST_WAITED = math.log1p(1000.0)


def more(pools: int, window: int) -> int:
    """Return how many numbers `observe_more` writes."""
    return window * (pools + 2)


@njit
def observe_more(view: View, window: int, tau: float, x: Vector) -> None:
    """Write P + 2 numbers to x for each of the first `window` waiting jobs, each in [-1, 1].

    For each of P pools: the log of the job's estimated remaining time there over tau, the run time
    of a typical job in seconds, scaled to [-1, 1]; 1 where it may not run. Then its GPUs and its
    waiting time, on logarithmic scales from 0 to 1. All numbers of an empty slot are 0.
    """
    now, jobs, est, queue, eligible = view.now, view.jobs, view.est, view.queue, view.eligible
    pools, gpus, at = view.pools, view.gpus, 0
    for slot in range(window):
        for k in range(len(pools) + 2):
            x[at + k] = 0.0
        if slot < len(queue):
            waiting = queue[slot]
            for p in range(len(pools)):
                x[at + p] = 1.0
                if eligible[slot, p]:
                    seconds = max(est[waiting.job, pools[p].model] * waiting.left, 1e-9)
                    x[at + p] = min(max(math.log(seconds / tau) / _MOST_LOG, -1.0), 1.0)
            x[at + len(pools)] = math.log1p(width(jobs[waiting.job])) / math.log1p(len(gpus))
            waited = math.log1p((now - waiting.since) / tau) / _MOST_WAITED
            x[at + len(pools) + 1] = min(waited, 1.0)
        at += len(pools) + 2
