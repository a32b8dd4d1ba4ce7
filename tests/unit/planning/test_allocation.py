"""Time shares by linear programs: classes of equal jobs reach the optimum of the plain program."""

from types import SimpleNamespace

import numpy as np
import pytest

from adlro.planning import allocation


def random_queue(seed, jobs, types, *, equal_needs):
    """Speeds, needs, active jobs and mask of a queue of jobs of a few types on three pools."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(types, size=jobs)
    speeds = rng.uniform(0.1, 1.0, (types, 3))[kind]
    speeds /= speeds.max(axis=1, keepdims=True)
    width = rng.choice([0.5, 1.0, 2.0], types)[kind]
    mask = rng.random((types, 3))[kind] < 0.8
    need = rng.uniform(0.2, 1.0, types)[kind] if equal_needs else rng.lognormal(0.0, 2.0, jobs)
    active = SimpleNamespace(width=width, room=np.array([4.0, 2.0, 3.0]), rows=np.arange(jobs))
    return speeds, need, active, mask


def value(speeds, need, shares, mask):
    """The objective: the smallest speed over need, and a thousandth of the mean speed."""
    able = mask.any(axis=1)
    speed = (speeds * shares).sum(axis=1)[able]
    scaled = need[able] / need[able].max()
    return (speed / scaled).min() + 1e-3 * speed.mean()


def solved(queue, monkeypatch, *, by_class):
    monkeypatch.setattr(allocation, "_LONG", -1.0)
    monkeypatch.setattr(allocation, "_MANY", -1 if by_class else np.inf)
    return allocation.max_min_shares(*queue, "test at 0 s")


def assert_feasible(shares, active, mask):
    assert (shares >= 0).all()
    assert (shares[~mask] == 0).all()
    assert (shares.sum(axis=1) <= 1 + 1e-5).all()
    assert (active.width @ shares <= active.room + 1e-5).all()


@pytest.mark.parametrize("equal_needs", [True, False])
@pytest.mark.parametrize("jobs", [1, 4, 12, 60])
def test_classes_of_equal_jobs_reach_the_optimum_of_the_plain_program(
    jobs, equal_needs, monkeypatch
):
    for seed in range(25):
        queue = random_queue(seed, jobs, 4, equal_needs=equal_needs)
        speeds, need, active, mask = queue
        if not mask.any():
            continue
        plain = solved(queue, monkeypatch, by_class=False)
        classes = solved(queue, monkeypatch, by_class=True)
        assert_feasible(classes, active, mask)
        best = value(speeds, need, plain, mask)
        assert value(speeds, need, classes, mask) == pytest.approx(best, rel=1e-5, abs=1e-5)


def test_a_job_that_needs_more_than_all_of_its_time_leaves_its_class(monkeypatch):
    # Two GPUs, and three equal jobs with needs 10, 1 and 1. In proportion the first would get 5 / 3
    # of its time. So it gets all of it, and the others a tenth each or more: s = 1 (x 10).
    active = SimpleNamespace(width=np.ones(3), room=np.array([2.0]), rows=np.arange(3))
    queue = np.ones((3, 1)), np.array([10.0, 1.0, 1.0]), active, np.ones((3, 1), np.bool_)
    shares = solved(queue, monkeypatch, by_class=True)[:, 0]
    np.testing.assert_allclose(shares, [1.0, 0.5, 0.5], atol=1e-5)


def test_a_long_queue_of_few_types_is_a_small_program(monkeypatch):
    sizes = []
    solve = allocation._solve
    monkeypatch.setattr(allocation, "_solve", lambda g, *m: sizes.append(len(g)) or solve(g, *m))
    queue = random_queue(0, 900, 26, equal_needs=True)
    shares = allocation.max_min_shares(*queue, "test at 0 s")
    assert_feasible(shares, *queue[2:])
    assert sizes == [pytest.approx(26 * 3 * 0.8, abs=15)]


def test_small_programs_and_short_queues_are_solved_job_by_job(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(allocation, "_solve_by_class", refuse)
    allocation.max_min_shares(*random_queue(0, 100, 4, equal_needs=True), "test at 0 s")
    speeds, need, active, mask = random_queue(0, 600, 4, equal_needs=True)
    active.room = np.full(3, 400.0)
    allocation.max_min_shares(speeds, need, active, mask, "test at 0 s")
