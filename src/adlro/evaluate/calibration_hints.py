"""Likely reasons why a simulation does not reproduce a cluster, each with what hints at it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from adlro.model.history import History
from adlro.model.state import WHOLE, Counts, Floats
from adlro.workloads import history_file
from adlro.workloads.generate import jobs_of
from adlro.workloads.recorded import times
from adlro.workloads.setting import Setting
from adlro.workloads.summary import OVERLOAD

_LONG_S = 60.0  # a job that waits longer has waited for something
_FEW = 0.02  # share of the jobs that is no hint yet
_SOME = 0.05  # share of the GPUs, or of the run times, that is no hint yet
_EMPTY = 0.5  # share of the GPUs in use up to which most jobs could start
_LEAD_IN = 0.2  # share of the jobs that are not measured, from which on an empty begin is no reason
_FULL = 0.9  # a busy cluster has had this share of its GPUs in use


class Pairs(NamedTuple):
    """Recorded and simulated seconds [K] of the same K jobs."""

    rows: Counts  # [K] in the history
    recorded_wait: Floats
    recorded_jct: Floats
    wait: Floats
    jct: Floats

    def take(self, members: Counts) -> Pairs:
        """Return the pairs with these indices."""
        return Pairs._make(column[members] for column in self)

    @property
    def waits_too_short(self) -> bool:
        """True if the simulated waits are shorter than the recorded ones, on average."""
        return float(self.wait.mean()) < float(self.recorded_wait.mean())


class _InUse:
    """GPUs in use over time, by the recorded starts and ends of all jobs of a history."""

    def __init__(self, history: History, thousandths: Floats) -> None:
        found = times(history, np.arange(history.rows))
        known = found.is_known & (thousandths > 0)
        gpus = thousandths[known] / WHOLE
        moments = np.concatenate((found.end_s[known], found.start_s[known]))
        change = np.concatenate((-gpus, gpus))
        order: Counts = np.lexsort((change > 0, moments))  # at one time: ends first
        self._moments = moments[order]
        self._level = np.concatenate(([0.0], np.cumsum(change[order])))

    @property
    def peak(self) -> float:
        """Most GPUs in use at once."""
        return float(self._level.max())

    def before(self, moments: Floats) -> Floats:
        """Return the GPUs in use just before these times."""
        level: Floats = self._level[np.searchsorted(self._moments, moments, side="left")]
        return level


def hints(setting: Setting, seeds: Sequence[int], pairs: Pairs) -> list[str]:
    """Return likely reasons why a simulation is off; one that says so if nothing hints at any."""
    found = [
        *_of_the_run(setting, pairs),
        *_of_use(setting, seeds, pairs),
        *_of_what_is_unknown(setting, pairs),
    ]
    return found or [
        "nothing in the file hints at why; it does not hold reservations, limits of QOS and "
        "associations, or jobs of others"
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.2g} %"


def _of_the_run(setting: Setting, pairs: Pairs) -> Iterator[str]:
    """Yield what the load and the simulated run times hint at."""
    scenario = setting.scenario
    if scenario.load > 1:
        yield f"overload, load {scenario.load:.3g}: {OVERLOAD}"
    true = float((pairs.recorded_jct - pairs.recorded_wait).mean())
    change = float((pairs.jct - pairs.wait).mean()) / true - 1 if true > 0 else 0.0
    if abs(change) > _SOME:
        yield (
            f"jobs run {_percent(abs(change))} {'longer' if change > 0 else 'shorter'} in the "
            "simulation than recorded: speeds of GPU models are assumed, or runs were recorded "
            "together with earlier ones"
        )
    at_once = pairs.recorded_wait[pairs.wait < 1e-3]
    delay = float(np.median(at_once)) if len(at_once) else 0.0
    if (
        not scenario.start_delay_s
        and delay <= _LONG_S
        and delay > _SOME * pairs.recorded_jct.mean()
    ):
        yield (
            f"jobs that start at once in the simulation had waited {delay:.2g} s (median): set "
            "start_delay_s and tick_s, the time Slurm needs to start a job"
        )


def _of_use(setting: Setting, seeds: Sequence[int], pairs: Pairs) -> Iterator[str]:
    """Yield what the recorded GPUs in use hint at."""
    recorded = setting.scenario.history
    assert recorded is not None
    history = history_file.history_of(recorded)
    in_use = _InUse(history, history_file.gpus_of(history, recorded))
    gpus = len(setting.layout.gpus)
    if in_use.peak > gpus * (1 + 1e-9):
        yield (
            f"up to {in_use.peak:,.0f} GPUs were in use at once, but the cluster has {gpus:,}: "
            "nodes are missing in its file"
        )
    if not pairs.waits_too_short:
        return
    begins = np.array([_begin(setting, history, seed) for seed in seeds])
    busy = float(in_use.before(begins).mean()) / gpus
    if busy > _SOME and setting.scenario.measure.warm_up < _LEAD_IN:
        yield (
            f"{_percent(busy)} of the GPUs were in use when the recorded windows began, but the "
            "simulation begins with an empty cluster: play longer windows (--jobs), or leave out a "
            "warm-up (measure = 'after 20 %')"
        )
    idle = _waited_beside_idle_gpus(history, in_use, gpus, pairs)
    if idle > _FEW * len(pairs.rows):
        yield (
            f"{idle:,} of {len(pairs.rows):,} jobs waited longer than {_LONG_S:g} s while at most "
            "half of the GPUs were in use, as far as the file tells: jobs outside the file, "
            "reservations, limits of QOS or associations, or nodes that were down"
        )
    elif in_use.peak < _FULL * gpus and pairs.recorded_wait.mean() > _LONG_S:
        yield (
            f"never more than {in_use.peak:,.0f} of {gpus:,} GPUs were in use, yet jobs waited: "
            "nodes that were down or reserved, or limits of QOS or associations"
        )


def _begin(setting: Setting, history: History, seed: int) -> float:
    """Return when the first job of a seed could start, in seconds of the history."""
    return float(np.nanmin(times(history, jobs_of(setting, seed).rows).ready_s))


def _waited_beside_idle_gpus(history: History, in_use: _InUse, gpus: int, pairs: Pairs) -> int:
    """Return the number of jobs that waited long while at most half of the GPUs were in use.

    Use is looked up when the job could start, halfway, and just before it started.
    """
    found = times(history, pairs.rows)
    moments = np.stack((found.ready_s, (found.ready_s + found.start_s) / 2, found.start_s))
    most = in_use.before(moments).max(axis=0)
    return int(((pairs.recorded_wait > _LONG_S) & (most <= _EMPTY * gpus)).sum())


def _of_what_is_unknown(setting: Setting, pairs: Pairs) -> Iterator[str]:
    """Yield what fields that the history lacks, and jobs that are not played, hint at."""
    recorded, played = setting.scenario.history, setting.played
    assert recorded is not None
    assert played is not None
    history, layout = history_file.history_of(recorded), setting.layout
    if len(layout.models) > 1 and not history.tables["allowed"]:
        yield (
            "the history has no requested GPU types: jobs are simulated on models that they may "
            "not have been able to use"
        )
    if len(layout.partitions) > 1 and not history.tables["queue"]:
        yield "the history has no partitions: jobs may be simulated on nodes they could not use"
    no_limit = float((~(history.requested_s[pairs.rows] > 0)).mean())
    if no_limit > _FEW:
        yield f"{_percent(no_limit)} of the jobs have no time limit, by which backfill decides"
    submit = history.submit_s
    first, last = submit[played.rows].min(), submit[played.rows].max()
    ran = (submit >= first) & (submit <= last) & (history.run_s > 0)
    left_out = int((ran & (history_file.gpus_of(history, recorded) > 0)).sum()) - len(played.rows)
    if left_out > _FEW * len(played.rows):
        yield f"{left_out:,} jobs with GPUs of the same time are not played"
