"""Learned policies of several members, with caution and with clamped inputs, on disk."""

import json
import re

import numpy as np
import pytest

from adlro.errors import PolicyError
from adlro.nets.q_network import MOST_MEMBERS
from adlro.policies.loading import learned
from tests.trained import NAMES, ORIGIN, arrays, forged, network, refused, saved, together, zipped

KEYS = {"members", "caution", "clamped"}
BOUNDS = np.array([[-1.0, 0, 0, 0.25, -0.5], [1, 3, 1, 0.75, 9]])  # of NAMES


def ensemble(count=3, caution=1.5, **more):
    """A network of random members whose inputs are clamped."""
    nets = [network(seed=seed, **more) for seed in range(count)]
    return together(*nets, caution=caution)._replace(bounds=BOUNDS)


def keys_of(path):
    return json.loads(path.with_suffix(".json").read_text())


def test_members_caution_and_bounds_are_loaded_bit_for_bit(tmp_path):
    wanted, path = ensemble(), tmp_path / "toy.npz"
    card = learned.save(path, wanted, ORIGIN)
    found = learned.load(path)
    assert found.card == card
    assert (found.network.members, found.network.hidden) == (3, (4, 3))
    assert found.network.caution == 1.5
    assert found.network.bounds.tobytes() == BOUNDS.tobytes()
    for a, b in zip(found.network.weights, wanted.weights, strict=True):
        assert (a.shape, a.tobytes()) == (b.shape, b.tobytes())
    assert found.params.tobytes() == learned.networks.flat(wanted).tobytes()


def test_a_policy_of_members_that_was_loaded_is_saved_as_the_same_bytes(tmp_path):
    path, copy = tmp_path / "toy.npz", tmp_path / "copy.npz"
    learned.save(path, ensemble(), ORIGIN)
    learned.save(copy, *learned.load(path))
    for suffix in learned.SUFFIXES:
        assert copy.with_suffix(suffix).read_bytes() == path.with_suffix(suffix).read_bytes()
    assert keys_of(copy).keys() >= KEYS


def test_the_card_says_what_is_special_about_the_network_in_words(tmp_path):
    card = learned.save(tmp_path / "toy.npz", ensemble(), ORIGIN)
    assert card.words == (
        "3 members; 5 features, hidden layers of 4 and 3 units; caution 1.5; inputs clamped to "
        "their range in training"
    )
    alone = learned.save(tmp_path / "alone.npz", network(), ORIGIN)
    assert alone.words == "5 features, hidden layers of 4 and 3 units"


def test_the_card_of_a_single_network_has_none_of_the_keys_as_before_there_were_members(tmp_path):
    assert not KEYS & keys_of(saved(tmp_path)).keys()
    only_clamped = tmp_path / "clamped.npz"
    learned.save(only_clamped, network()._replace(bounds=BOUNDS), ORIGIN)
    assert KEYS & keys_of(only_clamped).keys() == {"clamped"}
    only_cautious = tmp_path / "cautious.npz"
    learned.save(only_cautious, network()._replace(caution=2.0), ORIGIN)
    assert KEYS & keys_of(only_cautious).keys() == {"members", "caution"}
    assert learned.load(only_cautious).network.caution == 2


@pytest.mark.parametrize("name", ["forged", "shipped"])
def test_files_without_these_keys_are_one_member_without_caution_and_bounds(tmp_path, name):
    path = learned.shipped_file("adlro-preemptive")
    if name == "forged":
        path = forged(tmp_path, zipped(arrays()))
    assert not KEYS & keys_of(path).keys()
    found = learned.load(path).network
    assert (found.members, found.caution, found.bounds) == (1, 0, None)


def two_members(**changes):
    """The arrays of a network of two members."""
    pair = together(network(), network(seed=1))
    named = {name: getattr(pair, name) for name in arrays()}
    return {key: value for key, value in (named | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("named", "keys", "said"),
    [
        (arrays(), {"members": 2}, "'first' has shape (5, 4); by the card it is (5, 8)"),
        (two_members(), {}, "'first' has shape (5, 8); by the card it is (5, 4)"),
        (two_members(last=np.zeros(5)), {"members": 2}, "'last' has shape (5,); by the card it is"),
        (arrays(), {"clamped": True}, "'bounds.npy' is in it 0 times, not once"),
        (arrays(bounds=BOUNDS), {}, "'bounds.npy' is in it and no array of a policy"),
        (arrays(bounds=BOUNDS[:, 1:]), {"clamped": True}, "'bounds' has shape (2, 4); by the card"),
        (
            arrays(bounds=np.full_like(BOUNDS, np.nan)),
            {"clamped": True},
            "'bounds' holds nan, inf or a number",
        ),
        (
            arrays(bounds=np.full_like(BOUNDS, np.inf)),
            {"clamped": True},
            "'bounds' holds nan, inf or a number",
        ),
    ],
)
def test_arrays_that_do_not_fit_the_members_and_bounds_of_the_card_are_refused(
    tmp_path, named, keys, said
):
    with np.errstate(invalid="ignore"):
        assert refused(forged(tmp_path, zipped(named), **keys)).startswith(f".npz: {said}")


def test_a_forged_pair_of_members_is_loaded_if_nothing_is_wrong_with_it(tmp_path):
    weights = zipped(two_members(bounds=BOUNDS))
    path = forged(tmp_path, weights, members=2, caution=0.5, clamped=True)
    found = learned.load(path).network
    assert (found.members, found.caution, found.features) == (2, 0.5, NAMES)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (ensemble(MOST_MEMBERS + 1), "'members': input should be less than or equal to 8"),
        (ensemble(caution=-1.0), "'caution': input should be greater than or equal to 0"),
        (ensemble()._replace(bounds=BOUNDS[:, :4]), "'bounds' has shape (2, 4); by the card it"),
    ],
)
def test_a_network_whose_members_could_not_be_loaded_is_not_saved(tmp_path, wrong, said):
    with pytest.raises(PolicyError, match=re.escape(said)):
        learned.save(tmp_path / "toy.npz", wrong, ORIGIN)
    assert list(tmp_path.iterdir()) == []
