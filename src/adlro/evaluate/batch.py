"""Plays many policies on many settings of a history, and stores each run as soon as it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adlro.errors import PolicyError
from adlro.evaluate.compare import in_background, run_one
from adlro.evaluate.metrics import measure
from adlro.evaluate.run_store import RunStore, StoredRun, run_key
from adlro.evaluate.variants import Windows
from adlro.model.state import Floats
from adlro.policies import lookahead, registry
from adlro.policies.registry import Policy
from adlro.sim.simulator import warm_up
from adlro.workloads.generate import generate
from adlro.workloads.setting import Setting

Runs = dict[str, list[StoredRun]]  # policy -> its run of each seed


class Case(NamedTuple):
    """Policies to play on one setting."""

    setting: Setting
    policies: tuple[str, ...]  # names, or paths of learned policies
    seeds: range  # numbers of the runs


def name_of(policy: str) -> str:
    """Return the name of a policy that is given by its name or by the path of its file."""
    base, looks_ahead = lookahead.split(policy)
    name = Path(base).stem if "/" in base or base.endswith((".npz", ".json")) else base
    return name + lookahead.SUFFIX if looks_ahead else name


def _load(name: str, setting: Setting) -> Policy:
    found = registry.load(name, setting)
    if found.file is not None:
        raise PolicyError(
            f"policy {found.name}: only policies of ADLRO and learned ones (.npz) can be assessed; "
            "compare it with `adlro compare`"
        )
    return found


class Batch:
    """Plays cases, several at a time; runs that are stored already are not played again."""

    def __init__(
        self, store: RunStore, threads: int, advance: Callable[[int], object] = lambda _: None
    ) -> None:
        """advance: called with the number of runs that have ended, from any thread."""
        self._store, self._threads, self._advance = store, threads, advance
        self.played = 0  # runs that were not stored yet

    def play(self, cases: Sequence[Case]) -> list[Runs]:
        """Return the runs of each case.

        Ctrl-C ends it at once; the runs that have ended are stored.

        Raises:
            PolicyError: a policy cannot run there, or fails.
        """
        policies = [{name: _load(name, case.setting) for name in case.policies} for case in cases]
        warm_up(policy for some in policies for policy in some.values())
        tasks = [
            (case, some, seed)
            for case, some in zip(cases, policies, strict=True)
            for seed in case.seeds
        ]
        return in_background(lambda: self._play(cases, tasks))

    def _play(
        self, cases: Sequence[Case], tasks: Sequence[tuple[Case, Mapping[str, Policy], int]]
    ) -> list[Runs]:
        pool = ThreadPoolExecutor(self._threads)
        try:
            found = iter([pool.submit(self._seed, *task) for task in tasks])
            results = []
            for case in cases:
                seeds = [next(found).result() for _ in case.seeds]
                results.append(
                    {name_of(name): [one[name] for one in seeds] for name in case.policies}
                )
            return results
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _seed(self, case: Case, policies: Mapping[str, Policy], seed: int) -> dict[str, StoredRun]:
        """Return the run of each policy on one seed."""
        keys = {name: run_key(case.setting, name, seed) for name in policies}
        stored = {name: self._store.get(key) for name, key in keys.items()}
        found = {name: run for name, run in stored.items() if run is not None}
        self._advance(len(found))
        missing = [name for name in policies if name not in found]
        if not missing:
            return found
        workload = generate(case.setting, seed)
        for name in missing:
            result = run_one(case.setting, workload, policies[name], seed)
            arrival = np.where(workload.lost, np.nan, workload.jobs["arrival"])
            run = StoredRun(
                result.outcome["start"] - arrival,
                result.outcome["finish"] - arrival,
                measure(case.setting, workload, result),
            )
            self._store.put(keys[name], run)
            found[name] = run
            self.played += 1
            self._advance(1)
        return found


def runs_of(cases: Iterable[Case]) -> int:
    """Return the number of runs of these cases."""
    return sum(len(case.policies) * len(case.seeds) for case in cases)


_BY_JOB: dict[str, Callable[[StoredRun], Floats]] = {
    "mean_jct_s": lambda run: run.jct_s,
    "mean_wait_s": lambda run: run.wait_s,
    "p99_jct_s": lambda run: run.jct_s,
}


def by_window(runs: Sequence[StoredRun], windows: Windows, metric: str) -> Floats:
    """Return a metric of each window [W].

    Metrics that are not those of jobs (such as use and energy) are of the whole run.
    """
    each = windows.per_run
    if metric not in _BY_JOB:
        return np.repeat([getattr(run.metrics, metric) for run in runs], each)
    values = [_BY_JOB[metric](run)[windows.lead_in :].reshape(each, -1) for run in runs]
    joined = np.concatenate(values)
    found: Floats = (
        np.nanpercentile(joined, 99, axis=1) if metric.startswith("p99") else np.nanmean(joined, 1)
    )
    return found
