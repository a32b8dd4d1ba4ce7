"""Ratios of mean completion times by window, pooled: every window counts alike."""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict

from adlro.evaluate.stats import estimate
from adlro.model.state import Floats

RIVALS = ("min-min", "drain-argmin")  # chosen beforehand, never by the result


class Pooled(BaseModel):
    """Geometric mean of a policy's ratios to a rival, as differences in percent."""

    model_config = ConfigDict(frozen=True)

    windows: int
    mean_pct: float  # below 0 = shorter than the rival
    ci95: tuple[float, float] | None  # windows are the unit; None = one window
    worst_pct: float  # of the window in which the policy is worst

    def __str__(self) -> str:
        """Return the mean with its interval, in percent."""
        if self.ci95 is None:
            return f"{self.mean_pct:+,.1f} %"
        return f"{self.mean_pct:+,.1f} % ({self.ci95[0]:+,.1f} to {self.ci95[1]:+,.1f})"

    @property
    def is_settled(self) -> bool:
        """True if the interval excludes 0; False if there is no interval."""
        return self.ci95 is not None and not self.ci95[0] <= 0 <= self.ci95[1]


def _percent(log_ratio: float) -> float:
    return 100 * float(np.expm1(log_ratio))


def pool(log_ratios: Floats) -> Pooled:
    """Return the geometric mean of ratios with the Student's t interval of their logs.

    log_ratios [W]: natural log of our mean JCT / the rival's, one for each window.
    """
    found = estimate(log_ratios)
    ci95 = None if found.ci95 is None else (_percent(found.ci95[0]), _percent(found.ci95[1]))
    return Pooled(
        windows=len(log_ratios),
        mean_pct=_percent(found.mean),
        ci95=ci95,
        worst_pct=_percent(float(log_ratios.max())),
    )


def pooled_against_rivals(names: list[str], jct: Floats) -> list[dict[str, Pooled]]:
    """Return for each policy: rival -> pooled ratio of mean JCTs; for those of RIVALS present.

    Args:
        names: [P] policies.
        jct: [P, W] mean JCT of each policy in each window; empty results without windows.
    """
    if jct.shape[1] == 0:
        return [{} for _ in names]
    rivals = {name: np.log(jct[names.index(name)]) for name in RIVALS if name in names}
    return [
        {rival: pool(np.log(row) - theirs) for rival, theirs in rivals.items() if rival != name}
        for name, row in zip(names, jct, strict=True)
    ]
