"""Schemas: how bits are shared out, and what is refused."""

import numpy as np
import pytest

from adlro.errors import ConfigError
from adlro.features.hypervectors.schema import MODEL, Role, Schema, key, place, space_of
from tests.plain import hypervectors as plain

USER, NAME = Role("user", "word", 3.0), Role("name", "word")


def space(*roles, bits=128):
    return space_of(Schema(roles, bits))


def test_bits_go_to_roles_in_proportion_to_their_weights():
    # one bit each and 126 to share: 3/4 of 126 = 94.5 and 31.5; of equal remainders the first wins
    got = space(USER, NAME)
    assert got.roles["bits"].tolist() == [96, 32]
    assert got.roles["first"].tolist() == [0, 96]
    assert got.masks[0].tolist() == [2**64 - 1, 2**32 - 1]
    assert got.masks[1].tolist() == [0, 2**64 - 2**32]


def test_every_bit_belongs_to_one_role():
    got = space(USER, NAME, Role("hour", "circle", 0.1, cells=2), bits=192)
    assert np.bitwise_xor.reduce(got.masks).tolist() == [2**64 - 1] * 3
    assert got.roles["bits"].sum() == 192
    assert got.roles["bits"].tolist() == plain.shares(
        Schema((USER, NAME, Role("hour", "circle", 0.1, cells=2)), 192)
    )


def test_a_bag_has_as_many_fillers_as_it_holds_words():
    got = space(USER, Role("tokens", "bag", most=3), NAME)
    assert got.roles["filler"].tolist() == [0, 1, 4]
    assert got.fillers == 5
    assert place(Schema((USER, Role("tokens", "bag", most=3), NAME)), "name") == 4


def test_a_bit_of_distance_takes_off_what_makes_a_role_worth_its_weight():
    # unrelated fillers differ in half of 128 bits: 64 * 2 * 4 / 128 = 4 nats, the weights' sum
    assert space(USER, NAME).nats_per_bit == 2 * 4 / 128


def test_the_role_of_the_gpu_model_is_known_by_its_name():
    assert space(USER, Role(MODEL, "word")).model == 1
    assert space(USER, NAME).model == -1


def test_keys_differ_by_role_and_by_text_and_last():
    assert key("user", "ada") == plain.key("user", "ada") == 10951694459066404471
    assert len({key("user", "ada"), key("name", "ada"), key("user", "Ada"), key("user", "")}) == 4


BAD = [
    ((), 128, "at least one role"),
    ((USER, USER), 128, "same name"),
    ((USER,), 100, "64 to 65536 bits"),
    ((USER,), 0, "64 to 65536 bits"),
    ((Role("x", "word", 0.0),), 128, "role 'x' of a pattern: its weight"),
    ((Role("x", "word", float("nan")),), 128, "its weight"),
    ((Role("x", "number"),), 128, "its kind"),
    ((Role("x", "word", most=2),), 128, "only a bag"),
    ((Role("x", "bag", most=0),), 128, "only a bag"),
    ((Role("x", "level", low=1.0, high=1.0),), 128, "its range is empty"),
    ((Role("x", "level", low=0.0, high=float("inf")),), 128, "its range is empty"),
    ((Role("x", "level", low=0.0, log=True),), 128, "log scale"),
    ((Role("x", "level", levels=1),), 128, "levels"),
    ((Role("x", "level", levels=4, cells=4),), 128, "fewer than levels"),
    ((Role("x", "circle", cells=1),), 128, "at least 2 cells"),
]


@pytest.mark.parametrize(("roles", "bits", "words"), BAD)
def test_a_schema_that_contradicts_itself_is_refused(roles, bits, words):
    with pytest.raises(ConfigError, match=words):
        space_of(Schema(roles, bits))


def test_a_role_that_is_not_there_has_no_place():
    with pytest.raises(ConfigError, match="no role 'nmae'"):
        place(Schema((USER, NAME)), "nmae")
