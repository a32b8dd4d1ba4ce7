"""The estimator `user-mean`: the geometric mean of the run times of all ended jobs of the user."""

from __future__ import annotations

from typing import ClassVar

from adlro.estimates import by_user_kernel
from adlro.estimates.by_user import ByUser


class UserMean(ByUser):
    """Estimator that predicts the geometric mean of the run times of all ended jobs of the user."""

    statistic: ClassVar[int | None] = by_user_kernel.USER_MEAN
