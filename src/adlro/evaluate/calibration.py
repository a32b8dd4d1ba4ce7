"""How well a policy's simulation reproduces what was recorded of the same jobs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from adlro.evaluate.calibration_hints import Pairs, hints
from adlro.evaluate.durations import durations
from adlro.evaluate.recorded import absence, times_of
from adlro.evaluate.significance import rank_correlation
from adlro.model.state import Floats
from adlro.policies.registry import Policy
from adlro.sim.simulator import RunResult
from adlro.workloads import history_file
from adlro.workloads.generate import jobs_of
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload, measured

TWIN = "slurm"  # the policy that decides as stock Slurm does
CLOSE_PCT = 15.0  # a simulation that differs by more does not reproduce the cluster
_NEGLIGIBLE = 0.01  # of the mean JCT: a smaller difference of waits does not count
_STEP_S = 1e-3  # waits closer than this are equal in rank


class Means(BaseModel):
    """Mean seconds over the same jobs, recorded and simulated."""

    model_config = ConfigDict(frozen=True)

    recorded: float
    simulated: float
    difference_pct: float | None  # of simulated to recorded; None = the recorded mean is 0


class PartitionCalibration(BaseModel):
    """Recorded and simulated waits and completion times of one partition's jobs."""

    model_config = ConfigDict(frozen=True)

    partition: str  # "" = unknown
    jobs: int
    wait_s: Means
    jct_s: Means


class Calibration(BaseModel):
    """A simulation compared with what was recorded of the same jobs."""

    model_config = ConfigDict(frozen=True)

    policy: str
    jobs: int  # pairs of a recorded and a simulated run, over all seeds
    wait_s: Means
    jct_s: Means
    rank_correlation: float | None  # Spearman's, of waits; None = all waits are equal
    partitions: list[PartitionCalibration]  # most jobs first
    within_pct: float | None  # larger difference of mean JCT and mean wait; None = unknown
    is_close: bool  # within CLOSE_PCT
    reasons: list[str]  # likely, if it is not close

    def headline(self) -> str:
        """Return how closely the simulation reproduces the cluster, in one sentence."""
        rank = self.rank_correlation
        told = f"mean JCT {_change(self.jct_s)}, mean wait {_change(self.wait_s)}"
        told += f", over {self.jobs:,} jobs"
        told += "" if rank is None else f"; rank correlation of waits {rank:.2f}"
        return f"{self.verdict()}: {told}."

    def verdict(self) -> str:
        """Return whether the simulation reproduces the cluster, without figures in seconds."""
        if self.within_pct is None:
            return f"{self.policy} cannot be compared with the record"
        size = f"{self.within_pct:.2g}" if self.within_pct < 10 else f"{self.within_pct:,.0f}"
        if self.is_close:
            return f"With {self.policy}, this simulation reproduces your cluster within {size} %"
        return f"WARNING: with {self.policy}, this simulation is {size} % off your cluster"


def _change(means: Means) -> str:
    change = means.difference_pct
    recorded, simulated = durations(means.recorded, means.simulated)
    text = f"{recorded} recorded, {simulated} simulated"
    return f"({text})" if change is None else f"{change:+,.1f} % ({text})"


class Twin:
    """Collects a policy's runs on a history, to be compared with what was recorded.

    Several runs of one seed (repetitions with jitter) count as one, with the mean times of each
    job. Runs of one seed must not be added at the same time.
    """

    def __init__(self, setting: Setting, policy: str = TWIN) -> None:
        self._setting, self._policy = setting, policy
        self._is_recorded = setting.played is not None and not absence(setting)
        self._pairs: dict[int, Pairs] = {}  # by seed
        self._runs: dict[int, int] = {}  # number of runs by seed

    def watch(self, policy: Policy, seed: int, workload: Workload, result: RunResult) -> None:
        """Collect one run if it is one of the policy; `evaluate.compare` calls this, in threads."""
        if policy.name != self._policy:
            return
        arrival = workload.jobs["arrival"]
        self.add(seed, result.outcome["start"] - arrival, result.outcome["finish"] - arrival)

    def add(self, seed: int, wait_s: Floats, jct_s: Floats) -> None:
        """Collect the simulated waits and completion times [K] of a seed's jobs."""
        played = jobs_of(self._setting, seed)
        found = times_of(self._setting, played)
        if found is None or not self._is_recorded:
            return
        counted = measured(played.lost, self._setting.scenario.measure)
        counted = counted[found.is_known[counted]]
        own = (wait_s[counted], jct_s[counted])
        self._runs[seed] = runs = self._runs.get(seed, 0) + 1
        if runs > 1:
            before = self._pairs[seed][-2:]
            own = (
                before[0] + (own[0] - before[0]) / runs,
                before[1] + (own[1] - before[1]) / runs,
            )
        self._pairs[seed] = Pairs(
            played.rows[counted], found.wait_s[counted], found.jct_s[counted], *own
        )

    def calibration(self, seeds: Sequence[int]) -> Calibration | None:
        """Compare the runs on these seeds with the record; None = nothing can be compared."""
        parts = [self._pairs[seed] for seed in seeds if seed in self._pairs]
        if not sum(len(part.rows) for part in parts):
            return None
        columns = zip(*parts, strict=True)
        pairs = Pairs._make(np.concatenate(column) for column in columns)
        found = _calibration(self._setting, self._policy, pairs)
        if found.is_close:
            return found
        return found.model_copy(update={"reasons": hints(self._setting, seeds, pairs)})


def _means(recorded: Floats, simulated: Floats) -> Means:
    true, found = float(recorded.mean()), float(simulated.mean())
    change = 100 * (found / true - 1) if true > 0 else None
    return Means(recorded=true, simulated=found, difference_pct=change)


def _within(wait: Means, jct: Means) -> float | None:
    """Return the larger of both differences in percent; that of negligible waits does not count."""
    if jct.difference_pct is None:
        return None
    gap = abs(wait.simulated - wait.recorded)
    if gap <= _NEGLIGIBLE * jct.recorded:
        return abs(jct.difference_pct)
    share = 100.0 if wait.difference_pct is None else abs(wait.difference_pct)
    return max(abs(jct.difference_pct), share)


def _calibration(setting: Setting, policy: str, pairs: Pairs) -> Calibration:
    wait, jct = _means(pairs.recorded_wait, pairs.wait), _means(pairs.recorded_jct, pairs.jct)
    within = _within(wait, jct)
    return Calibration(
        policy=policy,
        jobs=len(pairs.rows),
        wait_s=wait,
        jct_s=jct,
        rank_correlation=rank_correlation(
            np.rint(pairs.recorded_wait / _STEP_S), np.rint(pairs.wait / _STEP_S)
        ),
        partitions=_partitions(setting, pairs),
        within_pct=within,
        is_close=within is not None and within <= CLOSE_PCT,
        reasons=[],
    )


def _partitions(setting: Setting, pairs: Pairs) -> list[PartitionCalibration]:
    recorded = setting.scenario.history
    assert recorded is not None
    history = history_file.history_of(recorded)
    codes = history.queue[pairs.rows]
    words, found = (*history.tables["queue"], ""), []
    for code in np.unique(codes).tolist():
        some = pairs.take(np.flatnonzero(codes == code))
        one = PartitionCalibration(
            partition=words[code],
            jobs=len(some.rows),
            wait_s=_means(some.recorded_wait, some.wait),
            jct_s=_means(some.recorded_jct, some.jct),
        )
        found.append(one)
    return sorted(found, key=lambda one: -one.jobs)
