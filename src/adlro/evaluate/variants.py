"""Variants of one history: the same recorded jobs under other assumptions or on other clusters."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import NamedTuple

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
WARM_UP = 0.5  # share of the jobs of a window that lead in: it begins with idle GPUs
_MOST_WINDOWS = 12
_SMALLEST, _LARGEST = 80, 3_000  # jobs of a window
_FEWEST = 4  # windows, below which nothing can be said
_MOST_LEFT_OUT = 0.5  # share of the jobs that may not fit the cluster


class Variant(NamedTuple):
    """What one variant assumes; None = as the history's own cluster and configuration are."""

    speeds: str = "none"  # of SPEEDS
    estimates: str = "request"
    cluster: Cluster | None = None
    slurm: Slurm | None = None


class Windows(NamedTuple):
    """Windows of consecutive jobs; the first half of each leads in, the other is measured.

    A window begins where the measured half of the one before begins, so no job is measured twice.
    """

    jobs: int  # measured in each window; as many lead in
    seeds: range  # numbers of the windows


def windows_of(jobs: int, fewest: int = _FEWEST) -> Windows | None:
    """Divide jobs into up to 12 windows, spread over all of them; None = too few for `fewest`.

    fewest: windows that are needed.
    """
    count = min(_MOST_WINDOWS, jobs // _SMALLEST - 1)
    if count < fewest:
        return None
    size = min(jobs // (count + 1), _LARGEST)
    there = jobs // size - 1
    return Windows(size, range(0, there - there % count, there // count))


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
        return history_scenario.at_recorded_pace(scenario_of(tables, self._path))


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
        stride=windows.jobs,
        holds=played.holds._replace(begin=played.holds.begin - begin),
    )
    load = part.rate / setting.capacity_per_s * grow
    scenario = adjusted(setting.scenario, jobs=2 * windows.jobs, load=load if load > 0 else None)
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


def refuse_short(variants: Variants, jobs: int, fewest: int = _FEWEST) -> TraceError:
    """Return the error for a history with too few jobs."""
    submit = variants.history.submit_s
    known = submit[~np.isnan(submit)]
    days = float(np.ptp(known)) / 86_400 if len(known) else 0.0
    return TraceError(
        f"{variants.file}: {jobs:,} GPU jobs in {days:.1f} days to measure on are too few for "
        f"{fewest} windows of {_SMALLEST} jobs and a lead-in; bring a longer history (some weeks)"
    )
