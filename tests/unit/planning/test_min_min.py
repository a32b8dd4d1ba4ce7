"""The Min-Min plan, compared with the same computation on sorted lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.model.state import RUNNING, WAITING
from adlro.model.view import View
from adlro.planning import min_min
from adlro.policies import registry
from tests.looped import every
from tests.plain.cases import random_case
from tests.worlds import from_case, job, lay, nodes, play, records

TIMES = st.floats(0, 100) | st.integers(0, 10).map(float)
MODELS = ["V100", "T4", "A100"]


def running(rows):
    """Running records of (job, pool, start, expected), no two on one GPU."""
    result = np.zeros(len(rows), RUNNING)
    result["before"] = result["after"] = -1
    for record, row in zip(result, rows, strict=True):
        record["job"], record["pool"], record["start"], record["expected"] = row
    return result


def seen(now, layout, jobs, runs):
    """A view with runs on a cluster and an empty queue."""
    queue, eligible = np.zeros(0, WAITING), np.zeros((0, len(layout.pools)), np.bool_)
    rows = np.arange(len(jobs))
    est = np.ones((len(jobs), len(layout.models)))
    cluster = (layout.pools, layout.nodes, layout.gpus)
    return View(float(now), jobs, est, queue, eligible, runs, *cluster, len(jobs), rows)


def free_times(now, layout, jobs, runs, wanted=10**6):
    """The `wanted` earliest free times of each pool in the plan."""
    times, counts = np.full(len(layout.gpus), np.nan), np.full(len(layout.pools), np.nan)
    min_min.fill_free_times(wanted, seen(now, layout, jobs, runs), counts, times)
    firsts = layout.pools["first_gpu"]
    return [times[f : f + int(n)].tolist() for f, n in zip(firsts, counts, strict=True)]


@st.composite
def busy_clusters(draw):
    """Random pools with running gangs: layout, jobs and runs."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    layout = lay(*(nodes(model, size) for model, size in zip(MODELS, sizes, strict=False)))
    gangs = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5), TIMES, TIMES)))
    rows, jobs = [], [job(0, 1)]
    for pool, gpus, start, expected in gangs:
        if pool < len(sizes) and gpus <= layout.pools["free"][pool]:
            layout.pools["free"][pool] -= gpus
            rows.append((len(jobs), pool, start, expected))
            jobs.append(job(0, 1, gpus=gpus))
    return layout, records(jobs), running(rows)


def naive_free_times(now, jobs, runs, pool):
    """Free now or at the expected end; an overdue run takes a tenth of its age or 1 s more."""
    times = [now] * int(pool[1]["free"])
    for run in runs[runs["pool"] == pool[0]]:
        overdue = now + max(0.1 * (now - run["start"]), 1)
        end = run["expected"] if run["expected"] > now else overdue
        times += [float(end)] * int(jobs["gpus"][run["job"]])
    return sorted(times)


@given(busy_clusters(), TIMES)
@settings(deadline=None, max_examples=150)
def test_free_times_are_the_expected_ends_sorted_within_each_pool(cluster, now):
    layout, jobs, runs = cluster
    expected = [naive_free_times(now, jobs, runs, pool) for pool in enumerate(layout.pools)]
    assert free_times(now, layout, jobs, runs) == expected


@given(busy_clusters(), TIMES, st.integers(1, 6))
@settings(deadline=None, max_examples=150)
def test_only_the_wanted_earliest_free_times_are_stored(cluster, now, wanted):
    layout, jobs, runs = cluster
    expected = [naive_free_times(now, jobs, runs, pool) for pool in enumerate(layout.pools)]
    got = free_times(now, layout, jobs, runs, wanted)
    assert got == [times[:wanted] for times in expected]


def test_a_gpu_with_slices_is_free_when_the_last_of_them_ends():
    # Runs 0 and 1 share a GPU until 7 and 9, run 2 has one alone until 8; the fourth GPU is free.
    layout = lay(nodes("V100", 4))
    layout.pools["free"], layout.pools["sliced"] = 1, 2
    jobs = records([job(0, 1, share=500), job(0, 1, share=300), job(0, 1, share=200), job(0, 1)])
    runs = running([(0, 0, 0, 7), (1, 0, 0, 9), (2, 0, 0, 8), (3, 0, 0, 20)])
    runs["after"][0], runs["before"][1] = 1, 0
    assert free_times(5.0, layout, jobs, runs) == [[5, 8, 9, 20]]


def test_an_overdue_slice_counts_as_any_overdue_run():
    # At 20 the slice expected at 7 is overdue: 20 + 0.1 * 20.
    layout = lay(nodes("V100"))
    layout.pools["free"], layout.pools["sliced"] = 0, 1
    jobs = records([job(0, 1, share=500), job(0, 1, share=300)])
    runs = running([(0, 0, 0, 7), (1, 0, 19, 21)])
    runs["after"][1], runs["before"][0] = 0, 1
    assert free_times(20.0, layout, jobs, runs) == [[22]]


def test_gpus_that_are_down_have_no_free_time():
    layout = lay(nodes("V100", 2, 2), nodes("T4", 2))
    layout.pools["gpus"], layout.pools["free"] = [2, 0], [1, 0]
    runs = running([(0, 0, 0, 7)])
    assert free_times(5.0, layout, records([job(0, 1)]), runs) == [[5, 7], []]


@given(st.lists(TIMES, min_size=1, max_size=9), st.integers(1, 9), TIMES, st.integers(0, 4))
@settings(deadline=None, max_examples=150)
def test_a_reservation_replaces_the_smallest_times_and_keeps_the_order(times, gpus, until, before):
    gpus = min(gpus, len(times))
    whole = np.array([-1.0] * before + sorted(times))
    min_min.reserve(before, len(times), gpus, until, whole)
    expected = sorted([until] * gpus + sorted(times)[gpus:])
    assert whole.tolist() == [-1.0] * before + expected


def test_a_reservation_does_not_change_the_neighbouring_pools():
    times = np.array([1.0, 9.0, 2.0, 3.0, 8.0, 0.0, 7.0])
    min_min.reserve(2, 3, 2, 5.0, times)
    assert times.tolist() == [1, 9, 5, 5, 8, 0, 7]


@pytest.mark.parametrize(
    ("want", "ready"),
    [
        ({"gpus": 1}, 6),
        ({"gpus": 2}, 8),
        ({"gpus": 3}, np.inf),  # too few are up
        ({"share": 400}, 5),  # it fits beside the slice that runs: now
        ({"share": 600}, 6),  # it does not: as a whole GPU
    ],
)
def test_a_job_is_ready_when_its_last_gpu_is_free_and_a_slice_when_it_fits(want, ready):
    layout = lay(nodes("V100", 2))
    layout.pools["free"], layout.pools["sliced"], layout.nodes["free"] = 0, 1, 0
    layout.gpus["free"] = [0, 500]
    rows = records([job(0, 1, **want)])
    times = np.array([6.0, 8.0])
    idle = (np.zeros(0, WAITING), np.zeros((0, 1), np.bool_), np.zeros(0, RUNNING))
    cluster = (layout.pools, layout.nodes, layout.gpus)
    view = View(5.0, rows, np.ones((1, 1)), *idle, *cluster, 1, np.zeros(0, np.int64))
    got = min_min.ready_time(rows[0], layout.pools[0], view, times, times)
    assert got == ready


def test_the_requested_gpus_are_the_sum_of_the_waiting_gangs():
    queue = np.zeros(2, WAITING)
    queue["job"] = [1, 2]
    jobs = records([job(0, 1, gpus=9), job(0, 1, gpus=4), job(0, 1, share=100)])
    assert min_min.asked(jobs, queue).gpus == 5


@every("seed", range(0, 200, 5))
def test_a_plan_is_the_same_with_scratch_of_its_own_and_without(seed):
    # With one number of memory every call has to allocate its scratch.
    world = from_case(random_case(seed))
    ready = registry.load("min-min", world.setting)
    lean = ready._replace(memory=1)
    assert ready.memory >= len(world.empty.gpus) + 3 * 100
    assert play(world, lean).outcome.tobytes() == play(world, ready).outcome.tobytes()
