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
