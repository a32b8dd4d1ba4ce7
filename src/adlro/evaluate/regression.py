"""The paper's regression of mean JCT on utilisation, offered load and queue length.

Ordinary least squares over runs; each (policy, seed) is one observation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from scipy.special import stdtrit

from adlro.model.state import Floats

RESPONSE = "mean_jct_s"
REGRESSORS = ("gpu_utilisation", "offered_load", "mean_queue")
_CONSTANT = 1e-9  # relative range below which a column counts as constant
_SINGULAR = 1e-7  # smallest singular value of the standardised columns, relative to the largest


class Coefficient(BaseModel):
    """One coefficient of a regression with its 95 % confidence interval."""

    model_config = ConfigDict(frozen=True)

    name: str  # "constant" or a metric
    value: float  # seconds of mean JCT per unit
    ci95: tuple[float, float]
    standardised: float | None  # standardised coefficient; None for the constant


class Regression(BaseModel):
    """A least-squares fit, or the `problem` because of which there is no fit."""

    model_config = ConfigDict(frozen=True)

    n: int  # runs
    r2: float | None = None
    coefficients: list[Coefficient] = []
    intervals: str | None = None  # how the confidence intervals were computed
    problem: str | None = None  # why there is no fit, in one sentence


class Regressions(BaseModel):
    """The regression over all runs of a comparison, and one per policy."""

    model_config = ConfigDict(frozen=True)

    explained: str = RESPONSE
    pooled: Regression
    by_policy: dict[str, Regression]


def _problem(y: Floats, x: Floats, names: Sequence[str], clusters: int) -> str | None:
    """Return why y [n] cannot be regressed on x [n, K], in one sentence; None if it can."""
    terms = len(names) + 1
    if clusters <= terms:
        return f"{clusters} seeds are too few for {terms} coefficients; {terms + 1} would do."
    for name, column in ((RESPONSE, y), *zip(names, x.T, strict=True)):
        if not np.isfinite(column).all():
            return f"{name} is not a number in every run."
        if np.ptp(column) <= _CONSTANT * abs(float(column.mean())):
            return f"{name} is the same in all runs, so nothing can be said of it."
    sizes = np.linalg.svd((x - x.mean(axis=0)) / x.std(axis=0), compute_uv=False)
    if sizes[-1] <= _SINGULAR * sizes[0]:
        return f"{', '.join(names)} depend on one another linearly: no single answer."
    return None


def _covariance(
    design: Floats, residuals: Floats, seeds: NDArray[np.int64], *, is_clustered: bool
) -> tuple[Floats, int]:
    """Return the covariance [K, K] of the K coefficients and its degrees of freedom.

    If clustered, by the cluster-robust sandwich estimator with seeds as clusters and the usual
    small-sample correction; otherwise by the classical estimator for independent, homoscedastic
    errors. design [n, K]: terms of n runs; residuals [n]; seeds [n].
    """
    n, terms = design.shape
    bread = np.linalg.inv(design.T @ design)
    if not is_clustered:
        covariance: Floats = bread * float(residuals @ residuals) / (n - terms)
        return covariance, n - terms
    _, cluster = np.unique(seeds, return_inverse=True)
    count = int(cluster.max()) + 1
    scores = np.zeros((count, terms))
    np.add.at(scores, cluster, design * residuals[:, None])
    factor = count / (count - 1) * (n - 1) / (n - terms)
    covariance = factor * bread @ (scores.T @ scores) @ bread
    return covariance, count - 1


def regress(
    y: Floats, x: Floats, seeds: NDArray[np.int64], names: Sequence[str] = REGRESSORS
) -> Regression:
    """Fit y to a constant and the columns of x by least squares.

    Shapes: n runs, K columns; y [n], x [n, K], seeds [n]. If a seed has several runs, intervals are
    clustered by seed: policies that ran the same jobs are not independent.
    """
    clusters = len(np.unique(seeds))
    problem = _problem(y, x, names, clusters)
    if problem is not None:
        return Regression(n=len(y), problem=problem)
    middle, scale = x.mean(axis=0), x.std(axis=0)
    design = np.column_stack((np.ones(len(y)), (x - middle) / scale))
    found = np.linalg.lstsq(design, y, rcond=None)[0]
    residuals = y - design @ found
    is_clustered = clusters < len(y)
    covariance, degrees = _covariance(design, residuals, seeds, is_clustered=is_clustered)
    unscale = np.diag(np.concatenate(([1.0], 1 / scale)))  # undoes the standardisation
    unscale[0, 1:] = -middle / scale
    values, errors = unscale @ found, np.sqrt(np.diag(unscale @ covariance @ unscale.T))
    half = float(stdtrit(degrees, 0.975)) * errors
    standardised = [None, *(found[1:] / y.std()).tolist()]
    return Regression(
        n=len(y),
        r2=1 - float(residuals @ residuals) / float(((y - y.mean()) ** 2).sum()),
        coefficients=[
            Coefficient(name=name, value=value, ci95=(value - h, value + h), standardised=beta)
            for name, value, h, beta in zip(
                ("constant", *names), values.tolist(), half.tolist(), standardised, strict=True
            )
        ],
        intervals="clustered by seed" if is_clustered else "classical",
    )


def regressions(figures: dict[str, Floats], names: Sequence[str], seeds: range) -> Regressions:
    """Return the regression over all runs and one per policy.

    Args:
        figures: metric -> its values [P, S], for RESPONSE and REGRESSORS.
        names: [P] policies.
        seeds: [S] the seed of each column.
    """
    y, number = figures[RESPONSE], np.array(seeds)
    x = np.stack([figures[name] for name in REGRESSORS], axis=-1)
    pooled = regress(y.ravel(), x.reshape(-1, x.shape[-1]), np.tile(number, len(names)))
    each = {name: regress(y[p], x[p], number) for p, name in enumerate(names)}
    return Regressions(pooled=pooled, by_policy=each)
