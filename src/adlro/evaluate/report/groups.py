"""Groups of jobs: by what a history records of them, by priority, gang size and job type.

Dimensions: J jobs, K groups of a grouping.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adlro.evaluate.report.labels import Labels
from adlro.model.history import History
from adlro.model.state import WHOLE, Counts, Records
from adlro.workloads import history_file
from adlro.workloads.setting import Setting

PRIORITY_CLASSES = ("low, below 1/3", "middle", "high, from 2/3")
_PRIORITY_EDGES = (1 / 3, 2 / 3)
GANG_SIZES = ("slice", "1 GPU", "2 GPUs", "3 or 4", "5 to 8", "9 or more")
_GANG_EDGES = (0, 1, 2, 4, 8)  # GPUs: upper bound of each group but the last; a slice counts as 0
_RECORDED = {"account": "account", "queue": "partition", "allowed": "GPU type asked for"}


class Grouping(NamedTuple):
    """A way to divide jobs into K groups."""

    key: str  # type, priority or gang, or the column of the history
    title: str  # "by account"
    names: tuple[str, ...]  # [K] as in the history or the scenario: `group_names` makes labels
    groups_of: Callable[[Records, Counts], Counts]  # JOB [J] and rows of the history [J] -> [J]


def _by_type(setting: Setting) -> Grouping:
    names = tuple(job_type.name for job_type in setting.scenario.types)
    return Grouping("type", "by job type", names, lambda jobs, _: jobs["type"].astype(np.int64))


def _priority(jobs: Records, _: Counts) -> Counts:
    found: Counts = np.digitize(jobs["priority"], _PRIORITY_EDGES)
    return found


def gang(jobs: Records, _: Counts) -> Counts:
    """Return the group [J] of each job by the GPUs that it asks for: see GANG_SIZES."""
    found: Counts = np.searchsorted(_GANG_EDGES, np.where(jobs["share"] < WHOLE, 0, jobs["gpus"]))
    return found


def _by_column(history: History, column: str) -> Grouping:
    """Return the grouping by a column of the history; the last group is of unknown values."""
    words, codes = history.tables[column], getattr(history, column)
    unknown = "any" if column == "allowed" else "unknown"

    def groups_of(_: Records, rows: Counts) -> Counts:
        own = codes[rows].astype(np.int64)
        return np.where(own < 0, len(words), own)

    return Grouping(column, f"by {_RECORDED[column]}", (*words, unknown), groups_of)


def groupings(setting: Setting) -> list[Grouping]:
    """Return the groupings of a scenario's jobs.

    With a history, job types count only if the scenario defines them: otherwise they are assumed.
    """
    recorded, found = setting.scenario.history, []
    if recorded is not None:
        history = history_file.history_of(recorded)
        found = [_by_column(history, column) for column in _RECORDED if history.tables[column]]
    if recorded is None or recorded.speeds == "own":
        found.append(_by_type(setting))
    return [
        *found,
        Grouping("priority", "by priority (0 to 1)", PRIORITY_CLASSES, _priority),
        Grouping("gang", "by GPUs asked for", GANG_SIZES, gang),
    ]


def group_names(grouping: Grouping, labels: Labels | None) -> list[str]:
    """Return the names [K] of the groups as a page shows them."""
    if labels is None or grouping.key not in ("account", "queue", "allowed"):
        return list(grouping.names)
    names = labels.words(grouping.key)
    return [*names[:-1], grouping.names[-1]]
