"""A trace in two halves: arrivals are scaled on the first, policies are evaluated on the second."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adlro.config.files import adjusted, scenario_of
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.workloads import history_file
from adlro.workloads.setting import Setting, prepare

LOAD = 0.9  # load of the first half after scaling
SPEEDS = ("none", "measured-mix", "gavel-types")
ESTIMATES = ("oracle", "memory", "request")
THIRDS = 3  # every third window of the second half is for tuning, the others are for claims
_STEP_S = 300.0  # requested times are multiples of this


class Trace(NamedTuple):
    """A part of a trace file and the cluster it is replayed on."""

    name: str
    file: str  # in the folder of shared data
    begin_s: float  # earlier submissions are rare and left out
    split_s: float  # start of the second half
    window: int  # jobs per seed
    nodes: Mapping[str, tuple[int, int, int, int]]  # model -> nodes, GPUs, cores and GB of each
    about: str  # origin of the cluster

    @property
    def gpus(self) -> int:
        """Number of GPUs of the cluster."""
        return sum(count * gpus for count, gpus, _, _ in self.nodes.values())


class Fitted(NamedTuple):
    """Everything that is derived from the first half."""

    setting: Setting  # the context of the policies
    stretch: float  # factor on inter-arrival times that gives LOAD on the first half
    requested_s: float  # requested time of jobs without one


def _tables(trace: Trace, file: Path, recorded: dict[str, Any]) -> dict[str, Any]:
    groups = [
        {"name": model, "count": count, "gpu": model, "gpus": gpus, "cores": c, "memory_gb": gb}
        for model, (count, gpus, c, gb) in trace.nodes.items()
    ]
    return {
        "about": f"jobs of {trace.file}",
        "jobs": trace.window,
        "load": 1.0,
        "estimates": "oracle",
        "cluster": {"name": trace.name, "nodes": groups},
        "history": {"file": str(file.resolve()), "unfit": "drop", **recorded},
    }


def _scenario(trace: Trace, file: Path, recorded: dict[str, Any]) -> Scenario:
    tables = _tables(trace, file, recorded)
    wanted = scenario_of(tables, Path(f"{trace.name}.toml"))
    assert wanted.history is not None
    history = history_file.history_of(wanted.history)
    names = {"users": history_file.users_of(history), "accounts": history_file.accounts_of(history)}
    return adjusted(wanted, **names)


def _recorded_load(setting: Setting) -> float:
    assert setting.played is not None
    return setting.played.rate / setting.capacity_per_s


def _longest_s(trace: Trace, scenario: Scenario) -> float:
    """Longest run time of the first half in seconds, rounded up."""
    assert scenario.history is not None
    history = history_file.history_of(scenario.history)
    inside = (history.submit_s >= trace.begin_s) & (history.submit_s < trace.split_s)
    longest = float(np.nanmax(history.run_s[inside]))
    return float(np.ceil(longest / _STEP_S) * _STEP_S)


def fitted(trace: Trace, file: Path, speeds: str) -> Fitted:
    """Derive the stretch of arrivals, the requested time and the setting from the first half."""
    recorded = {"speeds": speeds, "from_s": trace.begin_s, "to_s": trace.split_s}
    plain = _scenario(trace, file, recorded)
    recorded["requested_s"] = requested_s = _longest_s(trace, plain)
    first = prepare(_scenario(trace, file, recorded))
    load = _recorded_load(first)
    return Fitted(prepare(adjusted(first.scenario, load=LOAD)), load / LOAD, requested_s)


def measured(
    trace: Trace, file: Path, speeds: str, fit: Fitted, estimates: str = "oracle"
) -> Setting:
    """Return the second half with its arrivals stretched by the first half's factor.

    Args:
        trace: the trace and its cluster.
        file: the trace file.
        speeds: the assumption about speeds, one of SPEEDS.
        fit: derived from the first half.
        estimates: what policies see, one of ESTIMATES.

    Raises:
        ConfigError: it has fewer than two windows.
    """
    recorded = {"speeds": speeds, "from_s": trace.split_s, "requested_s": fit.requested_s}
    second = prepare(_scenario(trace, file, recorded))
    if windows(second) < 2:
        raise ConfigError(f"{file}: fewer than two windows of {trace.window:,} jobs after the half")
    load = _recorded_load(second) / fit.stretch
    return prepare(adjusted(second.scenario, load=load, estimates=estimates))


def windows(setting: Setting) -> int:
    """Number of disjoint windows, which are the seeds from 0 on."""
    assert setting.played is not None
    return len(setting.played.jobs) // setting.scenario.jobs


def is_for_tuning(window: int) -> bool:
    """Whether a window may be looked at while policies and their parameters are chosen."""
    return window % THIRDS == 0
