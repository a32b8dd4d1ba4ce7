"""Synthetic outcomes of 12 job classes on three GPU models with speeds that differ by class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.estimates.job_fields import JobFields
from adlro.estimates.run_times import RunTimes

MODELS = ("A100", "V100", "T4")
CLASSES = 12
ASSUMED = (2.0, 1.0, 0.5)  # speeds, of all classes alike
_MAIN = (0.9, 0.0, -0.5)  # true mean log speeds
_RANGE = np.log(4.0) / 2  # a model is up to 4 times as fast for one class as for another
_NAMES = ("train", "eval", "solve", "render", "fit", "mesh", "fold", "sweep", "dock", "plot")


class Mixed(NamedTuple):
    """True run times by class and model, and the outcomes that were observed, in order."""

    log_s: np.ndarray  # [C, M] median log seconds
    seen: np.ndarray  # [C, M] number of outcomes
    kinds: np.ndarray  # [N] class of each outcome
    models: np.ndarray  # [N]
    seconds: np.ndarray  # [N]
    noise: float  # spread of log seconds around the median

    def by_mean_speeds(self, kind: int, model: int) -> float:
        """Log seconds of a class on a model by its runs on others and the true mean speeds."""
        others = [m for m in range(len(MODELS)) if m != model and self.seen[kind, m]]
        bases = [self.log_s[kind, m] + _MAIN[m] for m in others]
        return float(np.mean(bases)) - _MAIN[model]


def mixed(seed: int, count: int = 400, noise: float = 0.2) -> Mixed:
    """`count` outcomes; 7 of the 36 pairs of a class and a model never occur."""
    rng = np.random.default_rng(seed)
    base = np.log(20.0) + np.log(100.0) * rng.permutation(np.linspace(0, 1, CLASSES))
    own = rng.uniform(-_RANGE, _RANGE, (CLASSES, len(MODELS)))
    log_s = base[:, None] - np.array(_MAIN) - own
    never = np.zeros((CLASSES, len(MODELS)), bool)
    never[np.arange(7), rng.integers(0, len(MODELS), 7)] = True
    cells = np.argwhere(~never)
    drawn = cells[rng.integers(0, len(cells), count)]
    kinds, models = drawn.T
    seconds = np.exp(log_s[kinds, models] + noise * rng.standard_normal(count))
    seen = np.zeros(log_s.shape, np.int64)
    np.add.at(seen, (kinds, models), 1)
    return Mixed(log_s, seen, kinds, models, seconds, noise)


def job(kind: int, number: int = 0) -> JobFields:
    """A job of a class as Slurm names it: users, names and requests, at any hour."""
    return JobFields(
        user=f"user{kind % 4}",
        account=f"account{kind % 2}",
        queue="gpu",
        name=f"{_NAMES[kind % len(_NAMES)]}_{kind}",
        requested_s=3600.0 * (1 + kind % 3),
        gpus=float(1 + kind % 2),
        submit_s=977.0 * number,
    )


def taught(found: Mixed, speeds: tuple[float, ...] = ASSUMED) -> RunTimes:
    """An estimator that predicted each job when it was submitted and then learned its end."""
    memory = RunTimes(MODELS, speeds)
    for n, (kind, model, seconds) in enumerate(
        zip(found.kinds.tolist(), found.models.tolist(), found.seconds.tolist(), strict=True)
    ):
        memory.predict(job(kind, n), source=n)
        memory.learn(job(kind, n), seconds, 60.0 * n, n, MODELS[model])
    return memory
