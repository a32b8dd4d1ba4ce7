"""adlro with its decisions recorded: it decides the same, and records what its network saw."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.evaluate import out_of_range
from adlro.evaluate.compare import run_one
from adlro.evaluate.explanation import watch
from adlro.features import start_kernel
from adlro.features.explanation_kernel import CHOICE, write_choices
from adlro.features.start_kernel import FEATURES, MOST_CHOICES, PLAIN
from adlro.policies import recording, registry
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare

SEED = 3


@pytest.fixture(scope="module")
def setting():
    return prepare(adjusted(find_scenario("paper16"), jobs=120, load=1.1))


@pytest.fixture(scope="module")
def policy(setting):
    return registry.load("adlro", setting)


@pytest.fixture(scope="module")
def seen(setting, policy):
    """The number of options and their plain features at each decision of the network."""
    found = []

    def see(view, answered, out):
        size = start_kernel.scratch_size(len(view.gpus), len(view.pools))
        table, features = (
            np.zeros((MOST_CHOICES, width)) for width in (len(CHOICE), len(FEATURES))
        )
        count, _, _ = write_choices(view, 0, np.zeros(0), np.zeros(size), table, features)
        if count > 0 and len(view.running) > 0:
            found.append(features[:count, : len(PLAIN)].astype(np.float32))
        return False

    watch(setting, generate(setting, SEED), policy, SEED, see)
    return found


def recorder(policy, most):
    own = policy.memory
    return policy._replace(
        decide=recording.record,
        params=recording.recording_params(policy.params, own),
        memory=recording.recording_memory(own, most),
    )


def test_a_recorded_run_has_the_same_outcome(setting, policy):
    workload = generate(setting, SEED)
    own = run_one(setting, workload, policy, SEED)
    other = run_one(setting, workload, recorder(policy, 10), SEED)
    assert (own.outcome == other.outcome).all()
    assert own.totals.tolist() == other.totals.tolist()


def test_records_are_the_features_of_every_decision_of_the_network(
    setting, policy, seen, monkeypatch
):
    monkeypatch.setattr(out_of_range, "MOST_DECISIONS", 1000)
    found = out_of_range.record_run(setting, generate(setting, SEED), policy, SEED)
    assert len(found.features) == len(seen) > 100
    for features, is_option, wanted in zip(found.features, found.is_option, seen, strict=True):
        assert is_option.tolist() == [i < len(wanted) for i in range(MOST_CHOICES)]
        assert (features[is_option][:, : len(PLAIN)] == wanted).all()


@pytest.mark.parametrize("most", [2, 10, 64])
def test_a_full_memory_keeps_records_at_equal_intervals(setting, policy, seen, monkeypatch, most):
    monkeypatch.setattr(out_of_range, "MOST_DECISIONS", most)
    found = out_of_range.record_run(setting, generate(setting, SEED), policy, SEED)
    every = 1
    while len(range(0, len(seen), every)) >= most:
        every *= 2
    wanted = seen[::every]
    assert most / 2 <= len(found.features) == len(wanted) < most
    for features, is_option, own in zip(found.features, found.is_option, wanted, strict=True):
        assert (features[is_option][:, : len(PLAIN)] == own).all()
