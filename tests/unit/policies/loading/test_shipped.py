"""The policy that is shipped: 200 recorded states in which it must go on choosing as it did."""

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.evaluate.explanation import watch
from adlro.features.start_kernel import FEATURES
from adlro.model.state import JOB, WHOLE
from adlro.nets.q_network import flat
from adlro.policies import registry
from adlro.policies.loading import learned
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests import record_choices
from tests.record_choices import (
    FILE,
    KINDS,
    OF_A_RUN,
    SEEDS,
    as_records,
    choices,
    compact,
    kept_jobs,
)
from tests.worlds import unlocked

SHIPPED = len(KINDS) * len(SEEDS) * OF_A_RUN


@pytest.fixture(scope="module")
def recorded():
    return record_choices.load()


@pytest.fixture(scope="module")
def network():
    return learned.shipped().network


def complaint(recorded, weights, found):
    """What is wrong with choices found for the weights of some hash; None = nothing."""
    if weights != recorded.weights:
        return (
            f"the shipped weights are not those that {FILE.name} was recorded with: "
            "python tests/record_choices.py"
        )
    changed = np.flatnonzero((found != recorded.choices).any(axis=1))
    if len(changed) == 0:
        return None
    i = changed[0]
    return (
        f"{len(changed)} choices of the shipped policy changed while its weights did not: ship a "
        f"new policy or undo. The first is state {i} ({recorded.origins[i]}): job and pool "
        f"{found[i].tolist()}, once {recorded.choices[i].tolist()}"
    )


def test_the_shipped_policy_chooses_as_it_was_recorded(recorded, network):
    weights = learned.shipped().card.sha256_weights
    said = complaint(recorded, weights, choices(recorded.views, flat(network)))
    assert said is None, said


def test_a_changed_choice_asks_for_a_new_policy(recorded):
    other = recorded.choices.copy()
    other[7] += 1
    said = complaint(recorded, recorded.weights, other)
    assert said.startswith("1 choices of the shipped policy changed while its weights did not")
    assert "ship a new policy or undo. The first is state 7" in said


def test_new_weights_ask_for_new_records(recorded):
    assert "python tests/record_choices.py" in complaint(recorded, "0" * 64, recorded.choices)


def test_the_order_of_the_features_changes_no_choice(recorded, network):
    order = np.random.default_rng(0).permutation(len(network.features))
    other = network._replace(
        features=tuple(network.features[i] for i in order), first=network.first[order]
    )
    assert flat(other).tolist() != flat(network).tolist()
    assert (choices(recorded.views, flat(other)) == recorded.choices).all()


def test_weights_in_another_order_than_their_names_do_change_choices(recorded, network):
    other = network._replace(first=network.first[::-1].copy())
    assert (choices(recorded.views, flat(other)) != recorded.choices).any()


def test_a_feature_that_the_policy_does_not_know_changes_no_choice(recorded, network):
    # As for a policy of yesterday that is handed a feature of today: it has no weights for it.
    known = [i for i, name in enumerate(network.features) if name != "waited"]
    old = network._replace(
        features=tuple(network.features[i] for i in known), first=network.first[known]
    )
    silent = network.first.copy()
    silent[[i for i in range(len(silent)) if i not in known]] = 0.0
    views = recorded.views
    found = choices(views, flat(old))
    assert (found == choices(views, flat(network._replace(first=silent)))).all()
    assert set(old.features) < set(FEATURES)


def test_a_field_that_came_later_is_0_in_recorded_rows():
    rows = np.array([(3.0, 2)], [("arrival", "f8"), ("gpus", "i4")])
    found = as_records(rows, JOB)
    assert (found["arrival"][0], found["gpus"][0], found["priority"][0]) == (3.0, 2, 0.0)


def test_a_field_that_left_is_noticed():
    with pytest.raises(ValueError, match="gone"):
        as_records(np.zeros(1, [("gone", "f8")]), JOB)


def test_the_recorded_states_are_many_and_different(recorded):
    assert len(recorded.views) == len(recorded.choices) == SHIPPED == 200
    assert len({view.now for view in recorded.views}) > 150
    assert all((np.diff(view.jobs["id"]) > 0).all() for view in recorded.views)
    waits = (recorded.choices[:, 0] < 0).mean()
    assert 0.1 < waits < 0.9
    assert any((view.jobs["share"] < WHOLE).any() for view in recorded.views)
    assert any((view.jobs["gpus"] > 1).any() for view in recorded.views)
    assert any((~view.eligible).any() for view in recorded.views)


def test_leaving_out_jobs_that_are_done_changes_no_choice(network):
    setting = prepare(adjusted(find_scenario("paper16"), jobs=120, load=1.1))
    policy, params, states = registry.load("min-min", setting), flat(network), []

    def see(view, answered, out):
        states.append(unlocked(view))
        return False

    watch(setting, generate(setting, 5), policy, 5, see)
    compacts = [compact(view) for view in states]
    assert min(len(view.jobs) for view in compacts[50:]) < 50
    for all_jobs, few, view in zip(
        choices(states, params), choices(compacts, params), states, strict=True
    ):
        kept = kept_jobs(view)
        assert few[1] == all_jobs[1]
        assert all_jobs[0] == (kept[few[0]] if few[0] >= 0 else -1)


def test_the_records_are_plain_and_small():
    assert FILE.stat().st_size < 2 * 2**20
    with np.load(FILE, allow_pickle=False) as archive:
        assert all(not archive[name].dtype.hasobject for name in archive.files)


def test_what_is_saved_is_read_again(recorded, tmp_path):
    file = tmp_path / "again.npz"
    record_choices.save(recorded, file)
    again = record_choices.load(file)
    assert (again.weights, again.origins) == (recorded.weights, recorded.origins)
    for mine, theirs in zip(again.views, recorded.views, strict=True):
        assert (mine.now, mine.arrived) == (theirs.now, theirs.arrived)
        arrays = zip((*mine[1:9], mine.recent), (*theirs[1:9], theirs.recent), strict=True)
        assert all(a.tobytes() == b.tobytes() for a, b in arrays)
