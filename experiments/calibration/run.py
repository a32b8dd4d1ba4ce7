"""Stock Slurm's twin on public histories: simulated waits and JCTs against the recorded ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from calibration.histories import HISTORIES, WITHOUT_STARTS, PublicHistory
from common import Result, Table, main, shared

from adlro.config.files import adjusted, scenario_of
from adlro.errors import ConfigError
from adlro.evaluate.calibration import CLOSE_PCT, TWIN, Calibration, Means, Twin
from adlro.evaluate.compare import compare
from adlro.evaluate.recorded import absence
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.sim import simulator
from adlro.sim.simulator import RunResult
from adlro.workloads import history_file
from adlro.workloads.formats.registry import read
from adlro.workloads.recorded import times
from adlro.workloads.replay import windows
from adlro.workloads.setting import Setting, prepare
from adlro.workloads.workload import Workload

FOLDER = Path(__file__).parent
POLICIES = (TWIN, "easy-backfill")
JOBS, MOST = 3_000, 4  # of a window; windows of a history
MEASURE = "after 50 %"  # a window begins with an empty cluster
QUICK = ("Eagle", "HPC2N")
HEAD = (
    "history", "load", "windows", "jobs measured", "wait s, recorded", "simulated", "error",
    "JCT s, recorded", "simulated", "error", "rank correlation of waits", "verdict",
)  # fmt: skip
NOTE = (
    f"*Error*: simulated against recorded mean. *Verdict*: that of `adlro trace calibrate`, the "
    f"larger of both errors, where a difference of waits below 1 % of the mean JCT does not count; "
    f"within {CLOSE_PCT:g} % is close. SDSC SP2 has no record: its waits are those of another "
    "simulator."
)


class Played(NamedTuple):
    """A history's windows, played under each policy."""

    setting: Setting
    windows: int
    found: dict[str, Calibration]  # by policy


def setting_of(history: PublicHistory, folder: Path) -> Setting:
    """Return the history on its cluster at the recorded pace; few jobs make one window."""
    tables = {
        "jobs": 1, "load": 1.0, "estimates": "request", "measure": MEASURE,
        "placement": "in-order",
        "cluster": {"name": history.name, "nodes": history.nodes(folder)},
        "history": {
            "file": str((folder / history.file).resolve()), "unfit": "drop", **history.recorded,
        },
    }  # fmt: skip
    wanted = scenario_of(tables, Path(f"{history.name}.toml"))
    assert wanted.history is not None
    read_in = history_file.history_of(wanted.history)
    users, accounts = history_file.users_of(read_in), history_file.accounts_of(read_in)
    tried = prepare(adjusted(wanted, users=users, accounts=accounts))
    assert tried.played is not None
    count, load = len(tried.played.jobs), tried.played.rate / tried.capacity_per_s
    jobs = JOBS if count >= 2 * JOBS else count
    return prepare(adjusted(tried.scenario, jobs=jobs, load=load))


def seeds_of(setting: Setting) -> range:
    """Return the seeds of at most MOST windows, spread over the history."""
    assert setting.played is not None
    count = windows(setting.played, setting.scenario.jobs)
    return range(0, count, max(1, count // MOST))[:MOST]


def play(history: PublicHistory, folder: Path) -> Played:
    """Play a history under each policy, and compare the runs with the record.

    Raises:
        ConfigError: the history has nothing to compare with.
    """
    sys.stderr.write(f"{history.name}\n")
    setting = setting_of(history, folder)
    if absence(setting):
        raise ConfigError(f"{history.file}: cannot be calibrated: {absence(setting)}")
    policies = [registry.load(name, setting) for name in POLICIES]
    simulator.warm_up(policies)
    twins = {name: Twin(setting, name) for name in POLICIES}
    seeds = seeds_of(setting)

    def watch(policy: Policy, seed: int, workload: Workload, result: RunResult) -> None:
        twins[policy.name].watch(policy, seed, workload, result)

    compare(setting, policies, seeds, watch=watch)
    found = {}
    for name, twin in twins.items():
        one = twin.calibration(seeds)
        if one is None:
            raise ConfigError(f"{history.file}: no measured job has a recorded start")
        found[name] = one
    return Played(setting, len(seeds), found)


def _error(means: Means) -> str:
    change = means.difference_pct
    if change is None:
        return "-"
    return f"{change:+,.1f} %" if abs(change) < 1000 else f"{change:+,.0f} %"


def _cells(means: Means) -> list[str]:
    return [f"{means.recorded:,.0f}", f"{means.simulated:,.0f}", _error(means)]


def verdict(found: Calibration) -> str:
    """Return whether the simulation reproduces the record, and within which share."""
    if found.within_pct is None:
        return "unknown"
    size = f"{found.within_pct:,.2g}" if found.within_pct < 10 else f"{found.within_pct:,.0f}"
    return f"within {size} %" if found.is_close else f"**{size} % off**"


def line(name: str, played: Played, policy: str) -> list[str]:
    """Return a history's row of the table of a policy."""
    one = played.found[policy]
    rank = "all equal" if one.rank_correlation is None else f"{one.rank_correlation:.2f}"
    load = f"{played.setting.scenario.load:.2f}"
    counts = [f"{played.windows}", f"{one.jobs:,}"]
    return [name, load, *counts, *_cells(one.wait_s), *_cells(one.jct_s), rank, verdict(one)]


def _figures(all_played: dict[str, Played]) -> dict[str, dict[str, float]]:
    figures: dict[str, dict[str, float]] = {}
    for name, played in all_played.items():
        for policy, one in played.found.items():
            row = {
                "recorded_wait_s": one.wait_s.recorded, "wait_s": one.wait_s.simulated,
                "recorded_jct_s": one.jct_s.recorded, "jct_s": one.jct_s.simulated,
            }  # fmt: skip
            if one.rank_correlation is not None:
                row["rank_correlation"] = one.rank_correlation
            figures[f"{name}, {policy}"] = row
    return figures


def without_starts(folder: Path) -> list[list[str]]:
    """Return files, jobs and recorded starts of the histories that give no figure.

    Raises:
        ConfigError: one of them has starts, so that it belongs to HISTORIES.
    """
    lines = []
    for name, pattern in WITHOUT_STARTS.items():
        files = sorted(folder.glob(pattern))
        histories = [read(file) for file in files]
        starts = sum(int(times(one, np.arange(one.jobs)).is_known.sum()) for one in histories)
        if starts or not files:
            raise ConfigError(f"{folder / pattern}: {len(files)} files with {starts:,} starts")
        lines.append([name, str(len(files)), f"{sum(one.jobs for one in histories):,}"])
    return lines


def _more(all_played: dict[str, Played], unknown: Sequence[Sequence[str]]) -> list[Table]:
    cluster = {one.name: one.cluster for one in HISTORIES}
    reasons = [
        [name, cluster[name], "; ".join(played.found[TWIN].reasons) or "(close)"]
        for name, played in all_played.items()
    ]
    other = POLICIES[1]
    return [
        Table(
            f"The clusters, and the likely reasons that `adlro trace calibrate` gives for `{TWIN}`"
            ":", ("history", "cluster", "likely reasons"), reasons, True,
        ),
        Table(
            f"The same under `{other}`:", HEAD,
            [line(name, one, other) for name, one in all_played.items()], False,
        ),
        Table(
            "Histories without a recorded start, for which there is no figure:",
            ("history", "files", "jobs"), unknown, False,
        ),
    ]  # fmt: skip


def make(quick: bool) -> Result:
    """Make the tables; a quick run plays two histories."""
    folder = shared()
    chosen = [one for one in HISTORIES if not quick or one.name in QUICK]
    all_played = {one.name: play(one, folder) for one in chosen}
    unknown = [] if quick else without_starts(folder)
    table = [line(name, one, TWIN) for name, one in all_played.items()]
    details = {
        name: {policy: found.model_dump() for policy, found in one.found.items()}
        for name, one in all_played.items()
    }
    more = _more(all_played, unknown)
    return Result(HEAD, table, _figures(all_played), details, more=more, note=NOTE)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", FOLDER, make))
