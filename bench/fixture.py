"""The scenario and workloads that benchmarks run on, and three ways to time the kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

from adlro.config.files import adjusted, find_scenario
from adlro.config.scenario import Scenario
from adlro.policies import registry
from adlro.policies.registry import Policy
from adlro.sim import simulator
from adlro.sim.signature import compile_decide, compiled_run
from adlro.sim.world import EmptyCluster, decision_buffer, fresh_memory, open_world
from adlro.workloads.generate import generate
from adlro.workloads.setting import Setting, prepare
from adlro.workloads.workload import Workload
from bench.clock import Setup, Work

CALLS = "calls/CPU-s"  # calls of decide


class Fixture(NamedTuple):
    """A prepared scenario with its jobs for several seeds."""

    setting: Setting
    empty: EmptyCluster
    workloads: list[Workload]

    @property
    def seeds(self) -> range:
        """Seeds of the workloads."""
        return range(len(self.workloads))

    def policy(self, name: str) -> Policy:
        """Load and compile a policy."""
        policy = registry.load(name, self.setting)
        simulator.warm_up([policy])
        return policy


def fixture_of(scenario: Scenario, seeds: int = 1) -> Fixture:
    """Prepare a scenario with its jobs for seeds 0, 1, ..."""
    setting = prepare(scenario)
    layout = setting.layout
    empty = EmptyCluster(layout.pools, layout.nodes, layout.gpus)
    return Fixture(setting, empty, [generate(setting, seed) for seed in range(seeds)])


def paper16(seeds: int, jobs: int | None = None) -> Fixture:
    """Prepare scenario paper16; jobs None = the scenario's own number."""
    return fixture_of(adjusted(find_scenario("paper16"), jobs=jobs), seeds)


def _arguments(fixture: Fixture, policy: Policy, seed: int) -> tuple[Any, ...]:
    """Arguments of the compiled run: the policy, a fresh world and an empty memory."""
    world = open_world(fixture.empty, fixture.workloads[seed])
    memory = fresh_memory(policy.memory, seed)
    return compile_decide(policy.decide), policy.params, memory, decision_buffer(world), world


def episodes(fixture: Fixture, policy: Policy) -> Setup:
    """Time the compiled run only; worlds are built beforehand."""
    run = compiled_run()

    def ready() -> Work:
        prepared = [_arguments(fixture, policy, seed) for seed in fixture.seeds]

        def play() -> None:
            for arguments in prepared:
                run(*arguments)

        return play

    return ready


def prepared_runs(fixture: Fixture, policy: Policy) -> Setup:
    """Time what a Python caller pays: building the world, the run and its checks."""

    def play() -> None:
        for seed, workload in enumerate(fixture.workloads):
            simulator.run(fixture.empty, workload, policy, seed)

    return lambda: play


def generated_runs(fixture: Fixture, policy: Policy) -> Setup:
    """Time everything from the seed: generating the jobs as well."""

    def play() -> None:
        for seed in fixture.seeds:
            simulator.run(fixture.empty, generate(fixture.setting, seed), policy, seed)

    return lambda: play
