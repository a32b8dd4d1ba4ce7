"""The part of a run that a Gantt chart shows: its spans, events and downtime within limits."""

from __future__ import annotations

import html
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.evaluate.downtime import Downtime, Window, downtime, window
from adlro.evaluate.report.runs import RunDetails, run_details
from adlro.model.cluster import Layout
from adlro.model.state import SPEED, Floats, Records
from adlro.sim.simulator import RunResult
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

HOUR = 3600.0


class Limits(NamedTuple):
    """Largest numbers of GPUs and bars in one chart, and the length of its hover texts."""

    gpus: int = 256  # more rows are unreadable
    bars: int = 20_000  # more slow a browser down
    is_brief: bool = False  # shorter hover texts, for pages with several schedules


class Schedule(NamedTuple):
    """What a Gantt chart shows: a whole run, or the part of it that is within the limits."""

    layout: Layout
    types: tuple[str, ...]  # names, escaped
    jobs: Records
    outcome: Records
    first: float  # seconds: left end of the time axis
    until: float  # seconds: right end
    gpus: NDArray[np.intp]  # GPUs with a row, ascending
    spans: Records
    runs: RunDetails
    changes: Records  # EVENT of kind SPEED
    down: Downtime
    left_out: str  # what the limits exclude, in words
    is_brief: bool

    def hours(self, times: Floats) -> Floats:
        """Return times in hours since the left end of the time axis."""
        shown: Floats = (times - self.first) / HOUR
        return shown

    def rows(self, gpus: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
        """Return the row of the chart that shows each GPU."""
        return np.searchsorted(self.gpus, gpus)


def _chosen_gpus(layout: Layout, most: int) -> NDArray[np.intp]:
    """Return all GPUs, or if these are more than `most`, those of each pool's first nodes."""
    nodes = layout.nodes
    rank = np.arange(len(nodes)) - layout.pools["first_node"][nodes["pool"]]
    order = np.lexsort((nodes["pool"], rank))
    count = max(int((np.cumsum(nodes["gpus"][order]) <= most).sum()), 1)
    return np.flatnonzero(np.isin(layout.gpus["node"], order[:count]))


def _last_start_shown(starts: Floats, within: Window, most: int) -> float:
    """Return the end of the part of the window in which at most `most` intervals start.

    The part is never empty: its end is later than the start of the window.
    """
    if len(starts) <= most:
        return within.last
    return float(max(np.partition(starts, most)[most], np.nextafter(within.first, within.last)))


def select(setting: Setting, workload: Workload, result: RunResult, limits: Limits) -> Schedule:
    """Return the part of a run (made with `keep_spans`) that is within the limits."""
    layout, time = setting.layout, window(workload, result)
    gpus = _chosen_gpus(layout, limits.gpus)
    within = np.isin(result.spans["gpu"], gpus)
    spans = result.spans[within]
    runs = RunDetails._make(fact[within] for fact in run_details(result.spans, workload.jobs))
    changes = workload.events[workload.events["kind"] == SPEED]
    changes = changes[(changes["gpu"] < 0) | np.isin(changes["gpu"], gpus)]
    down = downtime(workload.events, time)
    seen = np.isin(down.node, layout.gpus["node"][gpus])
    down = Downtime._make(column[seen] for column in down)
    starts = (spans["start"], changes["time"], down.start)
    until = min(_last_start_shown(own, time, limits.bars) for own in starts)
    early = spans["start"] < until if until < time.last else np.ones(len(spans), np.bool_)
    known = down.start < until
    notes = []
    if len(gpus) < len(layout.gpus):
        notes.append(f"{len(layout.gpus) - len(gpus):,} of {len(layout.gpus):,} GPUs")
    if until < time.last:
        hours = (until - time.first) / HOUR, time.length / HOUR
        notes.append(f"what began after {hours[0]:,.2f} of {hours[1]:,.2f} h")
    return Schedule(
        layout=layout,
        types=tuple(html.escape(job_type.name) for job_type in setting.scenario.types),
        jobs=workload.jobs,
        outcome=result.outcome,
        first=time.first,
        until=until,
        gpus=gpus,
        spans=spans[early],
        runs=RunDetails._make(fact[early] for fact in runs),
        changes=changes[changes["time"] < until],
        down=Downtime._make(column[known] for column in down),
        left_out=" and ".join(notes),
        is_brief=limits.is_brief,
    )
