"""The plain simulator against schedules worked out by hand, and laws that hold in any schedule."""

from __future__ import annotations

from functools import cache
from math import inf

import numpy as np
import pytest

from adlro.model.state import JOB, NODE, POOL
from tests.plain.cases import random_case
from tests.plain.policies import (
    BASELINES,
    EasyBackfill,
    Fcfs,
    MinMin,
    PairSjf,
    Random,
    Replay,
    Sjf,
    StaticAffinity,
    StaticAffinityLp,
    make,
)
from tests.plain.simulator import Decision, Infeasible, PlainWorld, Stalled, run


def job(arrival, *seconds, **more):
    """A job with its true seconds by model; `est` if the estimate differs, and any JOB field."""
    return {"arrival": arrival, "seconds": seconds, "gpus": 1, "limit": inf, **more}


def pool(nodes=1, gpus=1, model=0, cores=99, memory=99, span_cost=1.0):
    return (nodes, gpus, model, cores, memory, span_cost)


def build(pools, jobs):
    """A world of a few pools, all of them allowed unless the job names its `allowed` ones."""
    machines = [(k, *p) for k, p in enumerate(pools) for _ in range(p[0])]
    node_records, pool_records = np.zeros(len(machines), NODE), np.zeros(len(pools), POOL)
    for record, (k, _, gpus, _, cores, memory, _) in zip(node_records, machines, strict=True):
        record["pool"], record["gpus"], record["free"] = k, gpus, gpus
        record["cores"] = record["free_cores"] = cores
        record["memory"] = record["free_memory"] = memory
    node_records["first_gpu"] = np.cumsum(node_records["gpus"]) - node_records["gpus"]
    for record, (nodes, gpus, model, _, _, span_cost) in zip(pool_records, pools, strict=True):
        record["nodes"], record["gpus"], record["model"] = nodes, nodes * gpus, model
        record["span_cost"] = span_cost
    pool_records["first_node"] = np.cumsum(pool_records["nodes"]) - pool_records["nodes"]
    records = np.zeros(len(jobs), JOB)
    for record, spec in zip(records, jobs, strict=True):
        for name in set(spec) - {"seconds", "est", "allowed"}:
            record[name] = spec[name]
    seconds = np.array([spec["seconds"] for spec in jobs], np.float64)
    est = np.array([spec.get("est", spec["seconds"]) for spec in jobs], np.float64)
    everywhere = range(len(pools))
    allowed = np.array(
        [[g in spec.get("allowed", everywhere) for g in everywhere] for spec in jobs]
    )
    return PlainWorld.from_arrays(records, est, seconds, allowed, pool_records, node_records)


def start(job, pool=0, node=-1, gpu=-1):
    return Decision("start", job, pool, node, gpu)


def wake(at):
    return Decision("wake", at=at)


def test_two_jobs_share_one_gpu_in_turn():
    # Job 0 runs 0-5. Job 1 comes at 1 and runs 5-8. Times in the system: 5 + 7.
    # Calls: two at 0 (start, nothing), one at 1, two at 5; at 8 all is over.
    result = run(build([pool()], [job(0, 5), job(1, 3)]), Fcfs())
    assert (result.start, result.finish) == ([0, 5], [5, 8])
    assert (result.job_seconds, result.idle_seconds, result.decisions) == (12, 0, 5)


def test_idle_gpus_count_from_the_first_arrival_to_the_last_finish():
    # 2 GPUs from 10 to 17: job 0 holds one for 2 s, job 1 (from 14) one for 3 s: 14 - 5 idle.
    result = run(build([pool(gpus=2)], [job(10, 2), job(14, 3)]), Fcfs())
    assert (result.finish, result.idle_seconds, result.job_seconds) == ([12, 17], 9, 5)


def test_a_gang_of_eight_on_two_nodes_pays_for_the_network():
    # 10 s * (1 + 0.5 * 2) = 20 s.
    world = build([pool(2, 4, span_cost=2.0)], [job(0, 10, gpus=8, communication=0.5)])
    result = run(world, Fcfs())
    assert (result.finish, result.nodes, result.gpus) == ([20], [2], [tuple(range(8))])


def test_a_gang_on_one_node_pays_nothing():
    world = build([pool(2, 4, span_cost=2.0)], [job(0, 10, gpus=4, communication=0.5)])
    assert run(world, Fcfs()).finish == [10]


def test_the_limit_cuts_a_run_and_only_a_longer_one():
    # Job 0 would span and take 20 s, its limit is 15. Job 1 takes exactly its limit.
    jobs = [job(0, 10, gpus=8, communication=1, limit=15), job(0, 10, limit=10)]
    result = run(build([pool(2, 4)], jobs), Fcfs())
    assert (result.finish, result.killed) == ([15, 25], [True, False])


def test_best_fit_takes_the_node_with_the_fewest_free_gpus():
    # Nodes 0-3 and 4-7. Job 0: a tie, so node 0. Job 1 (3 GPUs): only node 1 holds it.
    # Job 2: one is left on node 1, two on node 0. Job 3: the two on node 0.
    jobs = [job(0, 9, gpus=n) for n in (2, 3, 1, 2)]
    result = run(build([pool(2, 4)], jobs), Fcfs())
    assert result.gpus == [(0, 1), (4, 5, 6), (7,), (2, 3)]
    assert result.start == [0, 0, 0, 0]


def test_a_gang_too_large_for_any_node_fills_the_roomiest_first():
    # Free before job 2: node 0 has 2, 3; node 1 has 4-7; node 2 has 9-11. Eight = 4 + 3 + 1.
    world = build([pool(3, 4)], [job(0, 9, gpus=2), job(0, 9), job(0, 9, gpus=8)])
    result = run(world, Replay([[start(0, node=0), start(1, node=2)], [start(2)], []] + [[]] * 9))
    assert result.gpus[2] == (2, 4, 5, 6, 7, 9, 10, 11)
    assert result.nodes[2] == 3


def test_a_named_node_is_filled_first_and_the_rest_is_placed_by_best_fit():
    # Node 1 gives its four GPUs; for the one left over node 0 and 2 tie.
    world = build([pool(3, 4)], [job(0, 9, gpus=5)])
    assert run(world, Replay([[start(0, node=1)], []])).gpus == [(0, 4, 5, 6, 7)]


def test_a_named_gpu_is_in_the_gang_beside_the_lowest_others_of_its_node():
    world = build([pool(3, 4)], [job(0, 9, gpus=2), job(0, 9, gpus=4)])
    result = run(world, Replay([[start(0, gpu=6), start(1, node=1, gpu=7)], [], []]))
    # Job 1 takes what is left of node 1 (5, 7) and then 0, 1 of node 0.
    assert result.gpus == [(4, 6), (0, 1, 5, 7)]


def test_cores_and_memory_limit_a_node_but_a_demand_of_zero_does_not():
    # 4 GPUs, 4 cores, 10 MB. Job 0 takes two GPUs and all cores, so job 1 waits for them until 5.
    # Job 2 needs neither and job 3 six MB: both start at 1. At 6 one GPU and four MB are free: job
    # 4 (five MB) waits until job 3 ends at 8.
    jobs = [job(0, 5, gpus=2, cores=2), job(1, 9, cores=1), job(1, 20), job(1, 7, memory=6)]
    world = build([pool(1, 4, cores=4, memory=10)], [*jobs, job(6, 1, memory=5)])
    assert run(world, PairSjf()).start == [0, 5, 1, 1, 8]


def test_a_finish_makes_room_for_an_arrival_at_the_same_moment():
    result = run(build([pool()], [job(0, 5), job(5, 1)]), Fcfs())
    assert (result.start, result.decisions) == ([0, 5], 4)


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


def test_the_timer_keeps_the_earliest_wake_and_rings_once():
    # Of 3 and 2 only 2 is kept; asked again at 2, it rings at 5.
    trace = [[wake(3), wake(2)], [wake(5)], [start(0)], []]
    result = run(build([pool()], [job(0, 1)]), Replay(trace))
    assert (result.start, result.finish, result.decisions) == ([5], [6], 4)


def test_a_start_with_a_wake_is_asked_again_in_the_same_moment():
    result = run(build([pool()], [job(0, 9)]), Replay([[start(0), wake(4)], [], []]))
    assert result.decisions == 3


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (start(7), "job 7 is not waiting"),
        (start(1), "job 1 is not waiting"),
        (start(0, 5), "no pool 5"),
        (start(0, 1), "not allowed on pool 1"),
        (start(0, 2), "no room on pool 2"),
        (start(0, 0, node=9), "no node 9"),
        (start(0, 0, node=1), "node 1 is not in pool 0"),
        (start(0, 0, node=0, gpu=1), "GPU 1 is not on node 0"),
        (start(0, 0, gpu=99), "GPU 99 is not free"),
        (wake(0), "wake at 0 is not after 0"),
        (Decision("preempt", 0), "kind 'preempt'"),
    ],
)
def test_an_infeasible_decision_stops_the_run_and_names_the_policy(decision, message):
    jobs = [job(0, 9, allowed=[0, 2]), job(3, 9)]
    world = build([pool(), pool(), pool(gpus=0)], jobs)
    with pytest.raises(Infeasible, match=f"^Replay: .*{message}"):
        run(world, Replay([[decision], []]))


def test_one_job_cannot_start_twice_in_one_answer():
    with pytest.raises(Infeasible, match="job 0 is not waiting"):
        run(build([pool(1, 2)], [job(0, 9)]), Replay([[start(0), start(0)]]))


def test_a_policy_that_never_starts_anything_stalls():
    with pytest.raises(Stalled, match=r"jobs \[0\] wait at 0"):
        run(build([pool()], [job(0, 9)]), Replay([[]]))


def test_a_policy_that_only_sets_timers_stalls_too():
    class Sleeper:
        def decide(self, world):
            return [wake(world.now + 1)]

    with pytest.raises(Stalled, match="100000 timers in a row"):
        run(build([pool()], [job(0, 9)]), Sleeper())


@cache
def played(seed, name):
    case = random_case(seed)
    return case, run(PlainWorld.from_arrays(*case[:6]), make(name, case, seed))


EVERY_CASE = pytest.mark.parametrize("seed", range(100))
EVERY_POLICY = pytest.mark.parametrize("name", [*BASELINES, "script"])


@EVERY_CASE
@EVERY_POLICY
def test_nothing_is_ever_handed_out_twice(seed, name):
    case, result = played(seed, name)
    stock = {("gpu", gpu): 1 for gpu in range(len(case.gpus))}
    for n, node in enumerate(case.nodes):
        stock["core", n], stock["MB", n] = int(node["cores"]), int(node["memory"])
    starts = [(at, 1, j) for j, at in enumerate(result.start)]
    finishes = [(at, 0, j) for j, at in enumerate(result.finish)]
    for _, starting, j in sorted(starts + finishes):
        sign = -1 if starting else 1
        for gpu in result.gpus[j]:
            n = int(case.gpus["node"][gpu])
            stock["gpu", gpu] += sign
            stock["core", n] += sign * int(case.jobs["cores"][j])
            stock["MB", n] += sign * int(case.jobs["memory"][j])
        assert min(stock.values()) >= 0


@EVERY_CASE
@EVERY_POLICY
def test_every_job_runs_once_for_its_time_where_it_may(seed, name):
    case, result = played(seed, name)
    for j, job in enumerate(case.jobs):
        home, gpus = case.pools[result.pool[j]], list(result.gpus[j])
        stands_on = set(case.gpus["node"][gpus].tolist())
        factor = 1 + job["communication"] * home["span_cost"] if len(stands_on) > 1 else 1
        length = case.seconds[j, home["model"]] * factor
        assert case.allowed[j, result.pool[j]]
        assert set(case.nodes["pool"][list(stands_on)].tolist()) == {result.pool[j]}
        assert (len(gpus), len(stands_on)) == (job["gpus"], result.nodes[j])
        assert job["arrival"] <= result.start[j]
        assert result.finish[j] == result.start[j] + min(length, job["limit"])
        assert result.killed[j] == (length > job["limit"])


@EVERY_CASE
@EVERY_POLICY
def test_the_integrals_equal_the_sums_over_jobs(seed, name):
    case, result = played(seed, name)
    start, finish = np.array(result.start), np.array(result.finish)
    span = finish.max() - case.jobs["arrival"][0]
    held = ((finish - start) * case.jobs["gpus"]).sum()
    times = (finish - case.jobs["arrival"]).sum()
    assert result.job_seconds == pytest.approx(times, rel=1e-9)
    assert result.idle_seconds == pytest.approx(len(case.gpus) * span - held, rel=1e-9, abs=1e-9)


@EVERY_CASE
def test_a_replayed_script_gives_exactly_the_same_result(seed):
    case, result = played(seed, "script")
    assert run(PlainWorld.from_arrays(*case[:6]), Replay(result.trace)) == result


@EVERY_CASE
def test_a_world_can_be_played_again(seed):
    case, result = played(seed, "min-min")
    world = PlainWorld.from_arrays(*case[:6])
    run(world, make("script", case, seed))
    assert run(world, make("min-min", case)) == result
