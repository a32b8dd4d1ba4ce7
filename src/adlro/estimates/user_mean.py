"""The estimator `user-mean`: the geometric mean of all run times of the user."""

from __future__ import annotations

from typing import ClassVar

from adlro.estimates import by_user_kernel
from adlro.estimates.by_user import ByUser


class UserMean(ByUser):
    """The geometric mean of all run times of the user."""

    statistic: ClassVar[int | None] = by_user_kernel.USER_MEAN
