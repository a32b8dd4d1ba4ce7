"""Errors of run-time estimates as they occur on real clusters, for the episodes of a training.

A policy that meets exact estimates only learns to trust them. In training a part of the episodes
has estimates that are wrong in one of the ways of LAWS; the true run times do not change. What
estimators do to real histories is where the laws come from: `noisy` adds independent errors,
`regressed` draws estimates towards the mean of the user's jobs as predictions from earlier jobs do,
`limits` gives what users ask for, and `constant` one and the same time, where no user asks for any.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from adlro.model.record import Record
from adlro.model.state import Floats
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

Law = Literal["noisy", "regressed", "limits", "constant"]
LAWS: tuple[Law, ...] = ("noisy", "regressed", "limits", "constant")
ODDS = (0.4, 0.3, 0.2, 0.1)  # of the laws
SIGMAS = (0.1, 1.5)  # of noisy estimates
_PER_MODEL = 0.2  # share of an error that is another one on each GPU model
_SLACK = (1.0, 5.0)  # requested time over true run time
_STEPS = (1.2, 4.0)  # from one customary limit to the next


class EstimateErrors(Record):
    """How the estimates of an episode differ from the true run times."""

    law: Law
    sigma: float  # spread of the independent part
    trust: float  # weight of a job's own run time against the mean of its user's; 1 = all
    step: float  # factor between two customary limits

    def applied(self, setting: Setting, workload: Workload, rng: np.random.Generator) -> Workload:
        """Return the workload with estimates that have these errors."""
        count, models = workload.seconds.shape
        speeds = setting.speeds[workload.jobs["type"]]
        true = np.log(workload.seconds * speeds).mean(axis=1)  # on the reference GPU
        guess = self._guess(true, workload, rng)
        if self.law in ("limits", "constant"):
            own = np.zeros((count, models))
        else:
            own = _PER_MODEL * self.sigma * rng.standard_normal((count, models))
        est = np.exp(np.clip(guess[:, None] + own, -7.0, 20.0)) / speeds
        return workload._replace(est=np.minimum(est, workload.jobs["limit"][:, None]))

    def _guess(self, true: Floats, workload: Workload, rng: np.random.Generator) -> Floats:
        """Return the log of the estimate on the reference GPU [J], given that of the truth."""
        if self.law == "constant":
            return np.full(len(true), true.max())
        if self.law == "limits":
            asked = true + np.log(rng.uniform(*_SLACK, len(true)))
            width = np.log(self.step)
            limits: Floats = np.ceil(asked / width) * width
            return limits
        noise = self.sigma * rng.standard_normal(len(true))
        if self.law == "noisy":
            return true + noise
        groups = np.unique(workload.jobs[["user", "type"]], return_inverse=True)[1]
        means = np.bincount(groups, true) / np.bincount(groups)
        regressed: Floats = self.trust * true + (1 - self.trust) * means[groups] + noise
        return regressed


def draw(rng: np.random.Generator) -> EstimateErrors:
    """Draw the errors of an episode."""
    law = LAWS[int(rng.choice(len(LAWS), p=ODDS))]
    low, high = SIGMAS
    sigma = float(rng.uniform(low, high)) if law == "noisy" else float(rng.uniform(0.0, 0.6))
    return EstimateErrors(
        law=law,
        sigma=round(sigma, 3),
        trust=round(float(rng.uniform(0.0, 0.9)), 3),
        step=round(float(rng.uniform(*_STEPS)), 3),
    )
