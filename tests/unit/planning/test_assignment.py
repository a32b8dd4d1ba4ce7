"""Maximum-weight matching of single-GPU jobs to the GPUs of pools."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from adlro.planning.assignment import match
from tests.looped import every


def best_sum(worth, free):
    slots = np.repeat(np.arange(len(free)), np.floor(free + 1e-9).astype(int))
    rows, columns = linear_sum_assignment(worth[:, slots], maximize=True)
    return worth[rows, slots[columns]].sum()


def sum_of(worth, where):
    return sum(worth[a, p] for a, p in enumerate(where) if p >= 0)


def test_a_job_moves_for_one_that_has_no_other_pool():
    # Pool 0 alone would go to job 0. Both: 0.9 + 1 with job 0 on pool 1, 1 + 0.1 the other way.
    worth = np.array([[1.0, 0.9], [1.0, 0.1]])
    assert match(worth, np.array([1.0, 1.0])).tolist() == [1, 0]


def test_a_chain_of_moves_frees_a_gpu_for_the_last_job():
    # One GPU each. Job 2 can use pool 0 only: job 0 goes on to pool 1, and job 1 from there to 2.
    worth = np.array([[3.0, 2.0, 0.0], [0.0, 3.0, 2.0], [9.0, 0.0, 0.0]])
    assert match(worth, np.ones(3)).tolist() == [1, 2, 0]


def test_the_job_of_least_worth_is_unmatched_even_if_added_first():
    worth = np.array([[1.0], [3.0], [2.0]])
    assert match(worth, np.array([2.0])).tolist() == [-1, 0, 0]


def test_half_a_gpu_counts_as_none_and_a_job_without_pools_gets_none():
    worth = np.array([[1.0, 1.0], [0.0, 0.0]])
    assert match(worth, np.array([0.5, 1.0])).tolist() == [1, -1]


@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0])
@every("seed", range(20))
def test_no_other_matching_has_a_larger_sum(seed, spread):
    rng = np.random.default_rng(seed)
    jobs, pools = int(rng.integers(0, 40)), int(rng.integers(1, 6))
    worth = np.exp(rng.normal(0.0, spread, (jobs, pools)))
    worth[rng.random((jobs, pools)) < 0.2] = 0.0
    free = rng.integers(0, 8, pools).astype(float)
    where = match(worth, free)
    assert all(worth[a, p] > 0 for a, p in enumerate(where) if p >= 0)
    assert (np.bincount(where[where >= 0], minlength=pools) <= free).all()
    assert sum_of(worth, where) == pytest.approx(best_sum(worth, free), rel=1e-9)


@every("seed", range(20))
def test_the_matching_terminates_when_rounding_hides_differences(seed):
    # Sizes from 1e-26 to 1e26, and many equal ones: sums of them are not exact.
    rng = np.random.default_rng(seed)
    worth = np.exp(rng.choice(np.linspace(-60.0, 60.0, 9), (60, 4)))
    where = match(worth, np.full(4, 5.0))
    assert np.bincount(where[where >= 0], minlength=4).tolist() == [5, 5, 5, 5]
