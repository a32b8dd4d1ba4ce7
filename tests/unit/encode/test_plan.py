"""The Min-Min plan's arithmetic, beside the same done with sorted lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.encode import plan
from adlro.model.state import RUNNING
from adlro.policies import registry
from tests.plain.cases import random_case
from tests.worlds import from_case, job, lay, nodes, play, records

TIMES = st.floats(0, 100) | st.integers(0, 10).map(float)
MODELS = ["V100", "T4", "A100"]


def running(rows):
    """Running records of (job, pool, start, expected)."""
    result = np.zeros(len(rows), RUNNING)
    for record, row in zip(result, rows, strict=True):
        record["job"], record["pool"], record["start"], record["expected"] = row
    return result


@st.composite
def busy_clusters(draw):
    """Pools of GPUs with gangs running on them: the layout, the jobs and the runs."""
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
    """Free now, or at the expected end; an overdue job takes a tenth of its age or 1 s more."""
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
    times = np.full(len(layout.gpus), np.nan)
    plan.fill_free_times(now, jobs, runs, layout.pools, times)
    expected = [naive_free_times(now, jobs, runs, pool) for pool in enumerate(layout.pools)]
    assert times.tolist() == [time for pool in expected for time in pool]


@given(st.lists(TIMES, min_size=1, max_size=9), st.integers(1, 9), TIMES, st.integers(0, 4))
@settings(deadline=None, max_examples=150)
def test_a_reservation_replaces_the_smallest_times_and_keeps_the_order(times, gpus, until, before):
    gpus = min(gpus, len(times))
    layout = lay(*[nodes("V100", before)] * (before > 0), nodes("T4", len(times)))
    whole = np.array([-1.0] * before + sorted(times))
    plan.reserve(layout.pools[-1], gpus, until, whole)
    expected = sorted([until] * gpus + sorted(times)[gpus:])
    assert whole.tolist() == [-1.0] * before + expected


def test_a_reservation_leaves_the_pools_before_and_behind_alone():
    layout = lay(nodes("V100", 2), nodes("T4", 3), nodes("A100", 2))
    times = np.array([1.0, 9.0, 2.0, 3.0, 8.0, 0.0, 7.0])
    plan.reserve(layout.pools[1], 2, 5.0, times)
    assert times.tolist() == [1, 9, 5, 5, 8, 0, 7]


def test_the_free_gpus_of_a_cluster_are_those_of_its_pools():
    layout = lay(nodes("V100", 2, 3), nodes("T4", 3))
    layout.pools["free"] = [4, 1]
    assert plan.free_gpus(layout.pools) == 5


@pytest.mark.parametrize("seed", range(0, 200, 5))
def test_a_plan_is_the_same_with_scratch_of_its_own_and_without(seed):
    # With one number of memory every call has to allocate its scratch.
    world = from_case(random_case(seed))
    ready = registry.load("min-min", world.setting)
    lean = ready._replace(memory=1)
    assert ready.memory >= len(world.empty.gpus) + 2 * 100
    assert play(world, lean).outcome.tobytes() == play(world, ready).outcome.tobytes()
