"""Do confidences and intervals hold? Tables for experiments/estimators, one row per history."""

from __future__ import annotations

from collections.abc import Mapping

from common import Table

from adlro.estimates.errors import Reliability
from adlro.evaluate.prediction_error import PredictionErrors
from adlro.model.state import Mask


def coverage_table(
    found: Mapping[str, PredictionErrors],
    later: Mapping[str, Mask],
    figures: dict[str, dict[str, float]],
) -> Table:
    """Return the share of measured jobs in the 80 % interval of each estimator, by history.

    Args:
        found: predictions by name of the history.
        later: [J] measured jobs of each history.
        figures: receives the shares, in the row "HISTORY, intervals".
    """
    lines, names = [], ()
    for history, one in found.items():
        shares = one.coverage(later[history])
        names = tuple(shares)
        lines.append([history, *(f"{100 * share:.1f}" for share in shares.values())])
        figures[f"{history}, intervals"] = shares
    caption = "Share of the jobs whose run time is in the estimate's 80 % interval, %."
    return Table(caption, ("history", *names), lines, is_brief=False)


def reliability_table(
    found: Mapping[str, PredictionErrors],
    later: Mapping[str, Mask],
    figures: dict[str, dict[str, float]],
    estimator: str = "memory",
) -> Table:
    """Return how often estimates of each confidence were within a factor of 2, by history.

    Args:
        found: predictions by name of the history.
        later: [J] measured jobs of each history.
        figures: receives the mean gap between confidence and share by history.
        estimator: whose confidences.
    """
    tenths = [f"{tenth / 10:.1f}" for tenth in range(10)]
    lines = []
    for history, one in found.items():
        rows = one.reliability(later[history])[estimator]
        cells = {f"{row.low:.1f}": f"{100 * row.within_2:.0f} ({row.jobs:,})" for row in rows}
        gap = mean_gap(rows)
        lines.append([history, *(cells.get(tenth, "") for tenth in tenths), f"{gap:.3f}"])
        figures[f"{history}, confidence"] = {"mean_gap": gap}
    caption = (
        f"Share of the jobs within a factor of 2 by the confidence of *{estimator}*, % (jobs); "
        "confidences from the number above the column to that of the next. Gap: mean "
        "|confidence - share| over the jobs."
    )
    return Table(caption, ("history", *tenths, "gap"), lines, is_brief=False)


def mean_gap(rows: tuple[Reliability, ...]) -> float:
    """Return the mean |confidence - share within a factor of 2| of a table, weighed by jobs."""
    jobs = sum(row.jobs for row in rows)
    return sum(row.jobs * abs(row.confidence - row.within_2) for row in rows) / max(jobs, 1)
