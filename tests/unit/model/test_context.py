"""The context of a policy: one from a live cluster, and that a scenario's hides the truth."""

import inspect
import re

import numpy as np
import pytest

from adlro.config.files import find_scenario
from adlro.errors import PolicyError
from adlro.model.context import Context, ContextCopy, Rulebook, copy_context
from adlro.model.slurm import Slurm
from adlro.model.state import DEMAND, QUOTA
from adlro.policies import registry
from adlro.policies.loading import user_file
from adlro.workloads.generate import generate
from adlro.workloads.setting import Setting, prepare
from tests.hidden import TRUTH, assert_hides_the_truth, reached
from tests.worlds import build, job, lay, nodes, play

NOTHING_KNOWN = {
    "static-affinity": "it needs job types, which this cluster does not know",
    "static-affinity-lp": "it needs job types, which this cluster does not know",
    "lp-sjf": "it needs job types, which this cluster does not know",
    "lp-price": "it needs the prices of the capacity LP, which this cluster does not know",
    "fgd": "it needs typical demands, which this cluster does not know",
}


def live(*groups, rows=256):
    """The context of a live cluster: its nodes, and no knowledge of future jobs."""
    layout = lay(*groups)
    pools, models = len(layout.pools), len(layout.models)
    rules = Rulebook(
        lambda jobs: np.ones((len(jobs), pools), np.bool_),
        lambda jobs: np.full((len(jobs), 2), -1),
        np.zeros(0, QUOTA),
        np.zeros((0, models), np.int64),
        np.zeros(0),
    )
    return ContextCopy(
        name="a live cluster", rows=rows, models=layout.models, pools=layout.pools,
        nodes=layout.nodes, gpus=layout.gpus, types=0, affinity=(),
        type_shares=np.zeros((0, pools)), lp_prices=np.zeros(0), demands=np.zeros(0, DEMAND),
        placement=np.zeros(0, DEMAND), rules=rules, partitions=("main",),
        slurm=Slurm(),
    )  # fmt: skip


MIXED = live(nodes("V100", 4, 2), nodes("T4", 2, 3))


def refusals(context):
    """Reasons of all policies that refuse this context, by name; loads all others."""
    found = {}
    for name in registry.names():
        reason = registry.refusal(name, context)
        if reason is None:
            ready = registry.load(name, context)
            assert np.isfinite(ready.params).all()
            assert ready.memory >= 0
        else:
            found[name] = reason
            said = f"policy {name} cannot run {context.name}: {reason}"
            with pytest.raises(PolicyError, match=f"^{re.escape(said)}$"):
                registry.load(name, context)
    return found


def test_every_policy_loads_on_a_live_cluster_or_refuses_with_a_reason():
    found = refusals(MIXED)
    shape = found.pop("paper-dqn")
    assert shape.startswith("its weights are for 4 nodes of up to 4 GPUs")
    assert "and here are 5 nodes of up to 4 GPUs, 14 GPUs and 0 job types" in shape
    assert found == NOTHING_KNOWN


def test_every_policy_loads_on_a_cluster_of_one_gpu_model_or_refuses():
    assert set(refusals(live(nodes("A100", 8)))) == {*NOTHING_KNOWN, "paper-dqn"}


def test_a_policy_that_loads_on_a_live_cluster_can_look_ahead_there():
    ready = registry.load("min-min+lookahead", MIXED)
    assert ready.name == "min-min+lookahead"


WORLD = build([nodes("V100", 2), nodes("T4", 2)], [job(j, 50 - j, 60 - j) for j in range(40)])


@pytest.mark.parametrize("name", ["min-min", "adlro", "fcfs+lookahead", "hetero-srpt", "sia"])
def test_policies_loaded_from_a_minimal_context_run_to_the_end(name):
    # Type 0 of a job is a number like any other; nothing is known of it.
    result = play(WORLD, registry.load(name, live(nodes("V100", 2), nodes("T4", 2))))
    assert (result.outcome["finish"] > 0).all()


# The context that a policy file receives.

LOOKS = f"""
heard = []
def refuses(context):
    heard.append(context)
def params(context):
    heard.append(context)
    return [context.rows, context.types, len(context.pools)]
def memory(context):
    heard.append(context)
    return context.rows
def decide({", ".join(user_file.ARGUMENTS)}):
    return 0
"""


@pytest.fixture(scope="module")
def rough():
    """A scenario with failures, changes and slices that slow each other."""
    setting = prepare(find_scenario("rough64"))
    scenario = setting.scenario
    assert scenario.failures is not None
    assert scenario.changes
    assert (setting.colocation != 1).any()
    return setting


def test_a_scenario_provides_every_field_of_a_context(rough):
    told = copy_context(rough)
    assert told.name == "rough64"
    assert told.rows == rough.scenario.jobs == len(generate(rough, 0).jobs)
    assert told.types == len(rough.scenario.types) == len(told.affinity) == len(told.type_shares)
    assert len(told.pools) == len(told.lp_prices) == told.type_shares.shape[1]
    assert len(told.models) == generate(rough, 0).est.shape[1]
    assert len(told.demands) > 0


def test_the_fields_of_a_context_are_those_of_the_protocol():
    named = [name for name, value in vars(Context).items() if isinstance(value, property)]
    assert tuple(named) == ContextCopy._fields


def test_a_policy_file_receives_only_the_fields_of_a_context(rough, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(LOOKS)
    ready = registry.load(str(path), rough)
    assert ready.params.tolist() == [rough.rows, rough.types, len(rough.pools)]
    assert registry.refusal(str(path), rough) is None
    heard = inspect.unwrap(ready.decide).__globals__["heard"]
    assert len(heard) == 3  # refusal executes the file again
    for context in heard:
        assert type(context) is ContextCopy
        assert not isinstance(context, Setting)
        assert {name for name in dir(context) if not name.startswith("_")} - set(dir(())) == set(
            ContextCopy._fields
        )
        for name in TRUTH:
            with pytest.raises(AttributeError):
                getattr(context, name)


@pytest.mark.parametrize("part", ["params", "memory", "refuses"])
@pytest.mark.parametrize("name", ["scenario", "played", "colocation"])
def test_an_error_in_a_policy_file_names_its_line(rough, tmp_path, part, name):
    path = tmp_path / "mine.py"
    path.write_text(LOOKS.replace("heard = []", f"def {part}(x):\n    return x.{name}\nheard = []"))
    text = path.read_text().replace(f"\ndef {part}(context)", f"\ndef other_{part}(context)")
    path.write_text(text)
    with pytest.raises(PolicyError, match=rf"mine\.py:3: AttributeError: .*'{name}'$"):
        registry.load(str(path), rough)


@pytest.mark.parametrize("name", ["rough64", "datacenter"])
def test_nothing_that_a_context_holds_leads_to_the_truth(name):
    # The rules are functions, and their closures can be inspected.
    assert_hides_the_truth(prepare(find_scenario(name)))


def test_a_reference_to_the_setting_is_detected(rough):
    rules = rough.rules._replace(holders=lambda jobs: rough.quotas.holders(jobs))
    told = copy_context(rough)._replace(rules=rules)
    assert any(one is rough for one in reached(told))
    assert any(one is rough.colocation for one in reached(told))
