"""The estimator `request`: what the user asked for."""

from __future__ import annotations

from typing import ClassVar

from adlro.estimates.by_user import ByUser


class Request(ByUser):
    """The request, without one the median of all jobs that have ended."""

    needs_past: ClassVar[bool] = False
