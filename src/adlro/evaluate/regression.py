"""The paper's analysis: mean JCT explained by utilisation, offered load and queue length.

Ordinary least squares over runs, one observation a (policy, seed).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from scipy.special import stdtrit

from adlro.model.state import Floats

EXPLAINED = "mean_jct_s"
EXPLAINING = ("gpu_utilisation", "offered_load", "mean_queue")
_FLAT = 1e-9  # share of its mean below which a column does not vary
_SINGULAR = 1e-7  # smallest singular value of the standardised columns, relative to the largest


class Coefficient(BaseModel):
    """One term of a regression."""

    model_config = ConfigDict(frozen=True)

    name: str  # "constant" or a metric
    value: float  # seconds of mean JCT for one unit of it
    ci95: tuple[float, float]
    standardised: float | None  # standard deviations of JCT for one of it; none of the constant


class Regression(BaseModel):
    """Least squares over some runs; with a `problem` there are no coefficients."""

    model_config = ConfigDict(frozen=True)

    n: int  # runs
    r2: float | None = None
    coefficients: list[Coefficient] = []
    intervals: str | None = None  # how they were made
    problem: str | None = None  # why there is no answer, in one sentence


class Regressions(BaseModel):
    """Over all runs of a comparison, and policy by policy."""

    model_config = ConfigDict(frozen=True)

    explained: str = EXPLAINED
    pooled: Regression
    by_policy: dict[str, Regression]


def _problem(y: Floats, x: Floats, names: Sequence[str], clusters: int) -> str | None:
    """What keeps y [n] from being regressed on x [n, K], in one sentence."""
    terms = len(names) + 1
    if clusters <= terms:
        return f"{clusters} seeds are too few for {terms} coefficients; {terms + 1} would do."
    for name, column in ((EXPLAINED, y), *zip(names, x.T, strict=True)):
        if not np.isfinite(column).all():
            return f"{name} is not a number in every run."
        if np.ptp(column) <= _FLAT * abs(float(column.mean())):
            return f"{name} is the same in all runs, so nothing can be said of it."
    sizes = np.linalg.svd((x - x.mean(axis=0)) / x.std(axis=0), compute_uv=False)
    if sizes[-1] <= _SINGULAR * sizes[0]:
        return f"{', '.join(names)} depend on one another linearly: no single answer."
    return None


def _covariance(
    design: Floats, left: Floats, seeds: NDArray[np.int64], *, is_clustered: bool
) -> tuple[Floats, int]:
    """Covariance [K, K] of the coefficients, and its degrees of freedom.

    Clustered: the sandwich that allows any dependence between the runs of one seed, with the usual
    correction for few seeds; else as if all runs were independent and alike.
    """
    n, terms = design.shape
    bread = np.linalg.inv(design.T @ design)
    if not is_clustered:
        covariance: Floats = bread * float(left @ left) / (n - terms)
        return covariance, n - terms
    _, cluster = np.unique(seeds, return_inverse=True)
    count = int(cluster.max()) + 1
    scores = np.zeros((count, terms))
    np.add.at(scores, cluster, design * left[:, None])
    factor = count / (count - 1) * (n - 1) / (n - terms)
    covariance = factor * bread @ (scores.T @ scores) @ bread
    return covariance, count - 1


def regress(
    y: Floats, x: Floats, seeds: NDArray[np.int64], names: Sequence[str] = EXPLAINING
) -> Regression:
    """Least squares of y on a constant and the columns of x.

    Shapes: n runs, K columns; y [n], x [n, K], seeds [n]. Where a seed has several runs, intervals
    are clustered by seed: policies that met the same jobs are not independent.
    """
    clusters = len(np.unique(seeds))
    problem = _problem(y, x, names, clusters)
    if problem is not None:
        return Regression(n=len(y), problem=problem)
    middle, scale = x.mean(axis=0), x.std(axis=0)
    design = np.column_stack((np.ones(len(y)), (x - middle) / scale))
    found = np.linalg.lstsq(design, y, rcond=None)[0]
    left = y - design @ found
    is_clustered = clusters < len(y)
    covariance, freedom = _covariance(design, left, seeds, is_clustered=is_clustered)
    back = np.diag(np.concatenate(([1.0], 1 / scale)))  # from standardised columns to real ones
    back[0, 1:] = -middle / scale
    values, errors = back @ found, np.sqrt(np.diag(back @ covariance @ back.T))
    half = float(stdtrit(freedom, 0.975)) * errors
    standardised = [None, *(found[1:] / y.std()).tolist()]
    return Regression(
        n=len(y),
        r2=1 - float(left @ left) / float(((y - y.mean()) ** 2).sum()),
        coefficients=[
            Coefficient(name=name, value=value, ci95=(value - h, value + h), standardised=beta)
            for name, value, h, beta in zip(
                ("constant", *names), values.tolist(), half.tolist(), standardised, strict=True
            )
        ],
        intervals="clustered by seed" if is_clustered else "classical",
    )


def regressions(figures: dict[str, Floats], names: Sequence[str], seeds: range) -> Regressions:
    """The regression over all runs and that of each policy.

    Args:
        figures: metric -> its figures [P, S], for EXPLAINED and EXPLAINING.
        names: [P] of the policies.
        seeds: [S]
    """
    y, number = figures[EXPLAINED], np.array(seeds)
    x = np.stack([figures[name] for name in EXPLAINING], axis=-1)
    pooled = regress(y.ravel(), x.reshape(-1, x.shape[-1]), np.tile(number, len(names)))
    alone = {name: regress(y[p], x[p], number) for p, name in enumerate(names)}
    return Regressions(pooled=pooled, by_policy=alone)
