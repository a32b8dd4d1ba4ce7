"""Sketches: exact inverses, shares of alike jobs, and patterns of job records."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.features.hypervectors.encode_kernel import level_of, similarity
from adlro.features.hypervectors.schema import space_of
from adlro.features.hypervectors.sketch_kernel import (
    JOB_ROLES,
    JOB_SCHEMA,
    add,
    job_pattern,
    remove,
    share_alike,
)
from adlro.features.hypervectors.unbind_kernel import match_parts
from adlro.model.state import JOB

SPACE = space_of(JOB_SCHEMA)
WORDS = len(SPACE.binding)
compiled = settings(max_examples=60, deadline=None)  # the first call compiles
rows = st.lists(
    st.tuples(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=2), st.integers(0, 1000)),
    max_size=12,
)


def pattern(seconds=1.0, **fields):
    jobs = np.zeros(1, JOB)
    jobs["gpus"], jobs["share"] = 1, 1000
    for name, value in fields.items():
        jobs[name] = value
    filling, bits, known = np.zeros(len(JOB_ROLES), np.uint64), *np.zeros((2, WORDS), np.uint64)
    job_pattern(jobs[0], seconds, SPACE, filling, bits, known)
    assert sum(map(int.bit_count, known.tolist())) == JOB_SCHEMA.bits
    return bits


def parts(one, other):
    everything, out = np.full(WORDS, 2**64 - 1, np.uint64), np.zeros(len(JOB_ROLES))
    match_parts(SPACE, one, everything, other, out)
    return dict(zip(JOB_ROLES, out.tolist(), strict=True))


@compiled
@given(rows, st.randoms(use_true_random=False))
def test_taking_out_what_was_put_in_leaves_nothing(patterns, random):
    sketch = np.zeros(129, np.int64)
    for bits, weight in patterns:
        add(sketch, np.array(bits, np.uint64), weight)
    random.shuffle(patterns)
    for bits, weight in patterns:
        remove(sketch, np.array(bits, np.uint64), weight)
    assert not sketch.any()


@compiled
@given(rows, st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=2))
def test_the_share_alike_is_the_weighted_mean_of_the_similarities(patterns, bits):
    sketch, mine = np.zeros(129, np.int64), np.array(bits, np.uint64)
    everything = np.full(2, 2**64 - 1, np.uint64)
    total = weights = 0.0
    for other, weight in patterns:
        add(sketch, np.array(other, np.uint64), weight)
        total += weight * similarity(mine, np.array(other, np.uint64), everything)
        weights += weight
    assert sketch[-1] == weights
    assert share_alike(sketch, mine) == pytest.approx(total / weights if weights else 0.0)


def test_a_job_finds_its_share_of_alike_jobs():
    # 3 of 4 jobs are of its kind, the fourth has nothing in common with it
    sketch = np.zeros(SPACE.masks.shape[1] * 64 + 1, np.int64)
    mine = pattern(1.0, type=1, user=1, account=1, gpus=1, priority=0.0)
    other = pattern(1000.0, type=2, user=2, account=2, gpus=256, priority=1.0)
    for bits in (mine, mine, mine, other):
        add(sketch, bits, 1)
    assert share_alike(sketch, mine) == pytest.approx(3 / 4, abs=0.06)
    assert share_alike(sketch, other) == pytest.approx(1 / 4, abs=0.2)


def test_the_pattern_of_a_job_holds_what_its_record_says():
    mine = pattern(8.0, type=1, user=3, account=4, gpus=4, priority=0.5)
    assert parts(mine, mine) == dict.fromkeys(JOB_ROLES, 1.0)
    for name, value in (("type", 2), ("user", 4), ("account", 5)):
        fields = {"type": 1, "user": 3, "account": 4} | {name: value}
        got = parts(mine, pattern(8.0, gpus=4, priority=0.5, **fields))
        assert got.pop(name) < 0.8
        assert set(got.values()) == {1.0}
    same = {"type": 1, "user": 3, "account": 4, "priority": 0.5}
    # half of four GPUs is as much as two: one doubling of three to nothing is 2/3
    assert parts(mine, pattern(8.0, gpus=4, share=500, **same))["gpus"] == pytest.approx(
        2 / 3, abs=0.15
    )
    assert parts(mine, pattern(8.0, gpus=2, **same)) == parts(
        mine, pattern(8.0, gpus=4, share=500, **same)
    )
    assert parts(mine, pattern(80.0, gpus=4, **same))["seconds"] < 0.3  # ten times: nothing
    assert parts(mine, pattern(16.0, gpus=4, **same))["seconds"] == pytest.approx(0.7, abs=0.15)


def test_a_job_without_an_account_has_none_in_its_pattern():
    jobs = np.zeros(1, JOB)
    jobs["account"], jobs["gpus"], jobs["share"] = -1, 1, 1000
    filling, bits, known = np.zeros(len(JOB_ROLES), np.uint64), *np.zeros((2, WORDS), np.uint64)
    job_pattern(jobs[0], 1.0, SPACE, filling, bits, known)
    assert filling[JOB_ROLES.index("account")] == 0
    assert filling[JOB_ROLES.index("gpus")] == level_of(SPACE.roles[2], 1.0)
    assert not (known & SPACE.masks[JOB_ROLES.index("account")]).any()
