"""The scenario that replays a history on a cluster, as tables of a scenario file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from adlro.config.files import adjusted
from adlro.config.scenario import Scenario
from adlro.model.cluster import Cluster
from adlro.model.history import History
from adlro.workloads import history_file
from adlro.workloads.setting import Setting, prepare

_QOS = {"LS": 1.0, "Guaranteed": 0.75, "Burstable": 0.5, "BE": 0.0}  # of openb
_SLURM = ("sacct", "sacct-json")  # formats of Slurm, which fills nodes in order


class Source(NamedTuple):
    """A history, the cluster it is replayed on, and settings of both."""

    file: Path  # of the history
    cluster: Cluster
    recorded: dict[str, Any]  # keys of config.history.Recorded; empty values are left out
    slurm: dict[str, Any] | None  # the table [slurm]; None = Slurm's defaults
    warm_up: float = 0.0  # share of the jobs of a window that are not measured


def tables_of(source: Source, history: History, folder: Path) -> dict[str, Any]:
    """Return the tables of the scenario file, whose number of jobs and load are still 1.

    folder: of the scenario file, to which the path of the history is relative.
    """
    beside = os.path.relpath(source.file.resolve(), folder.resolve())
    recorded: dict[str, Any] = {"file": beside}
    recorded |= {
        key: value for key, value in source.recorded.items() if value not in (None, "", {})
    }
    known = {word: _QOS[word] for word in history.tables["qos"] if word in _QOS}
    if known:
        recorded["priorities"] = known
    return {
        "about": f"jobs of {history.header.source} ({history.header.format})",
        "jobs": 1,
        "load": 1.0,
        "estimates": "memory",
        "measure": f"after {source.warm_up * 100:g} %" if source.warm_up else "all",
        "users": history_file.users_of(history),
        "accounts": list(history_file.accounts_of(history)),
        **({"placement": "in-order"} if history.header.format in _SLURM else {}),
        **({"slurm": source.slurm} if source.slurm else {}),
        "history": recorded,
        "cluster": source.cluster.model_dump(exclude_none=True),
    }


def recorded_load(setting: Setting) -> float:
    """Return the load at which jobs arrive as recorded; 0 = all came at once."""
    assert setting.played is not None
    return setting.played.rate / setting.capacity_per_s


def at_recorded_pace(scenario: Scenario, scale: float = 1.0) -> Setting:
    """Prepare a scenario with a history at `scale` times the recorded rate of arrivals.

    Raises:
        ConfigError: the history cannot be played on the cluster.
    """
    found = prepare(scenario)
    load = recorded_load(found) * scale
    return prepare(adjusted(scenario, load=load)) if load > 0 else found
