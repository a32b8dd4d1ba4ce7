"""Composes the scenario file that `adlro trace scenario` writes, from a history and a cluster."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from adlro.cli.options import slurm_table

if TYPE_CHECKING:
    from adlro.model.history import History

_WINDOW = 1000  # default jobs of a seed: long histories give many seeds


class ScenarioRequest(NamedTuple):
    """Arguments and options of `adlro trace scenario`."""

    file: Path
    out: Path
    cluster: str
    load_scale: float
    warm_up: float
    jobs: int | None
    slurm_config: Path | None
    recorded: dict[str, Any]  # keys of config.history.Recorded


class ScenarioFile(NamedTuple):
    """Text of the scenario file, figures about it, and notes on values that were filled in."""

    text: str
    figures: dict[str, Any]
    filled: tuple[str, ...]


def moment(text: str | None, history: History, option: str) -> float | None:
    """Parse a time of the history: seconds, a date, or a share of its span such as 70%."""
    import numpy as np

    from adlro.workloads.formats.table import stamps

    if text is None:
        return None
    submit = history.submit_s[~np.isnan(history.submit_s)]
    stamp = float(stamps([text])[0])
    origin = history.header.origin_unix_s
    try:
        if text.endswith("%") and len(submit):
            share = float(text[:-1]) / 100
            return float(submit.min() + share * (submit.max() - submit.min()))
        if not np.isnan(stamp) and origin is not None:
            return stamp - origin
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise click.BadParameter(
            f"{text!r} is no time: say seconds of the history, a share of it (70%)"
            + (" or a date (2026-01-31T23:59:58)" if origin is not None else ""),
            param_hint=option,
        )
    return value


def _check(request: ScenarioRequest) -> None:
    if not request.file.is_file():
        raise click.BadParameter(
            f"{str(request.file)!r} cannot be read a second time, as `compare` must; save it first",
            param_hint="FILE",
        )
    if not 0 < request.load_scale <= 1000:
        raise click.BadParameter("a number above 0 is needed", param_hint="--load-scale")
    if not 0 <= request.warm_up < 1:
        raise click.BadParameter("a share from 0 to below 1 is needed", param_hint="--warm-up")


def load_text(load: float) -> str:
    """Format a load with three decimals, or three digits if it is very small or large."""
    return f"{load:.3f}" if 0.001 <= load < 1000 else f"{load:.3g}"


def make(request: ScenarioRequest, history: History) -> ScenarioFile:
    """Compose the scenario file, and prepare its scenario once to find errors.

    Raises:
        ConfigError: the history cannot be played on the cluster.
    """
    from adlro.config.files import find_cluster, scenario_of
    from adlro.config.scenario import partitions_of
    from adlro.config.to_toml import to_toml
    from adlro.workloads import history_scenario
    from adlro.workloads.replay import windows
    from adlro.workloads.setting import prepare

    _check(request)
    cluster = find_cluster(request.cluster)
    slurm = slurm_table(request.slurm_config, partitions_of(cluster))
    source = history_scenario.Source(
        request.file, cluster, request.recorded, slurm, request.warm_up
    )
    tables = history_scenario.tables_of(source, history, request.out.parent)
    tried = prepare(scenario_of(tables, request.out))
    assert tried.played is not None
    count = len(tried.played.jobs)
    recorded_load = history_scenario.recorded_load(tried)
    usual = _WINDOW if count >= 2 * _WINDOW else count
    tables["jobs"] = usual if request.jobs is None else request.jobs
    if tables["jobs"] > count:
        raise click.BadParameter(
            f"{request.jobs:,} is more than the {count:,} that can be played", param_hint="--jobs"
        )
    if recorded_load > 0:
        tables["load"] = recorded_load * request.load_scale
        if not 0 < tables["load"] < math.inf:
            raise click.BadParameter(
                f"{request.load_scale:g} times the recorded load of {recorded_load:g} is no load",
                param_hint="--load-scale",
            )
    scenario_of(tables, request.out)  # refuses a number of jobs that cannot be
    figures = {
        "jobs": tables["jobs"],
        "playable_jobs": count,
        "windows": windows(tried.played, tables["jobs"]),
        "load": tables["load"],
        "recorded_load": recorded_load,
        "is_overloaded": tables["load"] > 1,
        "capacity_jobs_per_h": tried.capacity_per_s * 3600,
        "filled": list(tried.filled),
    }
    return ScenarioFile(to_toml(tables), figures, tried.filled)
