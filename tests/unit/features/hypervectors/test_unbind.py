"""Unbinding: which parts matched, what fills a role, and how that is said."""

import math

import numpy as np
import pytest

from adlro.features.hypervectors.encode_kernel import encode
from adlro.features.hypervectors.explain import matched, sentence
from adlro.features.hypervectors.schema import Role, Schema, key, space_of
from adlro.features.hypervectors.unbind_kernel import likeliest, match_parts, pattern_of
from tests.remembered import SCHEMA, mind

LEVELS = Schema(
    (
        Role("user", "word", 2.0),
        Role("requested time", "level", 2.0, levels=33, cells=2),
        Role("name", "bag", 2.0, most=2),
    ),
    384,
)


def encoded(space, *fillers):
    bits, known = np.zeros((2, len(space.binding)), np.uint64)
    encode(np.array(fillers, np.uint64), space, bits, known)
    return bits, known


def test_parts_say_which_roles_of_a_retrieved_pattern_match():
    one = mind(models=("T4",))
    slot = one.learn(1.0, "ada", "x", model="T4")
    query = one.query("ada", "y")
    pattern, parts = np.zeros(4, np.uint64), np.zeros(3)
    pattern_of(one.memory, slot, pattern)
    match_parts(one.space, query.bits, query.known, pattern, parts)
    assert parts[0] == 1.0
    assert 0.0 <= parts[1] < 0.5
    assert math.isnan(parts[2])
    assert sentence(SCHEMA, parts) == "same user; other name"


def test_a_near_level_and_a_shared_word_are_near():
    # 8 of 16 levels to nothing: half way
    space = space_of(LEVELS)
    one, known = encoded(space, 5, 1, 10, 11)
    other, _ = encoded(space, 5, 9, 11, 12)
    parts = np.zeros(3)
    match_parts(space, one, known, other, parts)
    assert parts[1] == pytest.approx(0.5, abs=0.2)
    assert matched(LEVELS, parts) == {
        "same": ("user",), "near": ("requested time", "name"), "other": ()
    }  # fmt: skip
    assert sentence(LEVELS, parts) == "same user; near requested time, name"


@pytest.mark.parametrize(
    ("match", "words"),
    [
        ([1.0, 1.0, 1.0], "same user, requested time, name"),
        ([0.74, 0.998, 0.24], "near requested time; other user, name"),
        ([0.75, 0.25, 0.25], "same user; near requested time, name"),
        ([math.nan, 0.0, math.nan], "other requested time"),
    ],
)
def test_matches_in_words(match, words):
    assert sentence(LEVELS, np.array(match)) == words


def test_the_filler_of_a_role_is_found_among_candidates():
    space = space_of(LEVELS)
    users = np.array([key("user", name) for name in ("ada", "lin", "eva")], np.uint64)
    pattern, _ = encoded(space, users[1], 20, 7, 8)
    scratch = np.zeros((2, 6), np.uint64), np.zeros(4, np.uint64)
    found = likeliest(space, pattern, 0, users, *scratch[0], scratch[1])
    assert found == (1, 1.0)
    levels = np.arange(1, 34, dtype=np.uint64)
    assert likeliest(space, pattern, 1, levels, *scratch[0], scratch[1]) == (19, 1.0)
    strangers = users[[0, 2]]
    best, fit = likeliest(space, pattern, 0, strangers, *scratch[0], scratch[1])
    assert best in (0, 1)
    assert fit < 0.5
    assert likeliest(space, pattern, 0, users[:0], *scratch[0], scratch[1])[0] == -1
