"""Variants of one history: the same recorded jobs under other assumptions or on other clusters."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adlro.config.files import adjusted, scenario_of
from adlro.errors import ConfigError, TraceError
from adlro.model.cluster import Cluster
from adlro.model.history import History
from adlro.model.slurm import Slurm
from adlro.model.state import Counts
from adlro.workloads import history_file, history_scenario
from adlro.workloads.formats.gather import ReadOptions
from adlro.workloads.formats.registry import read
from adlro.workloads.setting import Setting

SPEEDS = ("none", "measured-mix", "gavel-types")  # assumptions on speeds, which no history states
SPEED_WORDS = {
    "none": "all GPUs alike",
    "measured-mix": "measured mix",
    "gavel-types": "Gavel's types",
}
_LEAD_IN = 0.25  # share of the jobs of a run that are not measured: it begins with idle GPUs
_MOST_WINDOWS = 12
_SMALLEST, _LARGEST = 60, 3_000  # jobs of a window
_RUNS = 4  # in which windows of a history are played that is too long to be played in one
_FEWEST = 4  # windows, below which nothing can be said
_MOST_LEFT_OUT = 0.5  # share of the jobs that may not fit the cluster


class Variant(NamedTuple):
    """What one variant assumes; None = as the history's own cluster and configuration are."""

    speeds: str = "none"  # of SPEEDS
    estimates: str = "request"
    cluster: Cluster | None = None
    slurm: Slurm | None = None


class Windows(NamedTuple):
    """Windows of consecutive jobs that are measured, several of them in one run after a lead-in."""

    jobs: int  # of a window
    total: int  # number of windows, over all runs
    lead_in: int  # jobs at the begin of a run that are not measured
    stride: int  # jobs from the begin of a run to that of the next
    seeds: range  # numbers of the runs

    @property
    def per_run(self) -> int:
        """Windows that one run measures."""
        return self.total // len(self.seeds)

    @property
    def run_jobs(self) -> int:
        """Jobs that one run plays."""
        return self.lead_in + self.jobs * self.per_run


def windows_of(jobs: int, fewest: int = _FEWEST, largest: int = _LARGEST) -> Windows | None:
    """Divide jobs into a lead-in and up to 12 windows; None = too few for `fewest` windows.

    One run plays all jobs, as the record has them. Where windows would be larger than `largest`
    (with 3,000: of more than 48,000 jobs), only some are played: 12 windows of that size in 4 runs,
    spread over all jobs.
    """
    lead_in = round(_LEAD_IN * jobs)
    count = min(_MOST_WINDOWS, (jobs - lead_in) // _SMALLEST)
    if count < fewest:
        return None
    size = (jobs - lead_in) // count
    if size <= largest:
        return Windows(size, count, jobs - size * count, 0, range(1))
    each = (count // _RUNS + 1) * largest
    return Windows(largest, count, largest, (jobs - each) // (_RUNS - 1), range(_RUNS))


class Variants:
    """Settings of a history's jobs under other assumptions, at the recorded rate of arrivals."""

    def __init__(self, source: history_scenario.Source) -> None:
        """Read the history.

        Raises:
            TraceError: the history cannot be read.
        """
        recorded = source.recorded
        options = ReadOptions(
            bool(recorded.get("lenient", False)),
            str(recorded.get("format", "")),
            tuple(recorded.get("columns", {}).items()),
        )
        self.source = source
        self.history: History = read(source.file, options)
        self._path = source.file.with_suffix(".toml")  # only its name and folder count
        self._tables = history_scenario.tables_of(source, self.history, self._path.parent)

    @property
    def file(self) -> Path:
        """File of the history."""
        return self.source.file

    def setting(self, variant: Variant) -> Setting:
        """Prepare the whole history under a variant, at the recorded rate of arrivals.

        Raises:
            ConfigError: the history cannot be played on the variant's cluster.
        """
        tables = copy.deepcopy(self._tables)
        tables["estimates"] = variant.estimates
        tables["history"]["speeds"] = variant.speeds
        if variant.cluster is not None:
            tables["cluster"] = variant.cluster.model_dump(exclude_none=True)
        if variant.slurm is not None:
            tables["slurm"] = variant.slurm.model_dump()
        if variant.cluster is not None and "slurm" in tables:
            tables["slurm"] = _within(tables["slurm"], variant.cluster)
        return history_scenario.at_recorded_pace(scenario_of(tables, self._path))


def _within(slurm: dict[str, Any], cluster: Cluster) -> dict[str, Any]:
    """Return the table [slurm] without settings of partitions that the cluster does not have."""
    there, known = {name for group in cluster.nodes for name in group.partitions}, dict(slurm)
    for key in known.keys() & {"partition_factors", "partition_tiers"}:
        known[key] = {name: value for name, value in slurm[key].items() if name in there}
    return known


def rows_of(setting: Setting) -> Counts:
    """Return the rows of the history that a setting plays, in the order of arrival."""
    assert setting.played is not None
    return setting.played.rows


def restricted(setting: Setting, rows: Counts, windows: Windows, grow: float = 1.0) -> Setting:
    """Return a setting that plays only these rows of its history, in windows, at the same pace.

    Args:
        setting: of a whole history.
        rows: in the order of arrival; all of them are played by the setting.
        windows: of these rows.
        grow: factor on the rate of arrivals.
    """
    played = setting.played
    assert played is not None
    some = np.flatnonzero(np.isin(played.rows, rows))
    jobs = played.jobs[some].copy()
    begin = float(jobs["arrival"][0])
    jobs["arrival"] -= begin
    part = played._replace(
        jobs=jobs,
        sizes=played.sizes[some],
        allowed=played.allowed[some],
        rows=played.rows[some],
        est=played.est[some] if len(played.est) else played.est,
        stride=windows.stride,
        lost=played.lost[some],
        holds=played.holds._replace(begin=played.holds.begin - begin),
    )
    load = part.rate / setting.capacity_per_s * grow
    scenario = adjusted(
        setting.scenario,
        jobs=windows.run_jobs,
        load=load if load > 0 else None,
        measure={"warm_up": windows.lead_in / windows.run_jobs},
    )
    return setting._replace(scenario=scenario, played=part)


def check_fit(variants: Variants, setting: Setting) -> None:
    """Refuse a cluster that most jobs of the history cannot use.

    Raises:
        ConfigError: more than half of the history's GPU jobs are left out.
    """
    recorded = setting.scenario.history
    assert recorded is not None
    there = len(history_file.window(variants.history, recorded)[0])
    played = len(rows_of(setting))
    if there - played > _MOST_LEFT_OUT * there:
        raise ConfigError(
            f"{variants.file}: {there - played:,} of {there:,} GPU jobs fit no pool of the cluster "
            f"{setting.scenario.cluster.name!r} that they may use; is it the cluster of another "
            "history?"
        )


def needed(fewest: int = _FEWEST) -> int:
    """Return the number of jobs from which on there are `fewest` windows."""
    return math.ceil(fewest * _SMALLEST / (1 - _LEAD_IN))


def refuse_short(variants: Variants, jobs: int, fewest: int = _FEWEST) -> TraceError:
    """Return the error for a history with too few jobs."""
    submit = variants.history.submit_s
    known = submit[~np.isnan(submit)]
    days = float(np.ptp(known)) / 86_400 if len(known) else 0.0
    return TraceError(
        f"{variants.file}: {jobs:,} GPU jobs in {days:.1f} days are too few: a lead-in and "
        f"{fewest} windows of {_SMALLEST} jobs take {needed(fewest):,}; bring a longer history"
    )
