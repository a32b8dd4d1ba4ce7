"""The functions behind `import adlro`: scenarios, policies, single runs and comparisons."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.evaluate import compare as comparing
from adlro.evaluate.comparison import Comparison
from adlro.evaluate.metrics import Metrics, measure
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.sim.simulator import RunResult
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from adlro.workloads.workload import Workload


class Simulation(NamedTuple):
    """One run of one policy on the jobs of one seed: metrics, jobs and outcomes."""

    policy: str  # name
    seed: int
    metrics: Metrics
    workload: Workload  # the jobs, with their estimates and true run times
    run: RunResult  # start and finish of every job (`run.outcome`), busy seconds of every GPU


def load_scenario(name_or_path: str | Path, **changes: object) -> Scenario:
    """Load a shipped scenario by name, or a TOML file (a path with a slash or .toml).

    Args:
        name_or_path: "paper16" (see `adlro scenario list`), or "./mine.toml".
        **changes: keys of the scenario to replace, such as load=0.95, jobs=100 or
            estimates="noisy:0.5" (see docs/scenarios.md).

    Raises:
        ConfigError: there is no such scenario, its file is wrong, or a change is out of range.
    """
    return adjusted(find_scenario(str(name_or_path)), **changes)


def load_policy(name_or_path: str | Path, scenario: Scenario | str | Path) -> Policy:
    """Load a policy and prepare it for the cluster and the jobs of a scenario.

    Args:
        name_or_path: "min-min" (see `adlro policy list`), "./mine.py" with a `decide` of your own,
            or "./mine.npz" written by `adlro train`; "+lookahead" may be appended.
        scenario: the scenario that the policy will run.

    Raises:
        PolicyError: there is no such policy, it cannot run the scenario, or its file is wrong.
        ConfigError: there is no such scenario, or its file is wrong.
    """
    return registry.load(str(name_or_path), prepare(_scenario(scenario)))


def simulate(
    scenario: Scenario | str | Path, policy: Policy | str | Path = "min-min", seed: int = 0
) -> Simulation:
    """Run one policy on the jobs of one seed until the last job has finished.

    Args:
        scenario: a loaded scenario, or what `load_scenario` takes.
        policy: a policy that was loaded for this scenario, or what `load_policy` takes.
        seed: seed from which the jobs are drawn, as in `adlro simulate --seed`.

    Raises:
        PolicyError: there is no such policy, it cannot run the scenario, or it made an infeasible
            decision.
        ConfigError: there is no such scenario, or its file is wrong.
    """
    setting = prepare(_scenario(scenario))
    loaded = policy if isinstance(policy, Policy) else registry.load(str(policy), setting)
    workload = generate(setting, seed)
    run = comparing.run_one(setting, workload, loaded, seed)
    return Simulation(loaded.name, seed, measure(setting, workload, run), workload, run)


def compare(
    scenario: Scenario | str | Path,
    policies: Sequence[Policy | str | Path],
    seeds: int | range = 20,
    *,
    threads: int | None = None,
) -> Comparison:
    """Run policies on the same jobs; estimate their metrics and differences, paired by seed.

    Args:
        scenario: a loaded scenario, or what `load_scenario` takes.
        policies: each is a policy loaded for this scenario, or what `load_policy` takes.
        seeds: a number N for the seeds 0 to N - 1, or a range of seeds.
        threads: number of seeds run at once; None = one per core. The result does not depend on it.

    Returns:
        What `adlro compare --json` writes; its `tables()` lists the policies, the best first.

    Raises:
        PolicyError: there is no such policy, it cannot run the scenario, or it made an infeasible
            decision.
        ConfigError: there is no such scenario, its file is wrong, or there are no seeds or
            policies.
    """
    chosen = seeds if isinstance(seeds, range) else range(seeds)
    if not chosen or not policies:
        raise ConfigError("compare: at least one seed and one policy are needed")
    setting = prepare(_scenario(scenario))
    loaded = [
        policy if isinstance(policy, Policy) else registry.load(str(policy), setting)
        for policy in policies
    ]
    return comparing.compare(setting, loaded, chosen, threads=threads or os.cpu_count() or 1)


def _scenario(given: Scenario | str | Path) -> Scenario:
    return given if isinstance(given, Scenario) else load_scenario(given)
