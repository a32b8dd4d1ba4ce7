"""Policies side by side: the same jobs for each, seed by seed, all run to the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from adlro import __version__
from adlro.errors import PolicyError
from adlro.evaluate.metrics import Metrics, measure
from adlro.evaluate.stats import Estimate, estimate, percent_difference
from adlro.model.state import Floats
from adlro.policies import own
from adlro.policies.registry import Policy
from adlro.sim import simulator
from adlro.sim.state import Empty
from adlro.workloads.synthetic import Setting, generate
from adlro.workloads.workload import Workload

R = TypeVar("R")
Watch = Callable[[Policy, int, Workload, simulator.Result], object]  # policy, seed, jobs, result


class Row(BaseModel):
    """One policy's line of the table."""

    model_config = ConfigDict(frozen=True)

    name: str
    metrics: dict[str, Estimate]
    versus: dict[str, dict[str, Estimate]]  # rival -> METRIC_pct: how much larger ours is
    decision_us: float  # CPU time of a call of decide, the simulator's own work included
    decisions: int  # calls of decide, over all seeds
    real_decisions: int  # those with at least one feasible pair


class Comparison(BaseModel):
    """What `adlro compare --json` writes."""

    model_config = ConfigDict(frozen=True)

    version: str = __version__
    scenario: str
    seeds: int
    first_seed: int
    load: float
    estimates: str
    measure: str
    jobs: int
    policies: list[Row]


class _Run(NamedTuple):
    metrics: Metrics
    cpu_s: float
    decisions: int
    real_decisions: int


def run_one(
    setting: Setting, workload: Workload, policy: Policy, seed: int, *, keep_spans: bool = False
) -> simulator.Result:
    """One policy on the jobs of one seed.

    Raises:
        PolicyError: the policy asked for what cannot be, or a user's own failed.
    """
    layout = setting.layout
    empty = Empty(layout.pools, layout.nodes, layout.gpus)
    if policy.file is None:
        return simulator.run(empty, workload, policy, seed, keep_spans=keep_spans)
    with own.mistakes(policy.file, policy.line):  # a stranger gets copies, in case it writes
        copy = Workload._make(array.copy() for array in workload)
        result = simulator.run(empty, copy, policy, seed, keep_spans=keep_spans)
        if not all(np.array_equal(a, b) for a, b in zip(copy, workload, strict=True)):
            raise PolicyError("decide changed the jobs or their estimates, which are not its own")
        return result


def _seed_runs(setting: Setting, policies: Sequence[Policy], seed: int, watch: Watch) -> list[_Run]:
    workload = generate(setting, seed)
    runs = []
    for policy in policies:
        before = time.thread_time()
        result = run_one(setting, workload, policy, seed)
        cpu_s = time.thread_time() - before
        calls = int(result.world["decisions"]), int(result.world["real_decisions"])
        runs.append(_Run(measure(setting, workload, result), cpu_s, *calls))
        watch(policy, seed, workload, result)
    return runs


def _figures(runs: list[list[_Run]], p: int) -> Floats:
    """Every metric of one policy on every seed, [seeds, metrics]."""
    return np.array([seed[p].metrics for seed in runs])


def _versus(ours: Floats, theirs: Floats) -> dict[str, Estimate]:
    """The paired differences of all metrics that are not 0 on the other side, in percent."""
    return {
        name.removesuffix("_s") + "_pct": percent_difference(ours[:, i], theirs[:, i])
        for i, name in enumerate(Metrics._fields)
        if theirs[:, i].mean() != 0
    }


def in_background(work: Callable[[], R]) -> R:
    """Run compiled work in another thread, so that Ctrl-C reaches this one at once."""
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(work).result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _row(policy: Policy, p: int, runs: list[list[_Run]], rivals: Sequence[Policy]) -> Row:
    own = [seed[p] for seed in runs]
    figures = _figures(runs, p)
    decisions = sum(run.decisions for run in own)
    return Row(
        name=policy.name,
        metrics={name: estimate(figures[:, i]) for i, name in enumerate(Metrics._fields)},
        versus={
            rival.name: _versus(figures, _figures(runs, k))
            for k, rival in enumerate(rivals)
            if k != p
        },
        decision_us=1e6 * sum(run.cpu_s for run in own) / decisions,
        decisions=decisions,
        real_decisions=sum(run.real_decisions for run in own),
    )


def _refuse_twins(policies: Sequence[Policy]) -> None:
    names = [policy.name for policy in policies]
    for policy in policies:
        if names.count(policy.name) > 1:
            raise PolicyError(f"two policies are called {policy.name!r}; rename a file")


def compare(
    setting: Setting,
    policies: Sequence[Policy],
    seeds: range,
    *,
    threads: int = 2,
    watch: Watch = lambda *_: None,
) -> Comparison:
    """Run every policy on every seed, a seed a task; the result does not depend on `threads`.

    Args:
        setting: the scenario, ready.
        policies: what to compare.
        seeds: at least one.
        threads: how many seeds are worked on at once.
        watch: called after each run, from any thread.

    Raises:
        PolicyError: a policy asked for what cannot be.
    """
    _refuse_twins(policies)
    if not all(simulator.is_compiled(policy.decide) for policy in policies):
        threads = 1  # Python code may keep things between calls: seeds go one after the other
    pool = ThreadPoolExecutor(threads)
    try:
        tasks = [pool.submit(_seed_runs, setting, policies, seed, watch) for seed in seeds]
        runs = [task.result() for task in tasks]
    finally:  # on Ctrl-C or an error, do not wait for what is still under way
        pool.shutdown(wait=False, cancel_futures=True)
    scenario = setting.scenario
    return Comparison(
        scenario=scenario.name,
        seeds=len(seeds),
        first_seed=seeds[0],
        load=scenario.load,
        estimates=str(scenario.estimates),
        measure=str(scenario.measure),
        jobs=scenario.jobs,
        policies=[_row(policy, p, runs, policies) for p, policy in enumerate(policies)],
    )
