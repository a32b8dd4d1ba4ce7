"""Means with intervals, over seeds; differences between policies are paired seed by seed."""

from __future__ import annotations

import math

import numpy as np
from pydantic import BaseModel, ConfigDict
from scipy.special import stdtrit

from adlro.model.state import Floats


class Estimate(BaseModel):
    """A mean over seeds with its 95 % interval (none from a single seed)."""

    model_config = ConfigDict(frozen=True)

    mean: float
    sd: float | None
    ci95: tuple[float, float] | None


def _t(count: int) -> float:
    """The 97.5 % quantile of Student's t for `count` independent values."""
    return float(stdtrit(count - 1, 0.975))


def estimate(values: Floats) -> Estimate:
    """Mean, standard deviation and t interval of values over seeds."""
    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return Estimate(mean=mean, sd=None, ci95=None)
    sd = float(np.std(values, ddof=1))
    half = _t(count) * sd / math.sqrt(count)
    return Estimate(mean=mean, sd=sd, ci95=(mean - half, mean + half))


def percent_difference(ours: Floats, theirs: Floats) -> Estimate:
    """How much larger the mean of `ours` is than that of `theirs`, in percent, paired by seed.

    The ratio of means, with the interval of its linearisation: the spread of ours - ratio * theirs
    over seeds. sd is that spread in percent of the mean of theirs.
    """
    ratio, count = float(np.mean(ours) / np.mean(theirs)), len(ours)
    percent = 100 * (ratio - 1)
    if count < 2:
        return Estimate(mean=percent, sd=None, ci95=None)
    sd = 100 * float(np.std(ours - ratio * theirs, ddof=1) / np.mean(theirs))
    half = _t(count) * sd / math.sqrt(count)
    return Estimate(mean=percent, sd=sd, ci95=(percent - half, percent + half))
