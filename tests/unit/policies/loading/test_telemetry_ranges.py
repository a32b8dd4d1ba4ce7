"""A learned policy that reads telemetry: its files, what is refused, and what it does."""

import hashlib
import json

import numpy as np
import pytest

from adlro.errors import PolicyError
from adlro.features.start_kernel import EVERYTHING, FEATURES, MOST_CHOICES, PLAIN, kinds_of
from adlro.nets.q_network import UNITS, Network, flat, scratch_size
from adlro.policies import registry
from adlro.policies.adlro import decide
from adlro.policies.loading import card, learned, telemetry_ranges
from adlro.sim import simulator
from adlro.telemetry import normalise
from tests import record_choices, trained
from tests.trained import METERS, NORM, ORIGIN, forged, refused, with_meters, zipped
from tests.worlds import build, gpu_speed, job, lay, nodes, reading


def test_what_was_learned_about_telemetry_is_saved_and_read_bit_for_bit(tmp_path):
    written = learned.save(tmp_path / "m.npz", with_meters(), ORIGIN)
    found = learned.load(tmp_path / "m.npz")
    assert written.telemetry == found.card.telemetry == ("T4", "V100")
    norm = found.network.norm
    assert norm.models == NORM.models
    assert (norm.counts.dtype, norm.counts.tobytes()) == (np.int64, NORM.counts.tobytes())
    assert norm.outside.tolist() == NORM.outside.tolist()
    assert norm.outside.sum() == 1  # the reading of 999 degrees
    again = tmp_path / "again.npz"
    learned.save(again, *found)
    assert again.read_bytes() == (tmp_path / "m.npz").read_bytes()


def test_the_card_of_a_policy_without_telemetry_does_not_name_it(tmp_path):
    path = trained.saved(tmp_path)
    assert "telemetry" not in json.loads(path.with_suffix(".json").read_text())
    assert learned.load(path).network.norm is None
    assert "telemetry" not in learned.load(path).card.words


def test_the_words_of_a_card_say_that_telemetry_is_read(tmp_path):
    words = learned.save(tmp_path / "m.npz", with_meters(), ORIGIN).words
    assert words.endswith("; reads telemetry, seen of 2 GPU models in training")


def test_a_network_that_reads_telemetry_is_not_saved_without_its_ranges(tmp_path):
    with pytest.raises(PolicyError, match="'telemetry': is not there, but 'meters_drive' needs it"):
        learned.save(tmp_path / "m.npz", with_meters()._replace(norm=None), ORIGIN)
    assert list(tmp_path.iterdir()) == []


def test_a_network_that_reads_none_is_not_saved_with_them(tmp_path):
    odd = trained.network()._replace(norm=NORM)
    with pytest.raises(PolicyError, match="'telemetry': is there, but no feature needs it"):
        learned.save(tmp_path / "m.npz", odd, ORIGIN)


def arrays(**changes):
    """Of the .npz file of `with_meters()`."""
    named = {name: getattr(with_meters(), name) for name in Network._fields[1:7]}
    named |= {"telemetry_counts": NORM.counts, "telemetry_outside": NORM.outside}
    return {name: value for name, value in (named | changes).items() if value is not None}


def odd(folder, models=("T4", "V100"), **changes):
    """What is said of files whose hashes are right."""
    weights = zipped(arrays(**changes))
    return refused(forged(folder, weights, features=list(METERS), telemetry=list(models)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"telemetry_counts": None}, "'telemetry_counts.npy' is in it 0 times, not once"),
        ({"telemetry_outside": None}, "'telemetry_outside.npy' is in it 0 times, not once"),
        ({"telemetry_counts": NORM.counts[:1]}, "has shape (1, 3, 512); by the card it is"),
        ({"telemetry_counts": NORM.counts * 1.0}, "is of type <f8, not int64 (<i8)"),
        ({"telemetry_outside": NORM.outside - 1}, "holds a count below 0"),
        ({"telemetry_counts": NORM.counts + 2**60}, "or beyond 281,474,976,710,656"),
        ({"first": np.zeros((3, 4), int)}, "is of type <i8, not float32 or float64"),
        ({"telemetry_models": np.array(["T4"])}, "is in it and no array of a policy"),
    ],
)
def test_a_state_that_is_not_what_it_must_be_is_refused(tmp_path, changes, said):
    assert said in odd(tmp_path, **changes)


@pytest.mark.parametrize("models", [("V100", "T4"), ("T4", "T4")])
def test_models_that_are_not_sorted_or_there_twice_are_refused(tmp_path, models):
    assert odd(tmp_path, models) == (
        ".json: telemetry: the learned telemetry bounds are damaged; train again"
    )


def test_a_damaged_card_is_refused_as_any_other(tmp_path):
    path = tmp_path / "m.npz"
    learned.save(path, with_meters(), ORIGIN)
    text = path.with_suffix(".json").read_text()
    path.with_suffix(".json").write_text(text.replace('"V100"', '"V101"'))
    assert "was changed after it was written" in refused(path)


def test_ranges_are_those_of_the_state_model_by_model():
    models = lay(nodes("T4"), nodes("V100 16GB")).models
    found = telemetry_ranges.ranges(NORM, models).reshape(2, -1)
    assert found[0, :2].tolist() == list(normalise.bounds(NORM, "T4", "temperature"))
    assert found[0, 2:4].tolist() == list(normalise.bounds(NORM, "T4", "power"))
    unseen = found[1].tolist()
    assert unseen == [30.0, 85.0, 0.0, models[1].tdp_w, models[1].bandwidth_gb_s]
    assert telemetry_ranges.ranges(None, models).reshape(2, -1)[1].tolist() == unseen


def test_params_end_with_the_ranges_only_where_telemetry_is_read(tmp_path):
    layout = lay(nodes("T4"), nodes("V100 16GB"))
    with_, without = tmp_path / "with.npz", trained.saved(tmp_path, "without.npz")
    learned.save(with_, with_meters(), ORIGIN)
    params = learned.load(with_).params_for(layout)
    assert params.tolist() == [*flat(with_meters()), *telemetry_ranges.ranges(NORM, layout.models)]
    assert learned.load(without).params_for(layout).tolist() == flat(trained.network()).tolist()


def test_a_network_that_has_seen_nothing_reads_by_the_catalogue():
    layout = lay(nodes("T4"), nodes("V100 16GB"))
    unseen = with_meters()._replace(norm=None)
    params = telemetry_ranges.params_of(unseen, layout, FEATURES)
    ranges = telemetry_ranges.ranges(None, layout.models)
    assert params[len(flat(unseen)) :].tolist() == ranges.tolist()


def avoiding(name, folder):
    """A policy on disk for which a choice costs 50 tau times a feature, beside its drain cost."""
    one, nothing = np.ones((1, 1)), np.zeros(1)
    last = np.array([50.0])
    norm = normalise.empty() if name.startswith("meters") else None
    network = Network((name,), np.array([1.0, 0.0]), one, nothing, one, nothing, last, norm)
    path = folder / f"{name}.npz"
    learned.save(path, network, ORIGIN)
    return str(path)


READINGS = [
    [reading(1.0, 400, 40, 200), reading(1.0, 100, 30, 50)],
    [reading(0.0, 0, 30, 50), reading(0.0, 0, 30, 10)],
]


def pools_taken(name, folder, **more):
    """Where each of three jobs runs: job 0 a V100, job 2 behind job 1 whatever is better."""
    jobs = [job(0, 90, 99), job(2, 5, 6)]
    world = build([nodes("V100", 2), nodes("T4", 2)], jobs, **more)
    policy = registry.load(avoiding(name, folder), world.setting)
    return simulator.run(world.empty, world.workload, policy, 0).outcome["pool"].tolist()


def test_a_policy_that_avoids_heat_takes_the_cooler_pool(tmp_path):
    # The free V100 is at 30 + 44 degrees since 1: 0.8 of the catalogue's range of 30 to 85.
    hot = {"events": [gpu_speed(1, 1, 0.5, heat=44)], "readings": READINGS}
    assert pools_taken("meters_heat_free", tmp_path, **hot) == [0, 1]
    cool = {"readings": READINGS}
    assert pools_taken("meters_heat_free", tmp_path, **cool) == [0, 0]
    assert pools_taken("meters_heat_free", tmp_path) == [0, 0]  # no telemetry at all


def test_a_policy_that_avoids_its_like_takes_the_pool_without(tmp_path):
    assert pools_taken("alike_here", tmp_path) == [0, 1]


def views():
    return record_choices.load().views


def answers(network, memory_of):
    """Job and pool that adlro's decide starts in each recorded state, -1 = none."""
    found = []
    for view in views():
        params = flat(network)
        if network.reads_telemetry:
            params = np.concatenate([params, np.tile([30, 85, 0, 300, 900.0], view.est.shape[1])])
        memory = memory_of(scratch_size(len(view.gpus), len(view.pools)))
        out = np.zeros(1, record_choices.DECISION)
        count = decide(view, params, memory, out)
        found.append((int(out["job"][0]), int(out["pool"][0])) if count else (-1, -1))
    return found


def test_what_no_weight_looks_at_is_not_filled_in():
    memories = []

    def rubbish(size):
        memories.append(np.full(size, np.nan))
        return memories[-1]

    found = answers(learned.shipped().network, rubbish)
    assert found == [tuple(row) for row in record_choices.load().choices.tolist()]
    for memory in memories:
        size = MOST_CHOICES * len(FEATURES)
        rows = memory[UNITS:][:size].reshape(MOST_CHOICES, len(FEATURES))
        assert np.isnan(rows[:, len(PLAIN) :]).all()
        assert not np.isnan(rows[0, : len(PLAIN)]).any()


def test_features_of_no_weight_change_no_choice_if_they_are_filled_in():
    network = learned.shipped().network
    more = tuple(name for name in FEATURES if name not in PLAIN)
    silent = np.zeros((len(more), network.first.shape[1]))
    wide = network._replace(
        features=(*network.features, *more),
        first=np.concatenate([network.first, silent]),
        norm=normalise.empty(),
    )
    assert flat(wide)[5] == EVERYTHING == 3
    assert answers(wide, np.zeros) == answers(network, np.zeros)


def test_each_kind_of_feature_has_a_bit_of_its_own():
    assert kinds_of(PLAIN) == 0
    assert kinds_of(["wait", "meters_heat"]) == 1
    assert kinds_of(["queue_3"]) == 2
    assert kinds_of(FEATURES) == EVERYTHING


def test_the_files_of_the_shipped_policies_are_as_they_were():
    for name in ("adlro", "adlro-preemptive"):
        found = learned.shipped(name)
        weights = learned.shipped_file(name).read_bytes()
        assert hashlib.sha256(weights).hexdigest() == found.card.sha256_weights
        assert found.card.telemetry is None
    assert card.FORMAT == 1
