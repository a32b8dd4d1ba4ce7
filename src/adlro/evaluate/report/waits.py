"""Tables of waits, for a history: by group of jobs, and the jobs that wait longest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adlro.evaluate.calibration import TWIN
from adlro.evaluate.comparison import Comparison
from adlro.evaluate.recorded import times_of
from adlro.evaluate.report import formatting, html_table
from adlro.evaluate.report.collect import GroupTotals, JobStatistics, LongWait
from adlro.evaluate.report.formatting import TimeUnit
from adlro.evaluate.report.frame import details
from adlro.evaluate.report.groups import Grouping, group_names
from adlro.evaluate.report.html_table import NOTHING, Cell, Column
from adlro.evaluate.report.labels import JobLabel, Labels
from adlro.evaluate.rows import RECORDED
from adlro.model.state import WHOLE, Counts, Floats
from adlro.workloads.generate import jobs_of
from adlro.workloads.setting import Setting

_MOST_GROUPS = 12  # rows of a table; the rest is one row
_MOST_POLICIES = 6  # columns of a table


class GroupWaits(NamedTuple):
    """Totals of the same jobs by group, as recorded or under a policy."""

    heading: str
    totals: GroupTotals


def shown_policies(result: Comparison) -> list[str]:
    """Return the policies that tables of waits show: the best, and always the twin of Slurm."""
    ranked = [row.name for row in formatting.ranked(result)]
    kept = ranked[:_MOST_POLICIES]
    if TWIN in ranked[_MOST_POLICIES:]:
        kept = [*kept[:-1], TWIN]
    return kept


def group_table(
    way: Grouping, columns: Sequence[GroupWaits], jobs: Counts, labels: Labels | None
) -> str:
    """Return an HTML table of mean waits by group, or "" if all jobs are in one group.

    Args:
        way: the grouping, of K groups.
        columns: whose waits are shown.
        jobs: [K] numbers of jobs; the largest groups are shown first.
        labels: of the history, if any.
    """
    order: Counts = np.argsort(-jobs, kind="stable")[: int((jobs > 0).sum())]
    if len(order) < 2:
        return ""
    parts, names = [order[k : k + 1] for k in range(len(order))], group_names(way, labels)
    rows = [names[k] for k in order.tolist()]
    if len(order) > _MOST_GROUPS:
        parts = [*parts[: _MOST_GROUPS - 1], order[_MOST_GROUPS - 1 :]]
        rows = [*rows[: _MOST_GROUPS - 1], f"{len(parts[-1]):,} others"]
    means = [_mean_waits(own.totals, parts) for own in columns]
    known = np.concatenate(means)
    known = known[np.isfinite(known)]
    unit = formatting.human_unit(float(known.max()) if len(known) else 0.0)
    counts = [int(jobs[part].sum()) for part in parts]
    made = [
        Column("jobs", "measured, over all seeds", [Cell(f"{n:,}", n) for n in counts]),
        *(
            Column(
                f"{own.heading}, {unit.unit}", "mean wait until the first start", _cells(m, unit)
            )
            for own, m in zip(columns, means, strict=True)
        ),
    ]
    title = way.title.removeprefix("by ").removesuffix(" (0 to 1)")
    return html_table.render(title, [html_table.Row(name) for name in rows], made)


def _mean_waits(totals: GroupTotals, parts: Sequence[Counts]) -> Floats:
    """Return the mean wait of each part, which is a set of groups; NaN = it has no jobs."""
    means = []
    for part in parts:
        jobs = int(totals.jobs[part].sum())
        means.append(float(totals.wait_s[part].sum()) / jobs if jobs else np.nan)
    return np.array(means)


def _cells(seconds: Floats, unit: TimeUnit) -> list[Cell]:
    return [
        Cell(formatting.in_unit(value, unit), value) if np.isfinite(value) else NOTHING
        for value in seconds.tolist()
    ]


class _Job(NamedTuple):
    """A job that waits long, with its label and what was recorded of it."""

    label: JobLabel
    size: float  # GPUs
    wait_s: float
    run_s: float
    recorded_s: float  # wait; nan = unknown


def _jobs(setting: Setting, labels: Labels, longest: Sequence[LongWait]) -> list[_Job]:
    found = []
    for one in longest:
        played = jobs_of(setting, one.seed)
        times = times_of(setting, played)
        recorded = float("nan") if times is None else float(times.wait_s[one.job])
        label = labels.job(int(played.rows[one.job]))
        size = one.gpus * one.share / WHOLE
        found.append(_Job(label, size, one.wait_s, one.run_s, recorded))
    return found


def _job_table(jobs: Sequence[_Job], unit: TimeUnit, heading: str) -> str:
    """Return the HTML table of jobs that wait long; columns without any word are left out."""
    texts = {
        "name": [job.label.name for job in jobs],
        "user": [job.label.user for job in jobs],
        "account": [job.label.account for job in jobs],
        "partition": [job.label.partition for job in jobs],
    }
    waits = np.array([job.wait_s for job in jobs])
    columns = [html_table.words(key, own) for key, own in texts.items() if any(own)]
    columns.append(Column("GPUs", "asked for", [Cell(f"{job.size:g}", job.size) for job in jobs]))
    about = "until the first start"
    columns.append(Column(f"wait {heading}, {unit.unit}", about, _cells(waits, unit)))
    recorded = np.array([job.recorded_s for job in jobs])
    if heading != RECORDED and np.isfinite(recorded).any():
        columns.append(Column(f"wait recorded, {unit.unit}", about, _cells(recorded, unit)))
    run = np.array([job.run_s for job in jobs])
    columns.append(Column(f"run, {unit.unit}", "from first start to end", _cells(run, unit)))
    return html_table.render("job", [html_table.Row(job.label.id) for job in jobs], columns)


def longest_waits(
    setting: Setting,
    labels: Labels,
    statistics: dict[str, JobStatistics],
    names: Sequence[str],
) -> list[str]:
    """Return HTML tables of the jobs that wait longest, folded away but for the first.

    names: policies, or "recorded", in the order of the tables.
    """
    waits = [one.wait_s for name in names for one in statistics[name].longest]
    unit, parts = formatting.human_unit(max(waits, default=0.0)), []
    for i, name in enumerate(names):
        jobs = _jobs(setting, labels, statistics[name].longest)
        heading = RECORDED if name == RECORDED else f"under {name}"
        made = _job_table(jobs, unit, heading)
        title = "As recorded" if name == RECORDED else f"Under {name}"
        parts.append(details(title, made, is_open=i == 0))
    return parts
