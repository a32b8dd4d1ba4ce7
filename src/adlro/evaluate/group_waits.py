"""Mean waits of groups of jobs under two schedulers: who would wait longer, and who less.

Groups are accounts, partitions and gang sizes; windows are the unit of the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from adlro.evaluate.run_store import StoredRun
from adlro.evaluate.stats import Estimate, pooled_mean
from adlro.evaluate.variants import Windows
from adlro.model.history import History
from adlro.model.state import Counts, Floats
from adlro.workloads.generate import jobs_of
from adlro.workloads.recorded import GROUPINGS, groupings
from adlro.workloads.setting import Setting

SHOWN = ("account", "partition", "gang")  # of GROUPINGS: those by which people are told apart
assert set(SHOWN) <= set(GROUPINGS)
_SIZES = {  # sizes of gangs that are none
    "below 1": "jobs on a part of a GPU",
    "1": "single-GPU jobs",
    "unknown": "jobs of unknown size",
}


class GroupChange(BaseModel):
    """Mean waits in seconds of a group's jobs before and after a change of the scheduler."""

    model_config = ConfigDict(frozen=True)

    grouping: str  # one of SHOWN
    name: str
    jobs: int  # measured, over all windows
    before_s: float
    after_s: float  # mean over the assumptions
    change_s: Estimate  # after - before, mean over the assumptions
    longer_in: int  # number of assumptions under which the group waits longer
    assumptions: int

    @property
    def label(self) -> str:
        """What the group is called in a sentence: "account vision", "gangs of 5 to 8 GPUs"."""
        if self.grouping != "gang":
            return f"{self.grouping} {self.name}"
        if self.name in _SIZES:
            return _SIZES[self.name]
        return f"gangs of {self.name.replace('above', 'more than')} GPUs"

    @property
    def is_longer(self) -> bool:
        """True if the group waits longer on average."""
        return self.change_s.mean > 0


class Compared(NamedTuple):
    """Runs of one setting, before and after a change of the scheduler."""

    setting: Setting
    before: Sequence[StoredRun]  # one for each seed
    after: Sequence[StoredRun]


def measured_rows(setting: Setting, windows: Windows) -> list[Counts]:
    """Return the rows of the history in each window [W], in the order of arrival."""
    runs = [jobs_of(setting, seed).rows for seed in windows.seeds]
    return _by_window(runs, windows)


def _by_window(runs: Sequence[NDArray[Any]], windows: Windows) -> list[NDArray[Any]]:
    """Cut the measured part of one array per run into windows [W]."""
    measured = [run[windows.lead_in :] for run in runs]
    return [part for run in measured for part in np.split(run, windows.per_run)]


class _Sums(NamedTuple):
    """Sums [W] by window over the jobs of one group."""

    jobs: Floats
    wait_s: Floats


def _sums(codes: Sequence[Counts], waits: Sequence[Floats], code: int) -> _Sums:
    inside = [(own == code) & ~np.isnan(w) for own, w in zip(codes, waits, strict=True)]
    return _Sums(
        np.array([float(some.sum()) for some in inside]),
        np.array([float(w[some].sum()) for w, some in zip(waits, inside, strict=True)]),
    )


def wait_changes(
    history: History, compared: Sequence[Compared], windows: Windows
) -> list[GroupChange]:
    """Return how the mean wait of every group changes, those with most additional waiting first.

    Args:
        history: of all settings.
        compared: one for each assumption; all play the same jobs.
        windows: W of them.
    """
    grouped = [groupings(history, own) for own in measured_rows(compared[0].setting, windows)]
    waits = [
        tuple(_by_window([run.wait_s for run in runs], windows) for runs in (one.before, one.after))
        for one in compared
    ]
    changes = []
    for key in SHOWN:
        if not all(key in own for own in grouped):
            continue
        codes = [own[key].codes for own in grouped]
        for code in np.unique(np.concatenate(codes)).tolist():
            pairs = [tuple(_sums(codes, side, code) for side in both) for both in waits]
            if not pairs[0][0].jobs.any():  # lost runs only
                continue
            changes.append(_change(key, grouped[0][key].name(code), pairs))
    return sorted(changes, key=lambda one: -one.change_s.mean * one.jobs)


def _change(grouping: str, name: str, pairs: Sequence[tuple[_Sums, ...]]) -> GroupChange:
    """Return the change of one group; pairs: its sums before and after, by assumption."""
    counts = pairs[0][0].jobs
    before = np.mean([pair[0].wait_s for pair in pairs], axis=0)
    after = np.mean([pair[1].wait_s for pair in pairs], axis=0)
    return GroupChange(
        grouping=grouping,
        name=name,
        jobs=int(counts.sum()),
        before_s=float(before.sum() / counts.sum()),
        after_s=float(after.sum() / counts.sum()),
        change_s=pooled_mean(after - before, counts),
        longer_in=sum(pair[1].wait_s.sum() > pair[0].wait_s.sum() for pair in pairs),
        assumptions=len(pairs),
    )
