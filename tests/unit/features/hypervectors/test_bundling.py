"""Why a multiplex: its similarity is the weighted sum of the parts', that of a majority is not."""

import numpy as np

from adlro.features.hypervectors.encode_kernel import encode
from adlro.features.hypervectors.schema import Role, Schema, space_of

WEIGHTS = np.array([4.0, 3.0, 2.0, 1.0, 0.5])
BITS, JOBS = 1024, 400


def patterns(schema, fillings):
    """Bits as +1 and -1, [jobs, bits]."""
    space = space_of(schema)
    bits, known = np.zeros((len(fillings), schema.bits // 64), np.uint64), np.zeros(16, np.uint64)
    for filling, row in zip(fillings, bits, strict=True):
        encode(filling, space, row, known)
    return 2.0 * np.unpackbits(bits.view(np.uint8), bitorder="little", axis=1) - 1


def similarities(rows):
    return rows @ rows.T / rows.shape[1]


def multiplex(fillings, weights):
    roles = tuple(Role(f"r{r}", "word", weight) for r, weight in enumerate(weights))
    return similarities(patterns(Schema(roles, BITS), fillings))


def majority(fillings, weights):
    votes = [
        weight * patterns(Schema((Role(f"r{r}", "word"),), BITS), fillings[:, r : r + 1])
        for r, weight in enumerate(weights)
    ]
    return similarities(np.where(sum(votes) > 0, 1.0, -1.0))


def weighted_sum(fillings, weights):
    equal = fillings[:, None] == fillings[None]
    return (equal * weights).sum(axis=-1) / weights.sum()


def random_fillings(roles):
    rng = np.random.default_rng(11)
    return rng.integers(1, 12, (JOBS, roles)).astype(np.uint64)


def test_a_multiplex_is_the_weighted_sum_of_its_parts_but_for_chance():
    # chance: 1 / sqrt(1024) for what does not match at all
    fillings = random_fillings(len(WEIGHTS))
    error = multiplex(fillings, WEIGHTS) - weighted_sum(fillings, WEIGHTS)
    assert abs(error.mean()) < 0.005
    assert np.sqrt((error**2).mean()) < 1 / np.sqrt(BITS)


def test_a_majority_is_not():
    fillings = random_fillings(len(WEIGHTS))
    error = majority(fillings, WEIGHTS) - weighted_sum(fillings, WEIGHTS)
    assert np.sqrt((error**2).mean()) > 2 / np.sqrt(BITS)


def test_a_role_that_outweighs_all_others_drowns_them_in_a_majority_only():
    # All jobs of one user, who weighs 4; two names weigh 2 and 1. Who shares the first name only
    # is (4 + 2) / 7 alike; in a majority 4 votes beat 3 in every bit.
    weights, fillings = np.array([4.0, 2.0, 1.0]), random_fillings(3)
    fillings[:, 0] = 5
    assert (majority(fillings, weights) == 1.0).all()
    error = multiplex(fillings, weights) - weighted_sum(fillings, weights)
    assert np.sqrt((error**2).mean()) < 1 / np.sqrt(BITS)
