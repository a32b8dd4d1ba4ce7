"""The estimator `request`: the run time that the user requested."""

from __future__ import annotations

from typing import ClassVar

from adlro.estimates.by_user import ByUser


class Request(ByUser):
    """Estimator that predicts the requested time.

    For a job without a request it predicts the median run time of all ended jobs.
    """

    needs_past: ClassVar[bool] = False
