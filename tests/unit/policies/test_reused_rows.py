"""Every policy decides the same whether a job has a row for itself or rows are reused."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.policies import registry
from adlro.sim import simulator
from adlro.sim.world import EmptyCluster
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.reused import play_reused

PYTHON = [name for name in registry.names() if not registry.facts(name).is_compiled]
COMPILED = [name for name in registry.names() if registry.facts(name).is_compiled]
AHEAD = ["min-min+lookahead", "fcfs+lookahead"]
CALM = 0.2  # a load that the weakest policies carry without a queue that only grows
LOADS = {"adlro": 0.8, "drain-argmin": 0.8, "min-min": 0.8, "adlro-preemptive": 0.7}


def setting_for(name, jobs, rows, scenario="paper16"):
    """A scenario, and the same told to be a table of fewer rows."""
    setting = prepare(adjusted(find_scenario(scenario), jobs=jobs, load=LOADS.get(name, CALM)))
    fewer = setting._replace(scenario=setting.scenario.model_copy(update={"jobs": rows}))
    return setting, fewer


def assert_same_decisions(name, jobs, rows, *, compiled=False, scenario="paper16"):
    setting, fewer = setting_for(name, jobs, rows, scenario)
    layout, workload = setting.layout, generate(setting, 7)
    empty = EmptyCluster(layout.pools, layout.nodes, layout.gpus)
    usual = simulator.run(empty, workload, registry.load(name, setting), 0).outcome
    shared = play_reused(empty, workload, registry.load(name, fewer), rows, compiled=compiled)
    different = np.flatnonzero(usual != shared)
    assert len(different) == 0, f"{name}: {len(different)} of {jobs} jobs, first {different[:5]}"


@pytest.mark.parametrize("name", [*COMPILED, *PYTHON, *AHEAD])
def test_rows_that_are_reused_change_no_decision(name):
    assert_same_decisions(name, 300 if name in PYTHON else 500, 200 if name in PYTHON else 250)


def test_a_table_that_is_too_small_is_told_from_one_that_will_do():
    with pytest.raises(AssertionError, match="100 rows are too few"):
        assert_same_decisions("fcfs", 700, 100)


def test_preemptions_and_failures_meet_reused_rows_too():
    for name in ("tiresias", "adlro-preemptive"):
        assert_same_decisions(name, 900, 500, scenario="rough64")


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_a_hundred_thousand_jobs_in_two_thousand_rows(name):
    assert_same_decisions(name, 100_000, 2_000, compiled=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PYTHON, *AHEAD])
def test_many_jobs_in_few_rows_for_policies_that_call_a_solver(name):
    assert_same_decisions(name, 4_000, 300)
