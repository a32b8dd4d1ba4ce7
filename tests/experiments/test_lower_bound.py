"""The experiment on the lower bound: the optimum of small instances, and what lies around it."""

from itertools import permutations

import numpy as np
import pytest

from adlro.evaluate.lower_bound_kernel import Relaxation
from adlro.workloads.setting import prepare
from experiments.lower_bound import run
from experiments.lower_bound.exact import least_mean_jct
from tests.comparisons import STEADY, compared

SLACK = 1e-9  # relative: rounding


def optimum(gpus, *jobs):
    """Least mean JCT of jobs, each (arrival, GPUs, seconds by pool)."""
    arrivals, widths, seconds = zip(*jobs, strict=True)
    return least_mean_jct(
        Relaxation(
            np.array(arrivals, np.float64),
            np.array(seconds, np.float64),
            np.array(widths, np.float64),
            np.array(gpus, np.float64),
        )
    )


def test_on_one_gpu_the_shortest_job_is_first():
    assert optimum([1], (0, 1, [10]), (0, 1, [1]), (0, 1, [3])) == pytest.approx((1 + 4 + 14) / 3)


def test_the_gpu_may_be_kept_free_for_a_job_that_will_arrive():
    # Job 0 at once: 10, and job 1 from 10 to 11: 10. Job 1 first: 1, and job 0 from 2 to 12: 12.
    assert optimum([1], (0, 1, [10]), (1, 1, [1])) == pytest.approx((12 + 1) / 2)


def test_a_slower_pool_is_used_where_that_is_better_than_waiting():
    # Job 0 on the second pool and job 1 on the first: 3 and 10. The other way round: 2 and 18.
    assert optimum([1, 1], (0, 1, [2, 3]), (0, 1, [10, 18])) == pytest.approx((3 + 10) / 2)


def test_a_gang_waits_for_all_of_its_gpus_and_pools_where_it_may_not_run_are_left_out():
    # The gang first: 4, then 9 and 6 side by side: 13 and 10. Last: 6, 9, and 9 + 4.
    jobs = (0, 2, [4, np.inf]), (0, 1, [9, np.inf]), (0, 1, [6, np.inf])
    assert optimum([2, 5], *jobs) == pytest.approx((4 + 13 + 10) / 3)


def test_it_agrees_with_trying_every_order_on_one_gpu():
    rng = np.random.default_rng(5)
    for _ in range(10):
        arrival, seconds = np.sort(rng.uniform(0, 20, 5)), rng.uniform(1, 20, 5)
        totals = []
        for order in permutations(range(5)):
            now, total = 0.0, 0.0
            for j in order:
                now = max(now, arrival[j]) + seconds[j]
                total += now - arrival[j]
            totals.append(total)
        jobs = [(a, 1, [s]) for a, s in zip(arrival, seconds, strict=True)]
        assert optimum([1], *jobs) == pytest.approx(min(totals) / 5)


@pytest.mark.parametrize("kind", run.SMALL, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "seeds", [range(1000, 1008), pytest.param(range(100), marks=pytest.mark.slow)], ids=len
)
def test_the_optimum_is_above_the_bounds_and_below_every_policy(kind, seeds):
    setting, in_order = prepare(run.small_scenario(kind)), []
    for seed in seeds:
        found = run.against_optimum(setting, seed)
        assert 0.5 < found.pop("preemptive") <= found["lower bound"] + SLACK
        assert 0.6 < found.pop("lower bound") <= 1 + SLACK
        assert set(found) == {"look-ahead", *run.SMALL_POLICIES}
        assert min(found.values()) >= 1 - SLACK
        in_order.append(found["fcfs"])
    assert np.mean(in_order) > 1.05  # jobs wait: otherwise all of them agree and show nothing


def test_lines_have_the_bound_that_holds_for_each_policy():
    jcts = {"min-min": 3 * STEADY, "hetero-srpt": 2 * STEADY}
    found = compared(jcts, ("hetero-srpt",), look_ahead=2.5 * STEADY)
    bound, ahead, quiet, free, stops = run._lines([found])
    assert bound == [run.BOUND, "141 ± 21", "1", ""]
    assert ahead == [run.LOOK_AHEAD, "281 ± 42", "2.00", ""]
    assert quiet == ["min-min", "338 ± 50", "2.40 ± 0.00", "0 of 8"]
    assert free == [run.FREE_BOUND, "70 ± 10", "1", ""]
    assert stops == ["hetero-srpt (preemptive)", "225 ± 33", "3.20 ± 0.00", "8 of 8"]
