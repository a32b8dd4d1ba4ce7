"""AlloX: the assignment by hand and by brute force, gangs, slices and fairness."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.model.state import RUNNING
from adlro.policies import allox, registry
from tests.worlds import build, fails, is_repaired, job, nodes, play

TWO = [nodes("V100"), nodes("T4")]


def outcome(groups, jobs, **more):
    return play(build(groups, jobs, **more), "allox").outcome


def test_on_one_gpu_the_shortest_job_runs_first():
    # Positions from the end 1, 2, 3 for 5, 3 and 2 s: 1 x 5 + 2 x 3 + 3 x 2 = 17 s in all.
    assert outcome([nodes()], [job(0, 5), job(0, 2), job(0, 3)])["start"].tolist() == [5, 0, 2]


def test_the_job_that_gains_less_leaves_the_fast_gpu_to_the_other():
    # 3 + 9 = 12 against 5 + 4 = 9; one after the other on the V100: 3 + 7 = 10.
    found = outcome(TWO, [job(0, 3, 5), job(0, 4, 9)])
    assert found["pool"].tolist() == [1, 0]
    assert found["start"].tolist() == [0, 0]


@pytest.mark.parametrize(("slow", "pool", "start"), [(6.9, 1, 1), (7.1, 0, 4)])
def test_a_job_waits_for_a_busy_gpu_by_the_seconds_until_it_is_free(slow, pool, start):
    # At 1 the V100 is busy for 3 more seconds: 3 + 4 = 7 there.
    found = outcome(TWO, [job(0, 4, 99), job(1, 4, slow)])
    assert (found["pool"][1], found["start"][1]) == (pool, start)


def total(seconds, busy, order):
    """Completions added up, with a list of jobs for each GPU, first to last."""
    cost = 0.0
    for i, jobs in enumerate(order):
        end = busy[i]
        for j in jobs:
            end += seconds[j, i]
            cost += end
    return cost


def brute_force(seconds, busy):
    """The smallest total over every split of the jobs and every order on each GPU."""
    count, gpus = seconds.shape
    least = np.inf
    for split in product(range(gpus), repeat=count):
        own = [[j for j in range(count) if split[j] == i] for i in range(gpus)]
        for order in product(*(permutations(jobs) for jobs in own)):
            least = min(least, total(seconds, busy, order))
    return least


LENGTHS = st.sampled_from([1.0, 2.0, 3.0, 7.5, 20.0, np.inf])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_assignment_is_the_best_of_all_schedules(data):
    count, gpus = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    rows = st.lists(LENGTHS, min_size=gpus, max_size=gpus).filter(lambda r: min(r) < np.inf)
    seconds = np.array(data.draw(st.lists(rows, min_size=count, max_size=count)))
    busy = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 6.0]), min_size=gpus)))[:gpus]
    machine, place = allox.assign(seconds, np.ones(count, np.int64), busy)
    order = [
        sorted(np.flatnonzero(machine == i).tolist(), key=lambda j: -place[j]) for i in range(gpus)
    ]
    assert total(seconds, busy, order) == pytest.approx(brute_force(seconds, busy))


def test_there_are_places_enough_when_all_want_one_gpu():
    # Seven jobs may use the first of three GPUs alone: ceil(7 / 3) + 3 = 6 places are not enough.
    seconds = np.full((7, 3), np.inf)
    seconds[:, 0] = np.arange(1.0, 8.0)
    machine, place = allox.assign(seconds, np.ones(7, np.int64), np.zeros(3))
    assert machine.tolist() == [0] * 7
    assert place.tolist() == [7, 6, 5, 4, 3, 2, 1]


def test_a_good_gpu_gets_as_many_jobs_as_are_best_for_all():
    # The second and third GPU are so slow that all nine run on the first; 9 > ceil(9 / 3) + 3.
    seconds = np.array([[1.0, 1000.0, 1000.0]] * 9)
    assert allox.assign(seconds, np.ones(9, np.int64), np.zeros(3))[0].tolist() == [0] * 9


@settings(max_examples=30, deadline=None)
@given(st.lists(LENGTHS.filter(np.isfinite), min_size=1, max_size=4), st.data())
def test_of_gpus_that_are_alike_the_first_to_be_free_are_enough(lengths, data):
    # As many as there are jobs, of seven; the sum of all completions stays the same.
    busy = np.sort(data.draw(st.lists(st.integers(0, 9), min_size=7, max_size=7))).astype(float)
    ones = np.ones(len(lengths), np.int64)

    def cost(gpus):
        seconds = np.repeat(np.array(lengths)[:, None], gpus, axis=1)
        machine, place = allox.assign(seconds, ones, busy[:gpus])
        return (busy[machine] + place * lengths).sum()

    assert cost(len(lengths)) == cost(7)


def test_of_each_pool_as_many_gpus_are_kept_as_are_asked_for():
    # Pool 0 has three GPUs, two of them free and one that job 0 holds for 4 more seconds.
    world = build([nodes("V100", 3), nodes("T4")], [job(0, 5, 9)])
    pools, runs = world.empty.pools.copy(), np.zeros(1, RUNNING)
    pools["free"], runs["expected"] = [2, 1], 5
    view = (world.workload.jobs, runs, pools)
    assert [a.tolist() for a in allox.busy_for(1, 9, *view)] == [[0, 0, 0, 1], [0, 0, 4, 0]]
    assert [a.tolist() for a in allox.busy_for(1, 2, *view)] == [[0, 0, 1], [0, 0, 0]]


def test_an_overdue_job_is_expected_to_end_a_second_or_a_tenth_of_its_age_later():
    # Job 0 (estimate 2) is overdue at 5 on the V100: 1 s more, so job 1 would end there in 1 + 4.
    jobs = [job(0, 10, 99, est=(2, 99)), job(5, 4, 4.9)]
    assert outcome(TWO, jobs)["start"][1] == 5
    assert outcome(TWO, [jobs[0], job(5, 4, 5.1)])["start"][1] == 10


def test_a_gang_takes_gpus_that_are_free_together():
    # Job 0 holds one of three GPUs until 4; the gang of two starts on the others at 1.
    found = outcome([nodes("V100", 3)], [job(0, 4), job(1, 2, gpus=2)])
    assert found["start"].tolist() == [0, 1]


def test_idle_gpus_wait_with_a_gang_that_is_next():
    # Job 0 holds one of two GPUs until 4, for which job 1 (both, 2 s) is next: at 1 the other GPU
    # starts nothing that ends after 4. Job 2 (3.5 s) goes behind it, job 3 (2.5 s) fits before.
    jobs = [job(0, 4), job(1, 2, gpus=2)]
    assert outcome([nodes("V100", 2)], [*jobs, job(1, 3.5)])["start"].tolist() == [0, 4, 6]
    assert outcome([nodes("V100", 2)], [*jobs, job(1, 2.5)])["start"].tolist() == [0, 4, 1]


def test_a_slice_starts_beside_another():
    jobs = [job(0, 10, share=500), job(1, 5, share=500)]
    assert outcome([nodes()], jobs)["start"].tolist() == [0, 1]


def test_what_the_plan_cannot_place_starts_if_nothing_else_runs():
    # The gang needs both nodes of pool 0 for its cores; node 1 is down until 90. The plan counts
    # GPUs and gives it node 0's two; it has no room there and goes to the slower pool 1.
    groups = [nodes("V100", 2, 2, cores=2), nodes("T4", 2)]
    events = [fails(0, 1), is_repaired(90, 1)]
    found = outcome(groups, [job(1, 10, 40, gpus=2, cores=2)], events=events)
    assert (found["pool"][0], found["start"][0]) == (1, 1)


@pytest.mark.parametrize(("share", "expected"), [(1.0, [0, 1, 5, 5.5]), (0.5, [0, 1, 7, 5])])
def test_with_half_of_the_users_the_one_served_least_goes_first(share, expected):
    # User 0 holds the T4 from 0 on, user 1 the V100 from 1 to 5; then jobs 2 (user 0) and 3 (user
    # 1) wait for the V100. By then user 0 was served 5 GPU-seconds by what is here, user 1 nothing.
    world = build(
        TWO,
        [
            job(0, 99, 50, user=0, allowed=[1]),
            job(1, 4, 99, user=1, allowed=[0]),
            job(2, 0.5, 99, user=0, allowed=[0]),
            job(2, 2, 99, user=1, allowed=[0]),
        ],
    )
    policy = registry.load("allox", world.setting)._replace(params=np.array([share]))
    assert play(world, policy).outcome["start"].tolist() == expected


def test_the_plan_of_a_moment_is_made_once(monkeypatch):
    made = []
    plan = allox._plan
    monkeypatch.setattr(allox, "_plan", lambda v, *more: made.append(v.now) or plan(v, *more))
    outcome(TWO, [job(0, 3, 3), job(0, 3, 3), job(1, 2, 2), job(3, 1, 1)])
    assert made == [0, 1, 3]


def test_a_second_moment_at_the_same_time_has_a_plan_of_its_own():
    # Job 0 takes no time: it ends in a second moment at 0, when job 1 starts.
    assert outcome([nodes()], [job(0, 0), job(0, 3)])["start"].tolist() == [0, 0]


def test_more_slices_than_gpus_start_in_one_moment():
    jobs = [job(0, 5, share=250) for _ in range(4)]
    assert outcome([nodes()], jobs)["start"].tolist() == [0] * 4


def test_slices_without_room_do_not_hold_up_one_that_has_room_elsewhere():
    # Jobs 2 to 5 may only use the V100, which job 0 has; job 6 fits beside job 1 on the T4.
    jobs = [
        job(0, 100, 999, allowed=[0]),
        job(0, 999, 50, share=300, allowed=[1]),
        *(job(1, 10, 999, share=500, allowed=[0]) for _ in range(4)),
        job(1, 999, 10, share=500, allowed=[1]),
    ]
    assert outcome(TWO, jobs)["start"][6] == 1


@pytest.mark.parametrize("lengths", [(10, 8), (8, 10)])
def test_of_equal_optima_an_idle_gpu_starts_the_shorter_job(lengths):
    # One of two GPUs is busy until 6. At 1 either job may start on the other, and the longer one
    # after it at 6: 8 + (5 + 10) = 10 + (5 + 8) = 23 s in all.
    found = outcome([nodes("V100", 2)], [job(0, 6), *(job(1, length) for length in lengths)])
    starts = dict(zip(lengths, found["start"][1:].tolist(), strict=True))
    assert starts == {8: 1, 10: 6}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_trading_gpus_costs_nothing_and_starts_the_shortest(data):
    count, widths = data.draw(st.integers(1, 7)), data.draw(st.sampled_from([(1,), (1, 2)]))
    home = np.array([0, 0, 0, 1, 1])
    pair = st.tuples(*[LENGTHS] * 2).filter(lambda lengths: min(lengths) < np.inf)
    pools = np.array(data.draw(st.lists(pair, min_size=count, max_size=count)))
    gangs = np.array([data.draw(st.sampled_from(widths)) for _ in range(count)])
    free = st.sampled_from([0.0, 0.0, 1.0, 6.0])
    busy = np.concatenate([np.sort([data.draw(free) for _ in range(n)]) for n in (3, 2)])
    rank = np.array([0, 1, 2, 0, 1])
    seconds = np.where(rank >= gangs[:, None] - 1, pools[:, home], np.inf)
    before, place = allox.assign(seconds, gangs, busy)
    after = allox.start_shortest(seconds, gangs, home, busy, (before, place))

    def cost(machine):
        own = seconds[np.arange(count), machine]
        return (busy[machine] + own * (1 + gangs * (place - 1))).sum()

    assert cost(after) == pytest.approx(cost(before))
    assert len(set(zip(after, place, strict=True))) == count
    first = {i: place[after == i].max() for i in after.tolist()}
    starting = [place[j] == first[after[j]] and busy[after[j]] == 0 for j in range(count)]
    for a, b in permutations(range(count), 2):
        alike = gangs[a] == gangs[b] and place[a] == place[b] and home[after[a]] == home[after[b]]
        if alike and starting[a] and not starting[b]:
            assert seconds[a, after[a]] <= seconds[b, after[b]]
