"""The estimator `last-two-alike`: the mean run time of the last two ended jobs that are alike.

Jobs are alike if they have the same user, requested time and size (GPUs, nodes, cores and memory).
With the size, errors were smaller on the first halves of most public histories than without it.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from pydantic import ValidationError

from adlro.errors import TraceError
from adlro.estimates.by_user_kernel import ENDED, LAST_TWO
from adlro.estimates.estimator import Explanation, Settings
from adlro.estimates.job_fields import REQUEST_FILLER, SHAPE_FILLER, USER_FILLER, joined
from adlro.estimates.job_table import JobTable
from adlro.estimates.last_two import LastTwo
from adlro.features.hypervectors.schema import Words
from adlro.model.record import Record
from adlro.model.state import Floats

_COLUMNS = np.array([USER_FILLER, REQUEST_FILLER, SHAPE_FILLER])


class _File(Record):
    """Saved estimator (JSON): the files of its two statistics, as text."""

    user: str
    alike: str


class _Alike(LastTwo):
    """The same statistics by user, requested time and size together."""

    def keys(self, jobs: JobTable) -> Words:
        """Return the key [J] of each job's user, requested time and size."""
        return joined(jobs.fillings, _COLUMNS if jobs.fillings.shape[1] else _COLUMNS[:0])


class LastTwoAlike(LastTwo):
    """Estimator that predicts the mean run time of the last two ended jobs that are alike.

    Where there are none, it predicts as `last-two`: from the user's last two jobs, or the requested
    time, or the median of all ended jobs.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._alike = _Alike(settings)

    def statistics(self, jobs: JobTable) -> Floats:
        """Process a table's events as ByUser, with LAST_TWO and ENDED of alike jobs if any."""
        found, alike = super().statistics(jobs), self._alike.statistics(jobs)
        is_known = ~np.isnan(alike[:, LAST_TWO])
        for column in (LAST_TWO, ENDED):
            found[is_known, column] = alike[is_known, column]
        return found

    def explain(self, jobs: JobTable, job: int, model: int = 0) -> Explanation:
        """Return the estimate of one job on one GPU model, and by which fields jobs were alike."""
        found = super().explain(jobs, job, model)
        is_alike = self._alike.explain(jobs, job, model).matched
        return found._replace(matched="same user, request, shape") if is_alike else found

    def copy(self) -> Self:
        """Return an independent copy that has learned the same jobs."""
        other = super().copy()
        other._alike = self._alike.copy()
        return other

    def pack(self) -> bytes:
        """Return what has been learned as the content of a JSON file."""
        file = _File(user=super().pack().decode(), alike=self._alike.pack().decode())
        return file.model_dump_json().encode()

    @classmethod
    def unpack(cls, data: bytes, where: str) -> Self:
        """Restore an estimator from the bytes of `pack`; error messages call the file `where`.

        Raises:
            TraceError: the bytes are not such a file.
        """
        try:
            file = _File.model_validate_json(data)
        except ValidationError as exc:
            raise TraceError(f"{where}: does not hold run times of alike jobs") from exc
        found = super().unpack(file.user.encode(), where)
        found._alike = _Alike.unpack(file.alike.encode(), where)
        if found._alike.settings != found.settings:
            raise TraceError(f"{where}: its two parts are of different GPU models; create it again")
        return found
