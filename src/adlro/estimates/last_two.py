"""The estimator `last-two`: the mean of the user's last two run times."""

from __future__ import annotations

from typing import ClassVar

from adlro.estimates import by_user_kernel
from adlro.estimates.by_user import ByUser


class LastTwo(ByUser):
    """The mean of the user's last two run times."""

    statistic: ClassVar[int | None] = by_user_kernel.LAST_TWO
