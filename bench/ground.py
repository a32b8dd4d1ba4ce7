"""What all measurements run on, and the three ways in which the kernel is timed."""

from __future__ import annotations

from typing import Any, NamedTuple

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.sim import simulator
from adlro.sim.signature import compile_decide, compiled_run
from adlro.sim.world import Empty, answers, fresh_memory, open_world
from adlro.workloads.generate import generate
from adlro.workloads.setting import Setting, prepare
from adlro.workloads.workload import Workload
from bench.clock import Side, Work

CALLS = "calls/CPU-s"  # of decide


class Ground(NamedTuple):
    """A scenario and its jobs for several seeds."""

    setting: Setting
    empty: Empty
    workloads: list[Workload]

    @property
    def seeds(self) -> range:
        """Of the workloads, in their order."""
        return range(len(self.workloads))

    def policy(self, name: str) -> Policy:
        """A policy, compiled."""
        ready = registry.load(name, self.setting)
        simulator.warm_up([ready])
        return ready


def ground_of(scenario: Scenario, seeds: int = 1) -> Ground:
    """A scenario with its jobs for seeds 0, 1, ..."""
    setting = prepare(scenario)
    layout = setting.layout
    empty = Empty(layout.pools, layout.nodes, layout.gpus)
    return Ground(setting, empty, [generate(setting, seed) for seed in range(seeds)])


def ground(seeds: int, jobs: int | None = None) -> Ground:
    """Scenario paper16; jobs None = as many as it says."""
    return ground_of(adjusted(find_scenario("paper16"), jobs=jobs), seeds)


def _arguments(on: Ground, policy: Policy, seed: int) -> tuple[Any, ...]:
    """All that the compiled run is called with: a fresh world and an empty memory."""
    world, memory = open_world(on.empty, on.workloads[seed]), fresh_memory(policy.memory, seed)
    return compile_decide(policy.decide), policy.params, memory, answers(world), world


def episodes(on: Ground, policy: Policy) -> Side:
    """Only the compiled run; worlds are made ready before."""
    run = compiled_run()

    def ready() -> Work:
        prepared = [_arguments(on, policy, seed) for seed in on.seeds]

        def play() -> None:
            for arguments in prepared:
                run(*arguments)

        return play

    return ready


def prepared_runs(on: Ground, policy: Policy) -> Side:
    """As a caller from Python gets it: a fresh world, the run and the check for faults."""

    def play() -> None:
        for seed, workload in enumerate(on.workloads):
            simulator.run(on.empty, workload, policy, seed)

    return lambda: play


def generated_runs(on: Ground, policy: Policy) -> Side:
    """From the seed: the jobs are drawn, too."""

    def play() -> None:
        for seed in on.seeds:
            simulator.run(on.empty, generate(on.setting, seed), policy, seed)

    return lambda: play
