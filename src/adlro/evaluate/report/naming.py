"""How a Gantt chart names the jobs and nodes of a run, and the groups by which it colours bars."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import NamedTuple

import numpy as np

from adlro.evaluate.durations import duration
from adlro.evaluate.report import groups
from adlro.evaluate.report.labels import Labels, labels_of
from adlro.model.state import Counts, Records
from adlro.workloads.generate import jobs_of
from adlro.workloads.setting import Setting

_CHOICES = {"account": "account", "queue": "partition", "user": "user"}  # by column of the history
_MOST_COLOURS = 8


class Colouring(NamedTuple):
    """Groups of J jobs, each in a colour of its own."""

    choice: str  # what the groups are, for the select box
    names: tuple[str, ...]  # [K] escaped
    of_job: Counts  # [J] group of each job
    has_others: bool = False  # the last group is all the rest, in grey


class JobName(NamedTuple):
    """What the hover text of a job's bars begins with, escaped."""

    title: str
    facts: str


class Naming(NamedTuple):
    """Names of the jobs and nodes of a run, and the groups by which a chart can colour bars."""

    colourings: tuple[Colouring, ...]  # one or more; the first is shown at the beginning
    nodes: list[str]  # escaped
    job: Callable[[int], JobName]  # of a row of the run's job table
    duration: Callable[[float], str]  # of seconds
    is_recorded: bool  # the jobs are those of a history


def _plain(words: str) -> str:
    """Return text that plotly shows as it is; it knows no entities for quotation marks."""
    return escape(words, quote=False)


def naming_of(
    setting: Setting, jobs: Records, seed: int, *, labels: Labels | None = None
) -> Naming:
    """Return the naming of a seed's jobs: as their history does, or by type without a history.

    labels: of the history; None = with its own names.
    """
    labels = labels or labels_of(setting)
    if labels is None:
        return by_type(setting, jobs)
    return by_history(labels, jobs, jobs_of(setting, seed).rows)


def by_type(setting: Setting, jobs: Records) -> Naming:
    """Return the naming of generated jobs: by number, in the colours of their types."""
    types = tuple(escape(job_type.name) for job_type in setting.scenario.types)
    of_job = jobs["type"].astype(np.int64)
    return Naming(
        (Colouring("type", types, of_job),),
        [escape(name) for name in setting.layout.node_names],
        lambda j: JobName(f"job {j}", types[of_job[j]]),
        lambda seconds: f"{seconds:,.0f} s",
        is_recorded=False,
    )


def by_history(labels: Labels, jobs: Records, rows: Counts) -> Naming:
    """Return the naming of jobs as their history does, in the colours of accounts at first.

    Args:
        labels: of the history.
        jobs: [J] the run's jobs.
        rows: [J] their rows in the history.
    """

    def job(j: int) -> JobName:
        own = labels.job(int(rows[j]))
        named = (("account", own.account), ("partition", own.partition), ("user", own.user))
        facts = " · ".join(f"{what} {_plain(word)}" for what, word in named if word)
        return JobName(_plain(f"job {own.id} {own.name}".rstrip()), facts)

    history = labels.history
    ways = tuple(
        _colouring(choice, labels.words(column), getattr(history, column)[rows].astype(np.int64))
        for column, choice in _CHOICES.items()
        if history.tables[column]
    )
    gang = groups.gang(jobs, rows)
    sizes = _colouring("GPUs asked for", [*groups.GANG_SIZES, ""], gang)
    nodes = [_plain(name) for name in labels.nodes()]
    return Naming((*ways, sizes), nodes, job, duration, is_recorded=True)


def _colouring(choice: str, names: list[str], codes: Counts) -> Colouring:
    """Return groups by codes [J], of which -1 means the last name; small groups are merged."""
    codes = np.where(codes < 0, len(names) - 1, codes)
    count = np.bincount(codes, minlength=len(names))
    order: Counts = np.argsort(-count, kind="stable")[: int((count > 0).sum())]
    shown = order if len(order) <= _MOST_COLOURS else order[: _MOST_COLOURS - 1]
    place = np.full(len(names), len(shown))
    place[shown] = np.arange(len(shown))
    kept, rest = tuple(_plain(names[code]) for code in shown), len(order) - len(shown)
    if not rest:
        return Colouring(choice, kept, place[codes])
    return Colouring(choice, (*kept, f"{rest:,} others"), place[codes], has_others=True)
