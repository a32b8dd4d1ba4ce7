"""Pairs at a fair price, by the duals of the capacity LP."""

import pytest

from adlro.config.files import find_scenario
from adlro.workloads.setting import prepare
from tests.worlds import build, fails, is_repaired, job, nodes, play

TWO = [nodes("V100"), nodes("T4")]
PRICES = (1.0, 0.5)


def outcome(jobs, groups=TWO, prices=PRICES, events=()):
    return play(build(groups, jobs, prices=prices, events=events), "lp-price").outcome


def test_a_job_takes_the_pool_where_it_pays_least():
    # 4 x 1 = 4 on the V100, 6 x 0.5 = 3 on the T4, which is slower.
    assert outcome([job(0, 4, 6)])["pool"].tolist() == [1]


@pytest.mark.parametrize(("slow", "pool", "start"), [(5.9, 1, 1), (6.1, 0, 9)])
def test_a_job_pays_one_and_a_half_times_its_cheapest_price_and_no_more(slow, pool, start):
    # Job 0 holds the V100 until 9. Job 1 would pay 2 x 1 there, so up to 3: 6 s on the T4.
    found = outcome([job(0, 9, 99), job(1, 2, slow)])
    assert (found["pool"][1], found["start"][1]) == (pool, start)


def test_of_all_pairs_the_one_that_pays_least_starts_first():
    # Both may use the T4 alone; job 1 pays 2 x 0.5 there, job 0 3 x 0.5.
    jobs = [job(0, 9, 3, allowed=[1]), job(0, 9, 2, allowed=[1])]
    assert outcome(jobs)["start"].tolist() == [2, 0]


def test_a_gang_pays_by_the_gpu():
    # Job 0 pays 3 for each of its two GPUs, job 1 4 for its one.
    jobs = [job(0, 3, gpus=2), job(0, 4)]
    assert outcome(jobs, [nodes("V100", 2)], (1.0,))["start"].tolist() == [0, 3]


def test_a_pool_is_never_for_nothing():
    # A T4 counts as 0.1, not as 0: job 0 pays 1 on the V100 and 20 x 0.1 = 2 there.
    assert outcome([job(0, 1, 20)], prices=(1.0, 0.0))["pool"].tolist() == [0]


def test_a_pool_with_too_few_gpus_up_sets_no_price():
    # The T4 (20 x 0.5 = 10 against 50) is down until 200: the V100 is the cheapest that is up. Job
    # 0 holds another V100, so that job 1 does not start because nothing else runs.
    events = [fails(0, 2), is_repaired(200, 2)]
    jobs = [job(0, 99, 99, allowed=[0]), job(1, 50, 20)]
    found = outcome(jobs, [nodes("V100", count=2), nodes("T4")], events=events)
    assert (found["pool"][1], found["start"][1]) == (0, 1)


def test_with_nothing_running_a_dear_pool_is_better_than_none():
    # The gang needs both nodes of pool 0 for its cores. Node 1 is down until 90: there are GPUs
    # enough on node 0, so the price (10) is known, but no room. Pool 1 (40) is taken at once.
    groups = [nodes("V100", 2, 2, cores=2), nodes("T4", 2)]
    events = [fails(0, 1), is_repaired(90, 1)]
    found = outcome([job(1, 10, 40, gpus=2, cores=2)], groups, (1.0, 1.0), events)
    assert (found["pool"][0], found["start"][0]) == (1, 1)


def test_of_equals_the_older_job_and_then_the_lower_pool_goes_first():
    found = outcome([job(0, 3, 3), job(0, 3, 3), job(0, 3, 3)], prices=(1.0, 1.0))
    assert found["pool"].tolist() == [0, 1, 0]
    assert found["start"].tolist() == [0, 0, 3]


def test_the_prices_are_those_of_the_capacity_lp():
    # paper16: the Volta pool is the one that every type wants most.
    prices = prepare(find_scenario("paper16")).lp_prices
    assert prices[0] == 1
    assert (prices[1:] < 0.9).all()
    assert (prices[1:] > 0.7).all()
