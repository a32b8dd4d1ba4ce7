"""Stock Slurm: order, blocked partitions, backfill by time limits, nodes in order."""

import numpy as np
import pytest

from adlro.model.slurm import Slurm
from adlro.policies import registry
from tests.worlds import build, fails, gpus_of, is_repaired, job, nodes, play

AT_ONCE = {"bf_interval_s": 0, "bf_resolution_s": 1}  # backfill after every event, to the second
DAY = 86_400.0


def asks(arrival, seconds, requested=None, **more):
    """A job that runs for `seconds` (by model), with a time limit of as many unless given."""
    seconds = seconds if isinstance(seconds, tuple) else (seconds,)
    return job(arrival, *seconds, requested=requested or seconds[0], **more)


def played(groups, jobs, **slurm):
    return play(build(groups, jobs, slurm={**AT_ONCE, **slurm}), "slurm")


def starts(groups, jobs, **slurm):
    return played(groups, jobs, **slurm).outcome["start"].tolist()


# Order.


def test_without_weights_jobs_start_in_order_of_submission():
    jobs = [asks(0, 10), asks(1, 2, priority=0.1), asks(1, 3, priority=0.9)]
    assert starts([nodes()], jobs) == [0, 10, 12]


@pytest.mark.parametrize("type_", ["multifactor", "basic"])
def test_weights_count_unless_priorities_are_basic(type_):
    jobs = [asks(0, 10), asks(1, 2, priority=0.1), asks(1, 3, priority=0.9)]
    found = starts([nodes()], jobs, weight_qos=1000, priority_type=type_)
    assert found == ([0, 13, 10] if type_ == "multifactor" else [0, 10, 12])


def test_priorities_are_whole_numbers_so_that_small_differences_go_by_submission():
    # 10.1 and 10.9 points are both 10.
    jobs = [asks(0, 10), asks(1, 2, priority=0.101), asks(1, 3, priority=0.109)]
    assert starts([nodes()], jobs, weight_qos=100) == [0, 10, 12]
    assert starts([nodes()], jobs, weight_qos=1000) == [0, 13, 10]


@pytest.mark.parametrize(("max_age_s", "first"), [(50, 2), (1000, 1)])
def test_age_counts_up_to_the_highest_age(max_age_s, first):
    # At 200 job 1 is 190 s old and job 2 100 s; with an age of 50 s at most both have all points.
    jobs = [asks(0, 200), asks(10, 5), asks(100, 5, priority=0.5)]
    found = starts([nodes()], jobs, weight_age=1000, weight_qos=100, max_age_s=max_age_s)
    assert found[first] == 200


@pytest.mark.parametrize(("favor_small", "found"), [(False, [0, 12, 10]), (True, [0, 10, 12])])
def test_large_jobs_go_first_unless_small_ones_are_favoured(favor_small, found):
    jobs = [asks(0, 10, gpus=4), asks(1, 2, gpus=3), asks(1, 2, gpus=4)]
    slurm = {"weight_job_size": 1000, "favor_small": favor_small}
    assert starts([nodes("V100", 4)], jobs, **slurm) == found


def test_a_user_who_holds_more_than_a_share_comes_later():
    # At 10 only user 7 runs: 2^(-1 / 0.5) = 0.25 of the points, user 3 has all of them.
    jobs = [asks(0, 100, user=7), asks(0, 10, user=3), asks(1, 5, user=7), asks(1, 5, user=3)]
    assert starts([nodes("V100", 2)], jobs, weight_fairshare=1000) == [0, 0, 15, 10]


def test_the_factor_of_the_partition_counts():
    # Job 0 holds the V100. Job 2 may use the T4 only, job 3 both: its higher factor counts.
    groups = [nodes("V100", partition="a"), nodes("T4", partition="b")]
    jobs = [asks(0, (99, 99)), asks(0, (10, 10), allowed=[1])]
    jobs += [asks(1, (5, 5), allowed=[1]), asks(2, (5, 5))]
    assert starts(groups, jobs, weight_partition=100) == [0, 0, 10, 15]
    slurm = {"weight_partition": 100, "partition_factors": {"1": 0.5}}
    assert starts(groups, jobs, **slurm) == [0, 0, 15, 10]


def test_a_higher_tier_goes_before_any_priority():
    groups = [nodes("V100", partition="a"), nodes("T4", partition="b")]
    jobs = [asks(0, (99, 99)), asks(0, (10, 10), allowed=[1])]
    jobs += [asks(1, (5, 5), allowed=[1], priority=1), asks(2, (5, 5))]
    assert starts(groups, jobs, weight_qos=1000) == [0, 0, 10, 15]
    assert starts(groups, jobs, weight_qos=1000, partition_tiers={"0": 2}) == [0, 0, 15, 10]


@pytest.mark.parametrize("tres", ["gpu", "cpu", "mem"])
def test_the_share_of_gpus_cores_and_memory_counts(tres):
    groups = [nodes("V100", 4, cores=64, memory_gb=256)]
    large = {"gpu": {"gpus": 4}, "cpu": {"gpus": 2, "cores": 16}}
    large["mem"] = {"gpus": 2, "memory": 9999}
    jobs = [asks(0, 10, gpus=4), asks(1, 2, gpus=3), asks(1, 2, **large[tres])]
    assert starts(groups, jobs) == [0, 10, 12]
    assert starts(groups, jobs, weight_tres={tres: 1000}) == [0, 12, 10]


# Main scheduler.


def test_a_job_that_waits_blocks_its_partition_and_no_other():
    # Without backfill: job 1 needs both V100s, so job 2 waits behind it; job 3 uses the T4s.
    groups = [nodes("V100", 2, partition="a"), nodes("T4", 2, partition="b")]
    jobs = [asks(0, (10, 10), allowed=[0]), asks(1, (5, 5), gpus=2, allowed=[0])]
    jobs += [asks(1, (5, 5), allowed=[0]), asks(2, (5, 5), allowed=[1])]
    assert starts(groups, jobs, scheduler="builtin") == [0, 10, 15, 2]


def test_a_job_for_one_type_blocks_the_other_types_of_its_partition():
    # Job 1 waits for V100s, and job 2 could use the T4s of the same partition: only by backfill.
    groups = [nodes("V100", 2), nodes("T4", 2)]
    jobs = [asks(0, (10, 10), allowed=[0]), asks(1, (5, 5), gpus=2, allowed=[0])]
    jobs += [asks(2, (5, 5), allowed=[1])]
    assert starts(groups, jobs, scheduler="builtin") == [0, 10, 10]
    assert starts(groups, jobs) == [0, 10, 2]


def test_a_partition_on_the_same_nodes_is_blocked_too():
    # Both partitions have the two V100s, b the T4 as well. Job 1 was submitted to a and waits; job
    # 2 of b may not use the V100 that is free, but job 3 may use the T4.
    groups = [nodes("V100", 2, partitions=("a", "b")), nodes("T4", partitions=("b",))]
    jobs = [asks(0, (10, 10), allowed=[0]), asks(1, (5, 5), gpus=2, allowed=[0], partitions=1)]
    jobs += [asks(2, (5, 5), allowed=[0], partitions=2), asks(3, (5, 5), partitions=2)]
    assert starts(groups, jobs, scheduler="builtin") == [0, 10, 15, 15]
    jobs[2]["allowed"] = [1]
    assert starts(groups, jobs, scheduler="builtin") == [0, 10, 2, 7]


def test_a_job_that_needs_a_node_out_of_service_blocks_too():
    jobs = [asks(0, 5, gpus=2), asks(0, 50)]
    events = [fails(0, 1), is_repaired(20, 1)]
    world = build([nodes("V100", 1, 2)], jobs, events=events, slurm={"scheduler": "builtin"})
    assert play(world, "slurm").outcome["start"].tolist() == [20, 25]


def test_the_main_scheduler_looks_at_the_first_jobs_and_at_all_of_them_now_and_then():
    # Two partitions. Jobs 1 and 2 wait for a; job 3 is the third in line and could use b.
    groups = [nodes("V100", partition="a"), nodes("T4", partition="b")]
    jobs = [asks(0, (200, 200), allowed=[0]), asks(1, (5, 5), allowed=[0])]
    jobs += [asks(1, (5, 5), allowed=[0]), asks(2, (5, 5), allowed=[1])]
    slurm = {"scheduler": "builtin", "sched_interval_s": 60}
    assert starts(groups, jobs, **slurm, default_queue_depth=3) == [0, 200, 205, 2]
    assert starts(groups, jobs, **slurm, default_queue_depth=2) == [0, 200, 205, 60]


# Backfill.


def test_a_job_goes_through_only_if_its_limit_ends_before_the_reservation():
    # 2 GPUs. Job 0 holds one until 10, so job 1 (both) is reserved at 10. Job 2 would run 1-11 and
    # must wait; job 3 runs 1-10. Job 1 runs 10-15, then job 2.
    jobs = [asks(0, 10), asks(1, 5, gpus=2), asks(1, 10), asks(1, 9)]
    assert starts([nodes("V100", 2)], jobs) == [0, 10, 15, 1]


def test_limits_count_and_not_the_true_run_times():
    # Job 0 ends at 4, but its limit is 10: job 1 is reserved at 10. Job 2 runs for 1 s with a limit
    # of 20 s, and waits; job 3 (limit 9 s) goes through and ends at 3. At 4 job 1 starts.
    jobs = [asks(0, 4, 10), asks(1, 5, gpus=2), asks(1, 1, 20), asks(1, 2, 9)]
    assert starts([nodes("V100", 2)], jobs) == [0, 4, 9, 1]


def test_the_limit_of_a_job_that_is_killed_counts_instead_of_what_it_requested():
    jobs = [asks(0, 10), asks(1, 5, gpus=2), asks(1, 1, 20, limit=9)]
    assert starts([nodes("V100", 2)], jobs) == [0, 10, 1]


def test_estimates_do_not_matter():
    jobs = [asks(0, 10), asks(1, 5, gpus=2), asks(1, 9, est=(500,))]
    assert starts([nodes("V100", 2)], jobs) == [0, 10, 1]


def test_every_job_gets_a_reservation_not_only_the_first():
    # 3 GPUs on nodes of their own. Job 0 holds one until 10; job 1 (3 GPUs) is reserved 10-20, job
    # 2 (one GPU, 15 s) at 20. Job 3 (2 GPUs, 9 s) goes through at 1, and job 4 (10 s) may not.
    jobs = [asks(0, 10), asks(1, 10, gpus=3), asks(1, 15), asks(1, 9, gpus=2), asks(1, 10)]
    assert starts([nodes("V100", 1, 3)], jobs) == [0, 10, 20, 1, 20]


def test_the_second_reservation_is_not_delayed_either():
    # 2 nodes. Job 0 holds node 0 until 10, job 1 (both nodes) is reserved 10-15. Job 2 (T4, 50 s)
    # is reserved at 20, when job 3 has ended; job 5 (30 s) on the other T4 may not delay it.
    groups = [nodes("V100", 1, 2), nodes("T4", 1, 2)]
    jobs = [asks(0, (10, 10), allowed=[0]), asks(0, (20, 20), allowed=[1])]
    jobs += [asks(1, (5, 5), gpus=2, allowed=[0]), asks(1, (50, 50), gpus=2, allowed=[1])]
    jobs += [asks(1, (30, 30), allowed=[1]), asks(1, (19, 19), allowed=[1])]
    assert starts(groups, jobs) == [0, 0, 10, 20, 70, 1]


def test_a_reservation_holds_whole_nodes():
    # One node of 4. Job 1 needs 3 GPUs and is reserved at 10, which leaves one that job 2 could use
    # beside it; Slurm keeps the whole node for job 1.
    jobs = [asks(0, 10, gpus=2), asks(1, 5, gpus=3), asks(1, 100)]
    assert starts([nodes("V100", 4)], jobs) == [0, 10, 10]
    # On another node it may start.
    assert starts([nodes("V100", 4), nodes("V100", 1, cores=9)], jobs) == [0, 10, 1]


def test_a_reservation_is_on_the_node_that_has_room_first():
    # Node 0 is half free at 6, node 1 full until 10: job 3 (2 GPUs) finds node 1 free at 10 and
    # node 0 at 200, so node 1 is reserved, and job 4 takes the free GPU of node 0.
    jobs = [asks(0, 200), asks(0, 10, gpus=2), asks(0, 5), asks(1, 5, gpus=2), asks(6, 99)]
    result = played([nodes("V100", 2, 2)], jobs)
    assert result.outcome["start"].tolist() == [0, 0, 0, 10, 6]
    assert [gpus_of(result, j) for j in range(5)] == [[0], [2, 3], [1], [2, 3], [1]]


def test_cores_and_memory_come_back_with_the_job_that_holds_them():
    # Two GPUs, three cores. Job 0 has one GPU and two cores until 10, so job 1 (one GPU, two cores)
    # is reserved at 10, and job 2 (one core, 10 s) would hold the node beyond that; job 3 not.
    groups = [nodes("V100", 2, cores=3)]
    jobs = [asks(0, 10, cores=2), asks(1, 5, cores=2), asks(1, 10, cores=1), asks(1, 9, cores=1)]
    assert starts(groups, jobs) == [0, 10, 10, 1]


@pytest.mark.parametrize(("one_node", "found"), [(0, [3, 40, 63]), (1, [40, 4, 54])])
def test_a_gang_on_one_node_waits_for_a_node_of_its_own(one_node, found):
    # Two nodes of 2. From 2 on one GPU of each is free, until 100 and until 40: job 3 (2 GPUs) may
    # start over both, or node 1 is reserved for it at 40. Then job 4 (50 s) may use the free GPU of
    # node 0, and job 5 that of node 1 only if it ended before 40.
    jobs = [asks(0, 100), asks(0, 2), asks(0, 40), asks(3, 60, gpus=2, one_node=one_node)]
    jobs += [asks(4, 50), asks(5, 50)]
    assert starts([nodes("V100", 2, 2)], jobs)[3:] == found


@pytest.mark.parametrize(("other", "found"), [(41, [10, 15]), (40, [21, 1])])
def test_ends_within_half_a_minute_count_at_the_last_of_them(other, found):
    # Job 0 holds a GPU of node 0 until 10, job 1 node 1 until 40 or 41. Job 2 (2 GPUs) is reserved
    # at 10, or at 40, as both ends are one step then: job 3 (20 s) goes through.
    jobs = [asks(0, 10), asks(0, other, gpus=2), asks(1, 5, gpus=2, one_node=1), asks(1, 20)]
    assert starts([nodes("V100", 2, 2)], jobs)[2:] == found


def test_a_job_past_its_limit_is_expected_to_end_in_a_second():
    # Job 0 (limit 2) still runs at 5: job 1 is reserved at 6. A limit of 1 s goes through, 2 s not.
    for limit, start in ((1, 5), (2, 20)):
        jobs = [asks(0, 12, 2), asks(5, 8, gpus=2), asks(5, 1, limit)]
        assert starts([nodes("V100", 2)], jobs) == [0, 12, start]


@pytest.mark.parametrize(("window", "start"), [(1, 2), (2, 110)])
def test_a_reservation_beyond_the_window_is_not_made(window, start):
    # Job 1 could start at 100; a window of one minute does not reach so far, and job 2 goes first.
    jobs = [asks(0, 100), asks(1, 10, gpus=2), asks(2, 500)]
    found = starts([nodes("V100", 2)], jobs, bf_window_min=window)
    assert found == [0, 100 if window == 2 else 502, start]


def test_reservations_are_rounded_down_to_the_resolution():
    # Job 1 is reserved at 100, or at 60 with a resolution of a minute: job 2 (90 s) must wait then.
    jobs = [asks(0, 100), asks(1, 10, gpus=2), asks(2, 90)]
    assert starts([nodes("V100", 2)], jobs, bf_resolution_s=1) == [0, 100, 2]
    assert starts([nodes("V100", 2)], jobs, bf_resolution_s=60) == [0, 100, 110]


def test_backfill_plans_only_the_first_jobs():
    jobs = [asks(0, 10), *[asks(1, 5, gpus=2)] * 3, asks(2, 1)]
    assert starts([nodes("V100", 2)], jobs, bf_max_job_test=4)[-1] == 2
    assert starts([nodes("V100", 2)], jobs, bf_max_job_test=3)[-1] == 10 + 5 + 5 + 5


def test_backfill_plans_only_so_many_jobs_of_a_user():
    jobs = [asks(0, 10), *[asks(1, 5, gpus=2, user=4)] * 2, asks(2, 1, user=4), asks(3, 1, user=-7)]
    assert starts([nodes("V100", 2)], jobs)[-2:] == [2, 3]
    assert starts([nodes("V100", 2)], jobs, bf_max_job_user=2)[-2:] == [10 + 5 + 5, 3]


@pytest.mark.parametrize(("arrival", "start"), [(1, 30), (29, 30), (30, 60), (31, 60)])
def test_backfill_runs_at_multiples_of_its_interval(arrival, start):
    # Job 2 is the only one that could go through, with the first cycle after its submission.
    jobs = [asks(0, 200), asks(0, 10, gpus=2), asks(arrival, 5)]
    assert starts([nodes("V100", 2)], jobs, bf_interval_s=30) == [0, 200, start]


def test_the_policy_is_not_called_for_cycles_in_which_nothing_can_change():
    # Job 1 waits for 50,000 s, and one timer after each event is all that rings.
    jobs = [asks(0, 50_000), asks(1, 10, gpus=2), asks(2, 90_000)]
    result = played([nodes("V100", 2)], jobs, bf_interval_s=30)
    assert result.outcome["start"].tolist() == [0, 50_000, 50_010]
    assert result.totals["decisions"] < 15


def test_looks_at_all_jobs_and_cycles_do_not_plan_each_other():
    # As above, but both timers are in use: more jobs wait than the main scheduler looks at.
    jobs = [asks(0, 50_000), asks(1, 10, gpus=2), asks(2, 90_000), asks(2, 90_000)]
    settings = {"bf_interval_s": 30, "sched_interval_s": 70, "default_queue_depth": 1}
    result = played([nodes("V100", 2)], jobs, **settings)
    assert result.outcome["start"].tolist() == [0, 50_000, 50_010, 50_010]
    assert result.totals["decisions"] < 25


def test_a_cycle_is_over_when_no_job_waits_any_more():
    # For jobs 1 and 2 a cycle is planned at 30, but at 25 all have started. Job 3 comes at 100 and
    # waits for job 2; job 4 may go through with the next cycle, at 120.
    jobs = [asks(0, 20, limit=60), asks(1, 5, gpus=2), asks(2, 900, limit=2000)]
    jobs += [asks(100, 5, gpus=2), asks(100, 5)]
    found = starts([nodes("V100", 2)], jobs, bf_interval_s=30)
    assert found == [0, 20, 25, 925, 120]


# Nodes.


def test_jobs_take_pools_and_nodes_in_order_whatever_their_speed():
    # Job 1 (2 GPUs) passes node 0, which has one left, and job 2 takes that one. Job 3 goes to the
    # next node of the first pool, not to the fast pool.
    groups = [nodes("V100", 2, 3), nodes("A100", 2)]
    jobs = [asks(0, (9, 1)), asks(0, (9, 1), gpus=2), asks(0, (9, 1)), asks(0, (9, 1))]
    result = played(groups, jobs)
    assert [gpus_of(result, j) for j in range(4)] == [[0], [2, 3], [1], [4]]


def test_the_first_node_in_order_is_taken_not_the_fullest():
    # At 5 node 0 is empty again and node 1 half full: best fit would take node 1.
    jobs = [asks(0, 5, gpus=2), asks(0, 99), asks(6, 9)]
    result = played([nodes("V100", 2, 2)], jobs)
    assert [gpus_of(result, j) for j in range(3)] == [[0, 1], [2], [0]]


def test_a_gang_that_no_node_holds_begins_on_the_first_node_with_room():
    jobs = [asks(0, 9, gpus=2), asks(0, 9, gpus=3)]
    result = played([nodes("V100", 2, 3)], jobs)
    assert [gpus_of(result, j) for j in range(2)] == [[0, 1], [2, 3, 4]]


def test_a_slice_goes_to_the_first_node_that_holds_it():
    jobs = [asks(0, 9), asks(0, 9, share=600), asks(0, 9, share=300), asks(0, 9, share=500)]
    result = played([nodes("V100", 1, 3)], jobs)
    assert [gpus_of(result, j) for j in range(4)] == [[0], [1], [1], [2]]


def test_a_slice_is_backfilled_beside_others_and_a_gpu_is_free_with_its_last_slice():
    # Both slices hold GPU 0 until 4 and 10. Job 2 (2 GPUs) is reserved at 10 on both nodes, so job
    # 3 (10 s) may not start at 1, and job 4 (9 s) may.
    jobs = [asks(0, 4, share=500), asks(0, 10, share=500), asks(1, 5, gpus=2)]
    jobs += [asks(1, 10), asks(1, 9, share=100)]
    assert starts([nodes("V100", 1, 2)], jobs) == [0, 0, 10, 15, 1]


# Settings.


def test_the_settings_of_the_scenario_are_params():
    world = build([nodes()], [asks(0, 1)], slurm={"weight_age": 12, "bf_window_min": 3})
    params = registry.load("slurm", world.setting).params
    assert params[0] == 12
    assert 180 in params
    other = build([nodes()], [asks(0, 1)])
    assert not np.array_equal(params, registry.load("slurm", other.setting).params)


def test_the_defaults_are_those_of_slurm():
    slurm = Slurm()
    assert (slurm.bf_interval_s, slurm.bf_resolution_s, slurm.bf_window_min) == (30, 60, 1440)
    assert (slurm.bf_max_job_test, slurm.default_queue_depth) == (500, 100)
    assert (slurm.max_age_s, slurm.scheduler) == (7 * DAY, "backfill")
