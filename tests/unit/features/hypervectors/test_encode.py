"""Patterns: as alike as the jobs are, and those of the plain twin."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.features.hypervectors.encode_kernel import (
    distance,
    encode,
    level_of,
    number_key,
    ones,
    similarity,
)
from adlro.features.hypervectors.schema import Role, Schema, key, space_of
from tests.plain import hypervectors as plain

SCHEMA = Schema(
    (
        Role("user", "word", 2.0),
        Role("tokens", "bag", 2.0, most=3),
        Role("requested", "level", 2.0, low=1.0, high=1024.0, log=True, levels=41, cells=2),
        Role("hour", "circle", 1.0, low=0.0, high=24.0, levels=24, cells=4),
        Role("load", "level", 1.0, levels=11),
    ),
    bits=512,
)
SPACE = space_of(SCHEMA)
USER, TOKENS, REQUESTED, HOUR, LOAD = range(5)
keys = st.integers(1, 2**64 - 1)
compiled = settings(max_examples=60, deadline=None)  # the first call compiles


def pattern(space=SPACE, **fillers):
    """Pattern and mask of fillers by the name of the role; a list for a bag."""
    filling = np.zeros(space.fillers, np.uint64)
    for r, role in enumerate(SCHEMA.roles):
        values = fillers.get(role.name, [])
        values = values if isinstance(values, list) else [values]
        first = space.roles[r]["filler"]
        filling[first : first + len(values)] = values
    bits, known = np.zeros((2, len(space.binding)), np.uint64)
    encode(filling, space, bits, known)
    return bits, known


def alike(role, one, other):
    """Similarity of two fillers of a role."""
    name = SCHEMA.roles[role].name
    (a, _), (b, _) = pattern(**{name: one}), pattern(**{name: other})
    return similarity(a, b, SPACE.masks[role])


@compiled
@given(st.integers(0, 2**64 - 1))
def test_ones_are_the_bits_that_are_set(word):
    assert ones(np.uint64(word)) == word.bit_count()


@compiled
@given(keys, st.lists(keys, max_size=3), st.integers(0, 41), st.integers(0, 24), st.integers(0, 11))
def test_the_plain_twin_writes_the_same_bits(user, tokens, requested, hour, load):
    bits, known = pattern(user=user, tokens=tokens, requested=requested, hour=hour, load=load)
    theirs = plain.encode(SCHEMA, [[user], tokens, [requested], [hour], [load]])
    for got, want in zip((bits, known), theirs, strict=True):
        assert np.unpackbits(got.view(np.uint8), bitorder="little").tolist() == want


@compiled
@given(keys, keys)
def test_binding_is_its_own_inverse(user, other):
    bits, _ = pattern(user=user)
    again, _ = pattern(user=other)
    binding = SPACE.binding
    assert ((bits ^ binding) ^ binding == bits).all()
    # a distance does not see the binding: both are bound to the same roles
    free = distance(bits ^ binding, again ^ binding, SPACE.masks[USER])
    assert free == distance(bits, again, SPACE.masks[USER])


@compiled
@given(keys, keys)
def test_words_are_equal_or_unrelated(one, other):
    # 128 bits: chance makes a similarity of at most 6 / sqrt(128) = 0.53
    assert alike(USER, one, one) == 1.0
    if one != other:
        assert abs(alike(USER, one, other)) < 0.53


def test_a_pattern_is_similar_to_each_of_its_parts_and_to_nothing_else():
    ada, lin = key("user", "ada"), key("user", "lin")
    whole, known = pattern(user=ada, requested=7, hour=3)
    assert sum(map(int.bit_count, known.tolist())) == 128 + 128 + 64
    part, only = pattern(user=ada)
    assert similarity(part, whole, only) == 1.0
    stranger, only = pattern(user=lin)
    assert abs(similarity(stranger, whole, only)) < 0.35


@compiled
@given(st.integers(1, 41), st.integers(1, 41), st.integers(1, 41))
def test_a_level_is_never_nearer_than_one_between_them(a, b, c):
    low, middle, high = sorted((a, b, c))
    if high - low <= 20:  # half of the range, beyond which all are unrelated
        assert alike(REQUESTED, low, middle) >= alike(REQUESTED, low, high)
        assert alike(REQUESTED, middle, high) >= alike(REQUESTED, low, high)


def test_the_similarity_of_levels_falls_linearly_to_nothing_at_the_end_of_a_cell():
    # 41 levels in 2 cells: 20 steps to nothing. Means over many roles of the same kind.
    falls = np.zeros(41)
    for i in range(60):
        schema = Schema((Role(f"r{i}", "level", levels=41, cells=2),), bits=1024)
        space = space_of(schema)
        rows = np.zeros((41, 16), np.uint64)
        for level in range(41):
            encode(np.array([level + 1], np.uint64), space, rows[level], np.zeros(16, np.uint64))
        falls += [similarity(rows[0], row, space.masks[0]) / 60 for row in rows]
    want = np.maximum(1 - np.arange(41) / 20, 0)
    assert falls == pytest.approx(want, abs=0.02)


@compiled
@given(st.integers(0, 23), st.integers(0, 23))
def test_hours_are_as_near_as_on_a_clock(one, other):
    apart = min((one - other) % 24, (other - one) % 24)
    # a quarter of the day makes them unrelated; 64 bits: 5 / sqrt(64) for chance
    want = max(1 - apart / 6, 0)
    assert abs(alike(HOUR, one + 1, other + 1) - want) < 0.625 * math.sqrt(min(apart, 6) / 6) + 0.05


@compiled
@given(st.permutations([3, 5, 7]))
def test_the_order_of_the_words_in_a_bag_does_not_matter(words):
    assert alike(TOKENS, list(words), [3, 5, 7]) == 1.0


def test_bags_are_as_alike_as_the_share_of_words_in_common():
    # 2 of 4 words: Jaccard 1/2; 1 of 5: 1/5. Means over 100 pairs of 128 bits.
    rng = np.random.default_rng(5)
    sums = np.zeros(2)
    for a, b, c, d, e in rng.integers(1, 2**63, (100, 5)):
        sums += alike(TOKENS, [a, b, c], [b, c, d]), alike(TOKENS, [a, b, c], [c, d, e])
    assert sums / 100 == pytest.approx([1 / 2, 1 / 5], abs=0.03)


def test_a_missing_role_is_not_known_and_unlike_any_filler():
    bits, known = pattern(user=17)
    assert (known == SPACE.masks[USER]).all()
    named, _ = pattern(user=17, tokens=[4], requested=3, hour=2, load=9)
    for role in (TOKENS, REQUESTED, HOUR, LOAD):
        assert abs(similarity(bits, named, SPACE.masks[role])) < 0.6


def test_no_known_role_is_no_similarity():
    bits, known = pattern()
    assert not known.any()
    assert similarity(bits, bits, known) == 0.0


@pytest.mark.parametrize(
    ("role", "value", "filler"),
    [
        (REQUESTED, 1.0, 1),  # the least of 41 levels over 10 doublings: 4 levels a doubling
        (REQUESTED, 2.0, 5),
        (REQUESTED, 1024.0, 41),
        (REQUESTED, 5000.0, 41),
        (REQUESTED, 0.0, 1),
        (REQUESTED, math.nan, 0),
        (REQUESTED, math.inf, 41),
        (HOUR, 0.0, 1),
        (HOUR, 23.9, 24),
        (HOUR, 24.0, 1),
        (HOUR, 25.5, 2),
        (HOUR, -1.0, 24),
        (LOAD, 0.34, 4),  # 0.34 * 10 rounds to 3
        (LOAD, -3.0, 1),
    ],
)
def test_the_filler_of_a_value_is_its_level(role, value, filler):
    assert level_of(SPACE.roles[role], value) == filler


def test_a_number_stands_for_the_same_word_in_a_role_only():
    assert number_key(SPACE.roles[USER], -1) == 0
    found = {int(number_key(SPACE.roles[r], n)) for r in (USER, TOKENS) for n in range(1000)}
    assert len(found) == 2000
    assert 0 not in found
