"""A cell of the experiment: policies on all windows of a trace under one pair of assumptions."""

from __future__ import annotations

import re
import sys
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict
from traces import store
from traces.halves import THIRDS, Trace, fitted, measured, windows
from traces.store import PolicyFigures

from adlro.evaluate.compare import compare
from adlro.evaluate.comparison import PolicyRow
from adlro.model.state import Floats
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.sim import simulator
from adlro.workloads.jitter import Jitter
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

GANGS = (1, 4, 8, 16)  # upper borders of the groups of gang sizes; the last group is above all
GANG_NAMES = ("1 GPU", "2 to 4", "5 to 8", "9 to 16", "above 16")


class Cell(BaseModel):
    """The figures of all policies on one trace, under one assumption on speeds and estimates."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stretch: float  # of arrivals
    load: float  # of the second half
    assumptions: list[str]  # on what the history does not say
    policies: dict[str, PolicyFigures]

    def log_ratios(self, policy: str, rival: str, metric: str = "jct_s") -> Floats:
        """Return the log of the ratio of a metric to a rival's in each window [W]."""
        ours, theirs = (getattr(self.policies[name], metric) for name in (policy, rival))
        return np.log(np.array(ours) / np.array(theirs))

    def gang_log_ratios(self, policy: str, rival: str, group: int) -> Floats:
        """Return the same for mean JCT of a group of gang sizes; nan = no such job."""
        rows = (self.policies[name].gang_jct_s[group] for name in (policy, rival))
        ours, theirs = (np.array(row, np.float64) for row in rows)
        return np.log(ours / theirs)


class Way(NamedTuple):
    """Which windows are played, how often, and where results are stored."""

    folder: Path
    is_resumed: bool  # whether stored results of the same code are used
    jitter: Jitter
    most: int | None = None  # windows at most; None = all


class _GangSums:
    """Sums of completion times by policy, window and gang size, collected from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[str, dict[int, Floats]] = defaultdict(dict)  # [2, GANG_NAMES] each

    def watch(
        self, policy: Policy, seed: int, workload: Workload, result: simulator.RunResult
    ) -> None:
        """Add the completion times of one run."""
        jct = result.outcome["finish"] - workload.jobs["arrival"]
        group = np.searchsorted(GANGS, workload.jobs["gpus"])
        counts = np.bincount(group, minlength=len(GANG_NAMES))
        sums = np.bincount(group, jct, minlength=len(GANG_NAMES))
        with self._lock:
            seen = self._sums[policy.name].setdefault(seed, np.zeros((2, len(GANG_NAMES))))
            seen += np.stack((sums, counts))

    def means(self, policy: str) -> list[list[float | None]]:
        """Return the mean completion times [GANG_NAMES][W] of a policy."""
        by_window = [self._sums[policy][seed] for seed in sorted(self._sums[policy])]
        return [
            [float(sums[0, g] / sums[1, g]) if sums[1, g] else None for sums in by_window]
            for g in range(len(GANG_NAMES))
        ]


class _Window(NamedTuple):
    """The figures of a policy in one window; those after p99_s are of its third."""

    jct_s: float
    p99_s: float
    jitter_sd_pct: float
    gpu_utilisation: float
    mean_wait_s: float
    outside: float | None


def _windows_of(row: PolicyRow) -> list[_Window]:
    """Return the figures of a policy in each window of a third."""
    of_third = (
        row.jitter_sd_pct or 0.0,
        row.metrics["gpu_utilisation"].mean,
        row.metrics["mean_wait_s"].mean,
        None if row.out_of_range is None else row.out_of_range.mean_outside,
    )
    both = zip(row.per_seed["mean_jct_s"], row.per_seed["p99_jct_s"], strict=True)
    return [_Window(jct, p99, *of_third) for jct, p99 in both]


def _figures(by_window: Mapping[int, _Window], gangs: list[list[float | None]]) -> PolicyFigures:
    """Return the figures of a policy in all windows, in their order, without a fingerprint."""
    rows = [by_window[window] for window in sorted(by_window)]
    return PolicyFigures(
        fingerprint="",
        jct_s=[row.jct_s for row in rows],
        p99_s=[row.p99_s for row in rows],
        gang_jct_s=gangs,
        jitter_sd_pct=[row.jitter_sd_pct for row in rows],
        gpu_utilisation=[row.gpu_utilisation for row in rows],
        mean_wait_s=[row.mean_wait_s for row in rows],
        outside=None if rows[0].outside is None else [row.outside or 0.0 for row in rows],
    )


def _run(
    setting: Setting, policies: Sequence[Policy], seeds: range, jitter: Jitter
) -> dict[str, PolicyFigures]:
    """Run policies on windows; the fingerprints of the figures are left empty."""
    simulator.warm_up(policies)
    gangs = _GangSums()
    found: dict[str, dict[int, _Window]] = defaultdict(dict)
    for third in range(THIRDS):
        own = seeds[third::THIRDS]
        if not own:
            continue
        for row in compare(setting, policies, own, watch=gangs.watch, jitter=jitter).policies:
            found[row.name].update(zip(own, _windows_of(row), strict=True))
    return {name: _figures(own, gangs.means(name)) for name, own in found.items()}


def play(
    trace: Trace, file: Path, assumed: tuple[str, str], names: Sequence[str], way: Way
) -> Cell:
    """Run policies on the windows of the second half; they are set up on the first half only.

    Args:
        trace: the trace and its cluster.
        file: the trace file.
        assumed: the assumption about speeds (one of SPEEDS), and the estimates (of ESTIMATES).
        names: names or files of the policies.
        way: which windows, how often, and where to store the result.
    """
    speeds, estimates = assumed
    fit = fitted(trace, file, speeds)
    setting = measured(trace, file, speeds, fit, estimates)
    policies = [registry.load(name, fit.setting) for name in names]
    seeds = range(windows(setting))[: way.most]
    label = f"{trace.name}, {speeds}, {estimates}"
    inputs = store.inputs_hash(setting, seeds, way.jitter)
    marks = {policy.name: store.fingerprint(policy, inputs) for policy in policies}
    slug = re.sub(r"[^a-z0-9]+", "-", label.lower())
    paths = {name: way.folder / f"{slug}-{name}.json" for name in marks}
    known = {name: store.stored(paths[name], mark) for name, mark in marks.items()}
    figures = {name: one for name, one in known.items() if one is not None and way.is_resumed}
    missing = [policy for policy in policies if policy.name not in figures]
    if missing:
        told = ", ".join(policy.name for policy in missing)
        sys.stderr.write(f"{label}: {len(seeds)} windows x {way.jitter.repeats}: {told}\n")
        for name, one in _run(setting, missing, seeds, way.jitter).items():
            figures[name] = one.model_copy(update={"fingerprint": marks[name]})
            store.store(paths[name], figures[name])
    return Cell(
        stretch=fit.stretch,
        load=setting.scenario.load,
        assumptions=list(setting.filled),
        policies={policy.name: figures[policy.name] for policy in policies},
    )
