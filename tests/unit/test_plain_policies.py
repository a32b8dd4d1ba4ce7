"""The baselines of the plain simulator, worked out by hand."""

from __future__ import annotations

import pytest

from tests.plain.policies import (
    EasyBackfill,
    Fcfs,
    MinMin,
    PairSjf,
    Random,
    Sjf,
    StaticAffinity,
    StaticAffinityLp,
)
from tests.plain.simulator import run
from tests.plain.small import build, fail, job, pool, preempt, repair


def test_fcfs_holds_everyone_behind_the_oldest_job():
    # Job 1 needs both GPUs and waits for job 0; job 2 would fit but stands behind it.
    world = build([pool(1, 2)], [job(0, 4), job(1, 2, gpus=2), job(1, 1)])
    assert run(world, Fcfs()).start == [0, 4, 6]


def test_splitmix64_gives_its_published_first_numbers():
    policy = Random(0)
    assert [policy.next(), policy.next()] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


@pytest.mark.parametrize(("policy", "first"), [(Sjf(), 1), (PairSjf(), 2)])
def test_sjf_ranks_by_eligible_pools_and_pair_sjf_by_feasible_ones(policy, first):
    # Job 0 holds the fast pool until 50. Job 1 takes 1 s there, 9 here; job 2 5 s there, 6 here.
    pools = [pool(model=0), pool(model=1)]
    world = build(pools, [job(0, 50, 99), job(1, 1, 9), job(1, 5, 6)])
    assert run(world, policy).start[first] == 1


def test_static_affinity_closes_a_pool_behind_its_first_waiting_job():
    # Type 0 belongs to pool 0 (model 0): job 1 (2 GPUs) waits there until 4 and job 2 behind it.
    # Type 1 belongs to pool 1. Job 4 may not use its model's pool and goes to its quickest, pool 1.
    pools = [pool(1, 2, model=0), pool(1, 1, model=1)]
    jobs = [job(0, 4, 9), job(1, 2, 9, gpus=2, allowed=[0]), job(1, 1, 9), job(1, 9, 3, type=1)]
    world = build(pools, [*jobs, job(2, 1, 2, allowed=[1])])
    assert run(world, StaticAffinity([0, 1])).start == [0, 4, 6, 1, 4]


def test_static_affinity_lp_closes_every_pool_that_a_waiting_job_may_use():
    # Pools 0 and 1 have two GPUs each, pool 2 one. Jobs 0 and 1 leave one GPU on each of 0 and 1.
    # Job 2 (2 GPUs, type 0: pools 0, 1) waits until 4 and closes both for job 3; job 4 is of
    # type 1: pool 2.
    pools = [pool(1, 2), pool(1, 2, model=1), pool(1, 1, model=2)]
    jobs = [job(0, 4, 9, 9, allowed=[0]), job(0, 9, 8, 9, allowed=[1]), job(1, 3, 4, 9, gpus=2)]
    world = build(pools, [*jobs, job(1, 1, 1, 1), job(1, 1, 1, 1, type=1)])
    result = run(world, StaticAffinityLp([{0, 1}, {2}]))
    assert (result.start, result.pool) == ([0, 0, 4, 4, 1], [0, 1, 0, 1, 2])


def test_easy_backfill_lets_a_job_through_that_ends_before_the_reservation():
    # 2 GPUs. Job 0 holds one until 10, so job 1 (both) is reserved at 10 with nothing to spare.
    # Job 2 would run 1-11 and must wait; job 3 runs 1-10. Job 1 runs 10-15, then job 2.
    jobs = [job(0, 10), job(1, 5, gpus=2), job(1, 10), job(1, 9)]
    assert run(build([pool(1, 2)], jobs), EasyBackfill()).start == [0, 10, 15, 1]


def test_easy_backfill_lets_a_long_job_use_the_spare_gpus():
    # 3 GPUs. Job 0 holds two until 10; job 1 needs two then, which leaves one for job 2.
    jobs = [job(0, 10, gpus=2), job(1, 5, gpus=2), job(1, 100), job(1, 100)]
    assert run(build([pool(1, 3)], jobs), EasyBackfill()).start == [0, 10, 1, 15]


def test_easy_backfill_reserves_the_pool_that_ends_the_head_first():
    # Pool 0 is free for job 2 at 10, pool 1 at 12; it would end at 30 or 22, so pool 1 is reserved.
    # Job 3 (20 s) may use pool 0's free GPU at once, and not pool 1's.
    pools = [pool(1, 2), pool(1, 2, model=1)]
    jobs = [job(0, 10, 99), job(0, 99, 12), job(1, 20, 10, gpus=2), job(1, 20, 19)]
    result = run(build(pools, jobs), EasyBackfill())
    assert (result.start, result.pool) == ([0, 0, 12, 1], [0, 1, 1, 0])


def test_min_min_waits_for_a_faster_gpu():
    # Job 0 holds the fast GPU 0-4. Job 1 would end at 4 + 4 there and at 1 + 20 on the slow one: it
    # waits. Job 2 would end at 8 + 30 (after job 1) or 1 + 8: it starts on the slow one.
    jobs = [job(0, 4, 20), job(1, 4, 20), job(1, 30, 8)]
    result = run(build([pool(model=0), pool(model=1)], jobs), MinMin())
    assert (result.start, result.pool) == ([0, 4, 1], [0, 0, 1])


@pytest.mark.parametrize(("slow", "start_1"), [(4.5, 5), (5.5, 10)])
def test_an_overdue_job_is_expected_to_run_a_tenth_of_its_time_or_a_second_more(slow, start_1):
    # Job 0 (estimate 2, truth 10) is overdue at 5: expected at 5 + max(0.5, 1) = 6. So job 1 ends
    # at 6 + 4 = 10 on the fast GPU: it waits for it only if the slow one ends it later than that.
    jobs = [job(0, 10, 99, est=(2, 99)), job(5, 4, slow)]
    assert run(build([pool(model=0), pool(model=1)], jobs), MinMin()).start[1] == start_1


def test_policies_rank_by_the_work_that_is_left():
    # Job 0 (10 s) is preempted at 8: its 2 s are less than job 1's 3.
    jobs = [job(0, 10, checkpoint=0), job(1, 3), job(8, 9)]
    policy = Sjf()
    world = build([pool()], jobs)

    class Preempting:
        def decide(self, world):
            if world.now == 8 and 0 in world.runs and world.runs[0].start == 0:
                return [preempt(0)]
            return policy.decide(world)

    assert run(world, Preempting()).finish == [10, 13, 22]


def test_easy_backfill_without_any_pool_to_reserve_lets_everyone_start():
    # Node 1 is down until 20: the head (2 GPUs) has no pool, so the long job 1 may start.
    world = build([pool(2)], [job(0, 5, gpus=2), job(0, 50)], [fail(0, 1), repair(20, 1)])
    assert run(world, EasyBackfill()).start == [50, 0]


def test_easy_backfill_frees_a_gpu_with_its_last_slice():
    # Both slices hold GPU 0 until 4 and 10. The head (2 GPUs) is reserved at 10, so job 3 (9 s) may
    # start at 1, and job 4 (10 s) may not.
    jobs = [job(0, 4, share=500), job(0, 10, share=500), job(1, 5, gpus=2), job(1, 10), job(1, 9)]
    assert run(build([pool(1, 2)], jobs), EasyBackfill()).start == [0, 0, 10, 15, 1]


def test_min_min_starts_a_slice_beside_others_and_waits_for_what_is_up():
    # Job 1 fits beside job 0 at 1. Job 2 (2 GPUs) waits for the node that is down until 12.
    jobs = [job(0, 10, share=500), job(1, 9, share=500), job(1, 1, gpus=2)]
    world = build([pool(2)], jobs, [fail(0, 1), repair(12, 1)])
    assert run(world, MinMin()).start == [0, 1, 12]
