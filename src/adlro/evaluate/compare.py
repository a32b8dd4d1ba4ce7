"""Policies side by side: the same jobs for each, seed by seed, all run to the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from adlro import __version__
from adlro.evaluate.metrics import Metrics, measure
from adlro.evaluate.stats import Estimate, estimate, percent_difference
from adlro.policies import own
from adlro.policies.registry import Policy
from adlro.sim import simulator
from adlro.sim.state import Empty
from adlro.workloads.synthetic import Setting, generate
from adlro.workloads.workload import Workload


class Versus(BaseModel):
    """How a policy stands against another: below 0 is better."""

    model_config = ConfigDict(frozen=True)

    mean_jct_pct: Estimate


class Row(BaseModel):
    """One policy's line of the table."""

    model_config = ConfigDict(frozen=True)

    name: str
    metrics: dict[str, Estimate]
    versus: dict[str, Versus]
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
    with own.mistakes(policy.file, policy.line):
        return simulator.run(empty, workload, policy, seed, keep_spans=keep_spans)


def _seed_runs(
    setting: Setting, policies: Sequence[Policy], seed: int, done: Callable[[], object]
) -> list[_Run]:
    workload = generate(setting, seed)
    runs = []
    for policy in policies:
        before = time.thread_time()
        result = run_one(setting, workload, policy, seed)
        cpu_s = time.thread_time() - before
        calls = int(result.world["decisions"]), int(result.world["real_decisions"])
        runs.append(_Run(measure(setting, workload, result), cpu_s, *calls))
        done()
    return runs


def _row(policy: Policy, p: int, runs: list[list[_Run]], rivals: Sequence[Policy]) -> Row:
    own = [seed[p] for seed in runs]
    figures = np.array([run.metrics for run in own])
    jct = [np.array([seed[k].metrics.mean_jct_s for seed in runs]) for k in range(len(rivals))]
    decisions = sum(run.decisions for run in own)
    return Row(
        name=policy.name,
        metrics={name: estimate(figures[:, i]) for i, name in enumerate(Metrics._fields)},
        versus={
            rival.name: Versus(mean_jct_pct=percent_difference(jct[p], jct[k]))
            for k, rival in enumerate(rivals)
            if k != p
        },
        decision_us=1e6 * sum(run.cpu_s for run in own) / decisions,
        decisions=decisions,
        real_decisions=sum(run.real_decisions for run in own),
    )


def compare(
    setting: Setting,
    policies: Sequence[Policy],
    seeds: range,
    *,
    threads: int = 2,
    done: Callable[[], object] = lambda: None,
) -> Comparison:
    """Run every policy on every seed, a seed a task; the result does not depend on `threads`.

    Args:
        setting: the scenario, ready.
        policies: what to compare.
        seeds: at least one.
        threads: how many seeds are worked on at once.
        done: called after each run, from any thread.

    Raises:
        PolicyError: a policy asked for what cannot be.
    """
    with ThreadPoolExecutor(threads) as pool:
        tasks = [pool.submit(_seed_runs, setting, policies, seed, done) for seed in seeds]
        try:
            runs = [task.result() for task in tasks]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
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
