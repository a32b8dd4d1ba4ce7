"""The best stock Slurm for a history: settings found on its first half, measured on the later one.

The proposal is compared with the present configuration in the twin (policy `slurm`) under three
assumptions on speeds. What is not better on jobs that the search has not seen is not proposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from adlro.config.slurm_lines import Change, Written, changes, host_list, lines, node_lines
from adlro.evaluate import findings, slurm_search
from adlro.evaluate.calibration import Calibration, Twin
from adlro.evaluate.findings import Finding
from adlro.evaluate.group_waits import GroupChange
from adlro.evaluate.history_halves import BySpeeds, Halves, pooled
from adlro.evaluate.slurm_search import Candidate, Found, Order, Site, Trial
from adlro.evaluate.starving import compared, starved_accounts
from adlro.evaluate.stats import Estimate, percent_difference
from adlro.evaluate.variants import SPEEDS, Windows, rows_of
from adlro.model.cluster import Cluster, host_of
from adlro.policies import registry
from adlro.seeds import StudyStream, study_stream
from adlro.workloads import recorded
from adlro.workloads.setting import Setting

Objective = Literal["mean-jct", "mean-wait", "p99-jct"]
METRICS: dict[Objective, str] = {
    "mean-jct": "mean_jct_s",
    "mean-wait": "mean_wait_s",
    "p99-jct": "p99_jct_s",
}
TRIALS = 60  # by default
OURS, RIVALS = "adlro", ("easy-backfill", "min-min")
LEAST_PCT = 1.0  # gain below which a change is not proposed
_ESTIMATES = "memory"  # run times that ADLRO and its rivals see
_SHOWN_TRIALS = 20
_MOST_UNITS = 3  # of nodes of which all orders are tried
_ORDER_KEY = "NodeName Weight"


class TriedConfiguration(BaseModel):
    """A configuration that the search measured on the first half."""

    model_config = ConfigDict(frozen=True)

    changes: list[Change]
    gain_pct: float
    windows: int  # of the first half


class PolicyGain(BaseModel):
    """What another policy gains on the later half; positive = better."""

    model_config = ConfigDict(frozen=True)

    policy: str
    gain: Estimate | None  # against Slurm as it is, percent; None = that objective is 0
    left: Estimate | None  # against the proposed Slurm, percent


class Tuning(BaseModel):
    """Result of `adlro tune`. Gains are percent of the objective; positive = better."""

    model_config = ConfigDict(frozen=True)

    history: str
    cluster: str
    objective: Objective
    jobs: int
    first_windows: int
    later_windows: int
    window_jobs: int  # measured in a window of the later half
    verdict: Literal["change", "leave it"]
    changes: list[Change]  # empty unless the verdict is "change"
    lines: list[str]  # of slurm.conf
    rejected: list[Change]  # found on the first half, but not better on the later one
    gain: Estimate  # of the found configuration on the later half, pooled over speeds
    by_speeds: dict[str, Estimate]
    gains: dict[Objective, Estimate | None]  # pooled, of every objective; None = it is 0 now
    first_part: float  # gain on the first half, which the search has seen
    gainers: list[GroupChange]
    losers: list[GroupChange]
    adlro: PolicyGain | None  # None = it cannot run on this cluster
    others: list[PolicyGain]
    findings: list[Finding]
    calibration: Calibration | None
    trials: list[TriedConfiguration]  # at most 20
    tried: int
    assumptions: list[str]


class Request(NamedTuple):
    """What `adlro tune` was asked for."""

    objective: Objective = "mean-jct"
    trials: int = TRIALS
    written: Written = Written(())


def units(cluster: Cluster) -> list[tuple[str, ...]]:
    """Return the names of groups of nodes that only have one place in the order together.

    They are of one shape, and so fill one pool, or share a host (one with GPUs of several types).
    """
    found: list[tuple[set[object], list[str]]] = []
    for group in cluster.nodes:
        marks: set[object] = {host_of(name) for name in group.node_names}
        marks.add(group.shape(cluster.model_of(group.gpu)))
        meeting = [one for one in found if one[0] & marks]
        for one in meeting[1:]:
            meeting[0][0].update(one[0])
            meeting[0][1].extend(one[1])
            found.remove(one)
        if meeting:
            meeting[0][0].update(marks)
            meeting[0][1].append(group.name)
        else:
            found.append((marks, [group.name]))
    return [tuple(names) for _, names in found]


def node_orders(setting: Setting) -> tuple[Order, ...]:
    """Return other orders of the nodes; none if no job may choose between types of nodes.

    All of them for up to three types; else by speed in both directions, and each type moved to the
    front or to the end.
    """
    cluster = setting.scenario.cluster
    own = units(cluster)
    assert setting.played is not None
    if len(own) < 2 or not (setting.played.allowed.sum(axis=1) > 1).any():
        return ()
    speed = dict(
        zip((model.name for model in setting.models), setting.speeds.mean(axis=0), strict=True)
    )
    groups = {group.name: cluster.model_of(group.gpu).name for group in cluster.nodes}
    if len(own) <= _MOST_UNITS:
        orders = [list(one) for one in permutations(own)]
    else:
        slowest = sorted(own, key=lambda unit: speed[groups[unit[0]]])
        orders = [slowest, slowest[::-1]]
        for unit in own:
            rest = [other for other in own if other != unit]
            orders += [[unit, *rest], [*rest, unit]]
    found = {tuple(name for unit in order for name in unit): None for order in orders}
    found.pop(tuple(name for unit in own for name in unit), None)
    found.pop(tuple(group.name for group in cluster.nodes), None)
    return tuple(found)


def site_of(halves: Halves) -> Site:
    """Return the present configuration, and what the search may change about it."""
    whole = halves.whole(SPEEDS[1])
    assert whole.played is not None
    names: tuple[str, ...] = ()
    by = recorded.groupings(halves.variants.history, rows_of(whole)).get("partition")
    if by is not None:
        codes, counts = np.unique(by.codes[by.codes >= 0], return_counts=True)
        ranked = codes[np.argsort(-counts, kind="stable")].tolist()
        names = tuple(name for name in map(by.name, ranked) if name in whole.partitions)
    return Site(
        Candidate(slurm_search.neutral(whole.scenario.slurm), halves.order),
        names,
        node_orders(whole),
        len(np.unique(whole.played.jobs["priority"])) > 1,
    )


def gain_of(ours: BySpeeds, theirs: BySpeeds, windows: Windows, metric: str) -> Estimate | None:
    """Return by how many percent a metric is lower than theirs, paired by window.

    Metrics are averaged over the assumptions on speeds. None = theirs is 0.
    """
    before = pooled(theirs, windows, metric)
    if not before.mean() > 0:
        return None
    found = percent_difference(pooled(ours, windows, metric), before)
    low, high = found.ci95 or (found.mean, found.mean)
    ends = None if found.ci95 is None else (0.0 - high, 0.0 - low)
    return Estimate(mean=0.0 - found.mean, sd=found.sd, ci95=ends)


_NOTHING = Estimate(mean=0.0, sd=0.0, ci95=(0.0, 0.0))


def is_worth_it(gain: Estimate) -> bool:
    """Return whether a gain is settled and large enough to change a configuration for."""
    return gain.ci95 is not None and gain.ci95[0] > 0 and gain.mean >= LEAST_PCT


class _Tuner:
    """One tuning: the halves, the request, and the present configuration."""

    def __init__(self, halves: Halves, request: Request) -> None:
        self.halves, self.request = halves, request
        self.metric = METRICS[request.objective]
        self.site = site_of(halves)
        self.slurm = halves.whole(SPEEDS[0]).scenario.slurm
        self.cluster = halves.variants.source.cluster

    def search(self) -> Found:
        """Search on the first half."""
        return slurm_search.search_best(
            self.site,
            lambda candidates, count: self.halves.measure(candidates, count, self.metric),
            (self.halves.few, self.halves.first.windows.total),
            self.request.trials,
            study_stream(StudyStream.SLURM_SEARCH),
        )

    def _hosts(self, order: Order) -> list[list[str]]:
        """Return the hosts of the units of nodes, in an order."""
        groups = {group.name: group for group in self.cluster.nodes}
        own = sorted(units(self.cluster), key=lambda unit: min(order.index(n) for n in unit))
        return [
            list(dict.fromkeys(host_of(n) for name in unit for n in groups[name].node_names))
            for unit in own
        ]

    def changes(self, candidate: Candidate) -> list[Change]:
        """Return what a candidate changes."""
        after = slurm_search.restored(candidate.slurm, self.slurm)
        found = changes(self.slurm, after, self.request.written)
        now = self.site.current.order
        if candidate.order != now:
            before, then = (
                " < ".join(host_list(hosts) for hosts in self._hosts(order))
                for order in (now, candidate.order)
            )
            found.append(Change(key=_ORDER_KEY, before=before, after=then))
        return found

    def lines(self, candidate: Candidate) -> list[str]:
        """Return the lines of slurm.conf of a candidate that differ from the present ones."""
        after = slurm_search.restored(candidate.slurm, self.slurm)
        found = lines(self.slurm, after, self.request.written)
        if candidate.order != self.site.current.order:
            found += node_lines(self._hosts(candidate.order))
        return found

    def rivals(self, now: BySpeeds, then: BySpeeds) -> list[PolicyGain]:
        """Play ADLRO and its rivals on the later half."""
        setting = self.halves.part(self.halves.later, SPEEDS[0], _ESTIMATES)
        names = [n for n in (OURS, *RIVALS) if registry.refusal(n, setting) is None]
        windows = self.halves.later.windows
        played = self.halves.policies(self.halves.later, names, _ESTIMATES)
        return [
            PolicyGain(
                policy=name,
                gain=gain_of(runs, now, windows, self.metric),
                left=gain_of(runs, then, windows, self.metric),
            )
            for name, runs in played.items()
        ]

    def calibration(self, now: BySpeeds) -> Calibration | None:
        """Compare the twin as it is with the record, on the later half with all GPUs alike."""
        half = self.halves.later
        twin = Twin(self.halves.part(half, SPEEDS[0]))
        for seed, run in zip(half.windows.seeds, now[SPEEDS[0]], strict=True):
            twin.add(seed, run.wait_s, run.jct_s)
        return twin.calibration(half.windows.seeds)

    def trial(self, trial: Trial) -> TriedConfiguration:
        """Return a trial as a record."""
        return TriedConfiguration(
            changes=self.changes(trial.candidate), gain_pct=trial.gain_pct, windows=trial.windows
        )

    def first_part(self, best: Candidate) -> float:
        """Return the gain of a candidate on the first half, in percent."""
        count = self.halves.first.windows.total
        now, then = self.halves.measure([self.site.current, best], count, self.metric)
        return 100 * (1 - float(then.mean() / now.mean())) if now.mean() > 0 else 0.0

    def findings(self) -> list[Finding]:
        """Return what stands out: starved accounts, idle GPUs, overloaded partitions."""
        history, whole = self.halves.variants.history, self.halves.whole(SPEEDS[0])
        found = starved_accounts(self.halves, self.site.current)
        found += findings.idle_gpus(history, whole)
        return found + findings.overloaded_partitions(history, whole)


def _assumed(setting: Setting, keys: Sequence[str]) -> list[str]:
    """Return what is assumed; keys: those that the found configuration changes."""
    found = [
        "today's settings are those of --slurm-config (without it, Slurm's defaults), and nodes "
        "are filled in the order of the cluster file",
        "a backfill cycle takes no time: a shorter bf_interval or a larger bf_max_job_test also "
        "costs the controller time",
    ]
    assert setting.played is not None
    model = setting.layout.pools["model"]
    if not any(
        len(set(model[row].tolist())) > 1 for row in np.unique(setting.played.allowed, axis=0)
    ):
        found.append(
            "every job is bound to one GPU model, so all assumptions on speeds give the same "
            "result: they count as one, not as three that agree"
        )
    if "PriorityWeightFairshare" in keys:
        found.append("fair share counts running jobs only, with equal shares for all users")
    return found + list(setting.filled)


def tune(halves: Halves, request: Request) -> Tuning:
    """Find the best stock Slurm on the first half of a history and measure it on the later one."""
    tuner = _Tuner(halves, request)
    found, current = tuner.search(), tuner.site.current
    is_same = found.best.key == current.key
    played = halves.runs(halves.later, [current] if is_same else [current, found.best])
    now, then, windows = played[0], played[-1], halves.later.windows
    gains = {name: gain_of(then, now, windows, metric) for name, metric in METRICS.items()}
    gain = gains[request.objective] or _NOTHING
    by_speeds = {
        speeds: gain_of({speeds: then[speeds]}, {speeds: now[speeds]}, windows, tuner.metric)
        or _NOTHING
        for speeds in SPEEDS
    }
    is_better = not is_same and is_worth_it(gain)
    listed = tuner.changes(found.best)
    groups = [] if is_same else compared(halves, halves.later, now, then)
    rivals = tuner.rivals(now, then)
    whole = halves.whole(SPEEDS[0])
    return Tuning(
        history=str(halves.variants.file),
        cluster=whole.scenario.cluster.name,
        objective=request.objective,
        jobs=len(halves.first.rows) + len(halves.later.rows),
        first_windows=halves.first.windows.total,
        later_windows=windows.total,
        window_jobs=windows.jobs,
        verdict="change" if is_better else "leave it",
        changes=listed if is_better else [],
        lines=tuner.lines(found.best) if is_better else [],
        rejected=[] if is_better else listed,
        gain=gain,
        by_speeds=by_speeds,
        gains=gains,
        first_part=tuner.first_part(found.best),
        gainers=[one for one in groups[::-1] if one.change_s.mean < 0],
        losers=[one for one in groups if one.is_longer],
        adlro=next((one for one in rivals if one.policy == OURS), None),
        others=[one for one in rivals if one.policy != OURS],
        findings=tuner.findings(),
        calibration=tuner.calibration(now),
        trials=[tuner.trial(one) for one in found.trials[:_SHOWN_TRIALS]],
        tried=len(found.trials),
        assumptions=_assumed(whole, [change.key for change in listed]),
    )
