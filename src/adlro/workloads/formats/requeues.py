"""Several records of one job id (`sacct -D`): the job, the runs it lost, and ids used again."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.model.state import Counts, Mask

_SOON_S = 86_400.0  # a requeue follows the end of the run before it; Slurm forgets a job by then
ArrayColumns = Mapping[str, NDArray[Any]]


class Records(NamedTuple):
    """What the R records of a file are."""

    kept: Counts  # rows of the jobs and of the runs that they lost, rising
    is_lost: Mask  # [R] earlier runs of requeued jobs
    ids: list[str]  # [R] of an id that was used again, the earlier jobs have "ID#1", "ID#2", …
    without_run: int  # earlier records of requeued jobs that had not started: not kept
    reused: int  # jobs whose id a later job has used again


def tell_apart(ids: Sequence[str], columns: ArrayColumns) -> Records:
    """Tell jobs, lost runs and jobs with the same id apart.

    Records of one id are taken in the order of their submission. The next one is a requeue of the
    same job if user and name agree, as far as known, and it was submitted within a day of the end
    of the one before; Slurm sets the time of submission to that of the requeue. Otherwise it is
    another job: ids begin again where they have reached MaxJobId, or the state was lost.

    Args:
        ids: [R] ids of the records.
        columns: [R] each, by field of History; missing values are nan or -1.
    """
    named, lost, dropped, reused = list(ids), [], [], 0
    for one, rows in _several(ids).items():
        jobs = _jobs(_by_submission(rows, columns), columns)
        for number, runs in enumerate(jobs, start=1):
            before = np.array(runs[:-1], np.int64)
            ran = columns["run_s"][before] > 0
            lost += before[ran].tolist()
            dropped += before[~ran].tolist()
            for row in runs if number < len(jobs) else ():
                named[row] = f"{one}#{number}"
        reused += len(jobs) - 1
    is_lost, is_kept = np.zeros(len(ids), np.bool_), np.ones(len(ids), np.bool_)
    is_lost[lost], is_kept[dropped] = True, False
    return Records(np.flatnonzero(is_kept), is_lost, named, len(dropped), reused)


def _several(ids: Sequence[str]) -> dict[str, list[int]]:
    """Return the rows of each id that occurs more than once."""
    first: dict[str, int] = {}
    found: dict[str, list[int]] = {}
    for row, one in enumerate(ids):
        if first.setdefault(one, row) != row:
            found.setdefault(one, [first[one]]).append(row)
    return found


def _by_submission(rows: Sequence[int], columns: ArrayColumns) -> list[int]:
    """Sort rows by the time of submission; an unknown one comes first."""
    submit = np.nan_to_num(columns["submit_s"][list(rows)], nan=-np.inf)
    return [rows[place] for place in np.argsort(submit, kind="stable").tolist()]


def _jobs(rows: Sequence[int], columns: ArrayColumns) -> list[list[int]]:
    """Divide the records of one id, in order of submission, into those of each job."""
    jobs = [[rows[0]]]
    for before, row in itertools.pairwise(rows):
        if _is_requeue(before, row, columns):
            jobs[-1].append(row)
        else:
            jobs.append([row])
    return jobs


def _is_requeue(before: int, row: int, columns: ArrayColumns) -> bool:
    for name in ("user", "name"):
        codes = columns[name][[before, row]]
        if (codes >= 0).all() and codes[0] != codes[1]:
            return False
    end, start, submit = (columns[name][before] for name in ("end_s", "start_s", "submit_s"))
    ended = next((time for time in (end, start, submit) if not np.isnan(time)), np.nan)
    return not columns["submit_s"][row] - ended > _SOON_S
