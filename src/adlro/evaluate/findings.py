"""What stands out in a cluster's record: idle GPUs, overloaded partitions, starved accounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from adlro.evaluate.durations import duration, durations
from adlro.evaluate.group_waits import GroupChange
from adlro.model.cluster import Cluster
from adlro.model.history import History
from adlro.model.slurm import Slurm, TresWeights
from adlro.model.state import WHOLE, Counts, Floats, Mask
from adlro.workloads import history_file, recorded
from adlro.workloads.setting import Setting

_IDLE = 0.1  # use of a GPU type below which it idles
_BUSY = 0.3  # use of all other GPUs from which on idle ones are remarkable
_WAITING_S = 300.0  # mean wait from which on idle GPUs and long waits are remarkable
_SHORTEST_S = 86_400.0  # time between submissions below which every partition looks overloaded
_OVERLOAD = 1.0  # GPU time asked of a partition / GPU time that it has
_STARVED = 2.0  # mean wait of an account / that of the others
_RELIEVED = 0.6  # its mean wait without the weights / with them
_FEWEST = 20  # jobs of an account that may stand out

Kind = Literal["idle-gpus", "overloaded-partition", "starved-account"]


class Finding(BaseModel):
    """Something that an operator should know of the cluster as it is run today."""

    model_config = ConfigDict(frozen=True)

    kind: Kind
    name: str  # of the GPU type, the partition or the account, as the operator writes it
    text: str  # a sentence


class _Played(NamedTuple):
    """Recorded run of each of K jobs that are replayed."""

    gpus: Floats  # [K]
    start_s: Floats  # [K]; nan = unknown
    run_s: Floats  # [K]
    wait_s: Floats  # [K]; nan = unknown, or a run that a requeued job lost
    submit_s: Floats  # [K]

    @property
    def gpu_s(self) -> Floats:
        """GPU-seconds [K] of each job."""
        return self.gpus * self.run_s


def _played(history: History, setting: Setting) -> tuple[Counts, _Played]:
    assert setting.played is not None
    rows, source = setting.played.rows, setting.scenario.history
    assert source is not None
    found = recorded.times(history, rows)
    gpus = history_file.gpus_of(history, source)[rows] / WHOLE
    run = np.nan_to_num(history.run_s[rows])
    wait = np.where(history.is_lost[rows], np.nan, found.wait_s)
    return rows, _Played(gpus, found.start_s, run, wait, history.submit_s[rows])


def idle_gpus(history: History, setting: Setting) -> list[Finding]:
    """Return the GPU types that are hardly used while jobs wait for others, by the record."""
    source, cluster = setting.scenario.history, setting.scenario.cluster
    assert source is not None
    rows, jobs = _played(history, setting)
    known = ~np.isnan(jobs.start_s)
    wait = float(np.nanmean(jobs.wait_s)) if known.any() else 0.0
    if wait < _WAITING_S:
        return []
    span = float(np.max((jobs.start_s + jobs.run_s)[known]) - np.min(jobs.start_s[known]))
    models, of_job = history_file.ran_on(history, source, cluster)
    own = of_job[rows]
    if span <= 0 or (own < 0).mean() > 0.05:  # where they ran is not recorded
        return []
    used = np.bincount(own[known & (own >= 0)], jobs.gpu_s[known & (own >= 0)], len(models))
    by_type = _by_type(cluster, {m.name: float(u) for m, u in zip(models, used, strict=True)})
    found = []
    for name, (gpus, seconds) in by_type.items():
        rest = [pair for other, pair in by_type.items() if other != name]
        use = seconds / (gpus * span)
        others = sum(s for _, s in rest) / (sum(g for g, _ in rest) * span) if rest else 0.0
        if use < _IDLE and others > _BUSY:
            text = (
                f"{gpus} {name} GPUs stand idle: {100 * use:.1f} % in use, the others "
                f"{100 * others:.0f} %, while jobs wait {duration(wait)} on average"
            )
            found.append(Finding(kind="idle-gpus", name=name, text=text))
    return found


def _by_type(cluster: Cluster, used: dict[str, float]) -> dict[str, tuple[int, float]]:
    """Return GPUs and used GPU-seconds of each GPU type, as jobs ask for it."""
    found: dict[str, tuple[int, float]] = {}
    seen: set[tuple[str, str]] = set()
    for group in cluster.nodes:
        model = cluster.model_of(group.gpu).name
        name = group.gpu_type or model
        gpus, seconds = found.get(name, (0, 0.0))
        if (name, model) not in seen:
            seconds += used.get(model, 0.0)
            seen.add((name, model))
        found[name] = (gpus + group.gpus * group.count, seconds)
    return found


def overloaded_partitions(history: History, setting: Setting) -> list[Finding]:
    """Return the partitions whose jobs need more GPU time than their nodes have."""
    rows, jobs = _played(history, setting)
    span = float(np.ptp(jobs.submit_s))
    by = recorded.groupings(history, rows).get("partition")
    if by is None or span < _SHORTEST_S:
        return []
    layout, found = setting.layout, []
    for code in np.unique(by.codes[by.codes >= 0]).tolist():
        name, own = by.name(code), by.codes == code
        pools = [name in partitions for partitions in layout.pool_partitions]
        gpus = int(layout.pools["gpus"][pools].sum())
        if not gpus:
            continue
        load = float(jobs.gpu_s[own].sum()) / (gpus * span)
        if load > _OVERLOAD:
            text = (
                f"partition {name} is overloaded: its jobs need {load:.2f} times the GPU-hours "
                f"that its {gpus} GPUs have from the first to the last submission"
                f"{_growth(jobs, own)}"
            )
            found.append(Finding(kind="overloaded-partition", name=name, text=text))
    return found


def _growth(jobs: _Played, own: Mask) -> str:
    """Say how waits of a group grew from the first to the last third of its jobs."""
    waits = jobs.wait_s[own]
    waits = waits[~np.isnan(waits)]
    third = len(waits) // 3
    if third == 0:
        return ""
    first, last = float(waits[:third].mean()), float(waits[-third:].mean())
    if last < first + _WAITING_S:
        return ""
    return f"; mean waits went from {' to '.join(durations(first, last))}"


def without_weights(slurm: Slurm) -> Slurm:
    """Return a configuration that orders jobs by age alone."""
    none = dict.fromkeys(
        ("weight_age", "weight_fairshare", "weight_job_size", "weight_partition", "weight_qos"), 0.0
    )
    flat = {"weight_tres": TresWeights(), "partition_tiers": {}}
    return slurm.model_copy(update={**none, **flat})


def starved_accounts(changes: Sequence[GroupChange]) -> list[Finding]:
    """Return the accounts that wait long because of the priority weights.

    changes: of waits if the weights of Slurm's configuration are taken away (`without_weights`).
    """
    accounts = [one for one in changes if one.grouping == "account"]
    found = []
    for one in accounts:
        others = [other for other in accounts if other.name != one.name]
        jobs = sum(other.jobs for other in others)
        if one.jobs < _FEWEST or not jobs:
            continue
        rest = sum(other.before_s * other.jobs for other in others) / jobs
        if one.before_s < _WAITING_S:
            continue
        if one.before_s > _STARVED * rest and one.after_s < _RELIEVED * one.before_s:
            own, theirs, relieved = durations(one.before_s, rest, one.after_s)
            text = (
                f"account {one.name} is starved by the priority weights: its jobs wait {own} on "
                f"average, others {theirs}; in the order of submission it would be {relieved}"
            )
            found.append(Finding(kind="starved-account", name=one.name, text=text))
    return found
