"""Gavel's max-min without speeds: equal time for all, whatever the estimates say."""

from types import SimpleNamespace

import numpy as np
import pytest

from adlro.planning.allocation import max_min_shares
from adlro.policies import registry
from adlro.policies.gavel_max_min_blind import equal_time, settled
from tests.worlds import build, job, nodes, play

NAME = "gavel-max-min-blind"
TWO = [nodes("V100"), nodes("T4")]
LONG = 1e5


def served(result, end):
    """Seconds until `end` of each job [J] on each GPU [2]."""
    spans = result.spans
    seconds = np.minimum(spans["end"], end) - np.minimum(spans["start"], end)
    found = np.zeros((int(spans["job"].max()) + 1, 2))
    np.add.at(found, (spans["job"], spans["gpu"]), seconds)
    return found


def test_it_is_compared_with_preemptive_policies():
    assert registry.facts(NAME).is_preemptive


@pytest.mark.parametrize(
    ("gangs", "room", "times"),
    [
        ([1, 1, 1], 2.0, [2 / 3, 2 / 3, 2 / 3]),
        ([1, 1], 4.0, [1.0, 1.0]),
        ([1, 2], 1.5, [0.75, 0.375]),  # 1 x 0.75 = 2 x 0.375, and 0.75 + 2 x 0.375 GPUs
        ([1, 1, 4], 3.0, [1.0, 1.0, 0.25]),  # the gang gets what two full jobs leave
    ],
)
def test_time_is_equal_by_gpus_and_at_most_all(gangs, room, times):
    gangs = np.array(gangs)
    np.testing.assert_allclose(equal_time(gangs, gangs.astype(float), room), times)


def test_the_times_reach_the_optimum_of_the_program_with_all_speeds_1():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        jobs, room = int(rng.integers(1, 12)), rng.integers(2, 9, 3).astype(float)
        gangs = rng.choice([1, 1, 2], jobs)
        active = SimpleNamespace(width=gangs.astype(float), room=room, rows=np.arange(jobs))
        ones, mask = np.ones((jobs, 3)), np.ones((jobs, 3), np.bool_)
        found = max_min_shares(ones, 1.0 / gangs, active, mask, "test at 0 s").sum(axis=1)
        times = equal_time(gangs, active.width, room.sum())
        assert (gangs * times).min() == pytest.approx((gangs * found).min(), rel=1e-3)
        assert (gangs * times).sum() <= room.sum() + 1e-9


def test_three_jobs_have_a_third_of_each_gpu_though_one_gains_nothing_on_the_v100():
    # With speeds job 0, nine times faster there, has the V100 alone for s (1 + 1 / 9) / 2 of its
    # time, the others s in all; 0.556 s + 2 s = 2 gives it 0.435 of the V100, none of the T4.
    seconds = [(LONG, 9 * LONG), (LONG, LONG), (LONG, LONG)]
    world = build(TWO, [job(0, *pair, checkpoint=0) for pair in seconds])
    blind, aware = (served(play(world, name), 30 * 360) for name in (NAME, "gavel-max-min"))
    np.testing.assert_allclose(blind, np.full((3, 2), 10 * 360), atol=360)
    np.testing.assert_allclose(aware[0], [0.435 * 30 * 360, 0], atol=360)


def test_while_all_jobs_fit_none_is_moved_though_it_would_be_faster_elsewhere():
    # Job 1 has the T4, and keeps it when job 0 leaves the V100 to nobody.
    jobs = [job(0, 500, 500, checkpoint=0), job(10, 1000, 9000, checkpoint=0)]
    blind, aware = (play(build(TWO, jobs), name).outcome for name in (NAME, "gavel-max-min"))
    assert (blind["finish"].tolist(), blind["restarts"].sum()) == ([500, 9010], 0)
    assert aware["finish"][1] < 9010


@pytest.mark.parametrize(
    ("pool", "width", "room", "found"),
    [
        ([-1, -1, -1], [1, 1, 1], [1, 2], [1, 0, 1]),  # the most room first, ties: the first pool
        ([1, -1], [1, 1], [1, 2], [1, 0]),
        ([-1, 0], [1, 1], [2, 3], [1, 0]),
        ([-1, -1], [1, 1], [1, 0], None),
        ([0, 1, -1], [1, 1, 2], [2, 2], None),  # two GPUs are left, but not in one pool
    ],
)
def test_jobs_settle_where_all_have_room(pool, width, room, found):
    target = settled(np.array(pool), np.array(width, float), np.array(room, float))
    assert (None if target is None else target.tolist()) == found


def test_estimates_change_nothing():
    def finish(name, est):
        jobs = [(0, 3000, 5000), (10, 4000, 2500), (400, 900, 9000), (800, 700, 800)]
        world = build(TWO, [job(*one, est=(one[1], one[2])[::est], checkpoint=5) for one in jobs])
        return play(world, name).outcome["finish"].tolist()

    assert finish(NAME, 1) == finish(NAME, -1)
    assert finish("gavel-max-min", 1) != finish("gavel-max-min", -1)


def test_jobs_that_may_use_different_pools_share_by_the_program():
    # Jobs 0 and 1 may use the V100 only and job 2 only the T4: half, half, and all of the time.
    jobs = [job(0, LONG, LONG, allowed=[p], checkpoint=0) for p in (0, 0, 1)]
    had = served(play(build(TWO, jobs), NAME), 20 * 360)
    np.testing.assert_allclose(had, [[3600, 0], [3600, 0], [0, 7200]], atol=360)
