"""The estimator `last-two`: the mean run time of the user's last two ended jobs."""

from __future__ import annotations

from typing import ClassVar

from adlro.estimates import by_user_kernel
from adlro.estimates.by_user import ByUser


class LastTwo(ByUser):
    """Estimator that predicts the mean run time of the user's last two ended jobs."""

    statistic: ClassVar[int | None] = by_user_kernel.LAST_TWO
