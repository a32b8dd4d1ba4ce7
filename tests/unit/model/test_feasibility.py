"""Feasibility: which jobs fit where, and expected ends."""

import numpy as np
import pytest

from adlro.model import feasibility, placement
from adlro.model.state import DECISION, DEMAND, RUNNING, START, WAITING
from adlro.model.view import View
from tests.worlds import fill, job, lay, nodes, records


def running(start=0.0, expected=0.0, served=0.0):
    """A running record."""
    run = np.zeros(1, RUNNING)
    run["start"], run["expected"], run["served"] = start, expected, served
    return run[0]


def take(layout, gpu, **want):
    """Allocate a GPU, or a slice of it, to a job with only these demands."""
    pool = layout.nodes["pool"][layout.gpus["node"][gpu]]
    decision = np.array([(START, 0, pool, -1, gpu, 0.0)], DECISION)[0]
    jobs = records([job(0, 1, **want)])
    placement.place(decision, jobs, np.zeros(0, DEMAND), layout.pools, layout.nodes, layout.gpus)
    return layout


def busy(layout, taken):
    """Allocate some GPUs of an empty cluster, by index."""
    for gpu in taken:
        take(layout, gpu)
    return layout


def queued(layout, seconds, allowed, **want):
    """A view of a cluster with one waiting job; seconds by model, allowed by pool."""
    rows, est = records([job(0, 1, **want)]), np.array([seconds], np.float64)
    queue, may = fill(WAITING, [{"left": 1.0}]), np.array([allowed], np.bool_)
    running, recent = np.zeros(0, RUNNING), np.zeros(1, np.int64)
    cluster = (layout.pools, layout.nodes, layout.gpus)
    return View(0.0, rows, est, queue, may, running, *cluster, 1, recent)


@pytest.mark.parametrize(
    ("gpus", "cores", "memory", "expected"),
    [
        (4, 0, 0, 4),  # no demand does not limit: all 4 free GPUs
        (9, 0, 0, 4),
        (3, 0, 0, 3),  # no more than the gang
        (4, 2, 0, 4),  # 8 cores // 2
        (4, 3, 0, 2),  # 8 // 3
        (4, 8, 0, 1),
        (4, 9, 0, 0),
        (4, 0, 512, 2),  # 1024 MB // 512
        (4, 0, 513, 1),
        (4, 0, 1025, 0),
        (4, 3, 1024, 1),  # the tighter of 2 and 1
        (4, 8, 300, 1),  # the tighter of 1 and 3
    ],
)
def test_the_capacity_of_a_node_is_limited_by_gpus_cores_and_memory(gpus, cores, memory, expected):
    layout = lay(nodes("V100", 4, cores=8, memory_gb=1))
    want = records([job(0, 1, gpus=gpus, cores=cores, memory=memory)])[0]
    assert feasibility.capacity(want, layout.nodes[0], layout.gpus) == expected


GB = 1024


@pytest.mark.parametrize(
    ("want", "expected"),
    [
        ({"share": 300}, 1),
        ({"share": 700}, 1),  # GPU 1 has as much left
        ({"share": 701}, 0),
        ({"share": 300, "gpu_memory": 10 * GB}, 1),  # GPU 1
        ({"share": 500, "gpu_memory": 11 * GB}, 0),  # GPU 0 has the memory, GPU 1 the share
        ({"share": 400, "gpu_memory": 11 * GB}, 1),
        ({"share": 100, "cores": 6}, 1),
        ({"share": 100, "cores": 7}, 0),
        ({"share": 100, "memory": GB}, 0),
    ],
)
def test_a_node_takes_a_slice_if_one_of_its_gpus_has_the_share_and_the_memory(want, expected):
    # T4s of 16 GB: 400 and 12 GB are left on GPU 0, 700 and 10 GB on GPU 1; 6 cores, < 1 GB host.
    layout = lay(nodes("T4", 2, cores=8, memory_gb=1))
    take(layout, 0, share=600, gpu_memory=4 * GB, cores=1, memory=100)
    take(layout, 1, share=300, gpu_memory=6 * GB, cores=1)
    slice_ = records([job(0, 1, **want)])[0]
    assert feasibility.capacity(slice_, layout.nodes[0], layout.gpus) == expected
    assert feasibility.fits(slice_, layout.pools[0], layout.nodes, layout.gpus) == bool(expected)


def test_a_whole_gpu_job_does_not_fit_on_a_gpu_with_a_slice():
    layout = take(lay(nodes("T4", 2)), 0, share=1)
    assert layout.pools[["free", "sliced"]].tolist() == [(1, 1)]
    for gpus, expected in ((1, True), (2, False)):
        gang = records([job(0, 1, gpus=gpus)])[0]
        assert feasibility.fits(gang, layout.pools[0], layout.nodes, layout.gpus) == expected


def test_a_pool_has_free_capacity_while_a_gpu_is_free_or_sliced():
    layout = lay(nodes("T4", 2))
    seen = [feasibility.has_free(layout.pools[0])]
    for gpu, share in ((0, 1000), (1, 400)):
        take(layout, gpu, share=share)
        seen.append(feasibility.has_free(layout.pools[0]))
    take(layout, 1, share=600)
    assert [*seen, layout.pools["free"][0]] == [True, True, True, 0]


def test_a_node_that_is_down_has_no_capacity():
    layout = lay(nodes("T4", 2))
    layout.nodes["up"], layout.nodes["free"], layout.gpus["free"] = 0, 0, 0
    for share in (1, 1000):
        want = records([job(0, 1, share=share)])[0]
        assert feasibility.capacity(want, layout.nodes[0], layout.gpus) == 0


@pytest.mark.parametrize(
    ("want", "expected"),
    [
        ({"gpus": 7}, True),
        ({"gpus": 8}, False),  # one of the eight is taken
        ({"gpus": 4, "cores": 4}, True),  # 8 cores a node: two GPUs on each
        ({"gpus": 5, "cores": 4}, False),
        ({"gpus": 1, "cores": 9}, False),
    ],
)
def test_a_gang_fits_when_the_nodes_together_can_hold_it(want, expected):
    layout = busy(lay(nodes("V100", 4, 2, cores=8), nodes("T4", 8)), [1])
    gang = records([job(0, 1, **want)])[0]
    assert feasibility.fits(gang, layout.pools[0], layout.nodes, layout.gpus) == expected


@pytest.mark.parametrize(
    ("now", "expected", "end"),
    [
        (5, 20, 20),  # on time
        (20, 20, 22),  # due now: a tenth of its 20 s more
        (40, 20, 44),
        (5, 5, 6),  # a tenth would be half a second; at least one
        (5, 3, 6),
    ],
)
def test_an_overdue_run_is_expected_to_take_a_tenth_of_its_age_or_a_second_more(now, expected, end):
    assert feasibility.expected_end(running(expected=expected), float(now)) == end


def test_the_age_of_an_overdue_run_counts_from_its_start():
    assert feasibility.expected_end(running(start=60, expected=70), 100.0) == 104.0


@pytest.mark.parametrize(
    ("seconds", "allowed", "taken", "feasible", "eligible"),
    [
        ((3, 2, 9), (1, 1, 1), [], 1, 1),
        ((3, 2, 9), (1, 0, 1), [], 0, 0),
        ((3, 2, 9), (1, 1, 1), [1], 0, 1),
        ((3, 3, 3), (1, 1, 1), [], 0, 0),  # equals: the lower pool
        ((3, 2, 9), (0, 0, 1), [2], -1, 2),
        ((3, 2, 9), (0, 0, 0), [], -1, -1),
    ],
)
def test_the_fastest_pool_is_the_one_with_the_least_seconds_that_fits_or_may(
    seconds, allowed, taken, feasible, eligible
):
    layout = busy(lay(nodes("V100"), nodes("T4"), nodes("A100")), taken)
    view = queued(layout, seconds, allowed)
    assert feasibility.fastest_feasible(0, view) == feasible
    found = feasibility.fastest_up(view.jobs[0], view.est[0], view.eligible[0], layout.pools)
    assert found == eligible


def test_a_pool_with_too_few_gpus_up_is_not_the_fastest():
    layout = lay(nodes("V100", 2), nodes("T4", 2))
    layout.pools["gpus"] = [1, 2]
    times, may = np.array([3.0, 9.0]), np.ones(2, np.bool_)
    found = [
        feasibility.fastest_up(records([job(0, 1, gpus=gpus)])[0], times, may, layout.pools)
        for gpus in (1, 2, 3)
    ]
    assert found == [0, 1, -1]


def test_a_run_has_been_served_its_share_of_its_gpus_since_its_start():
    gang, slice_ = records([job(0, 1, gpus=4), job(0, 1, share=250)])
    run = running(start=10, served=100)
    assert feasibility.served(15.0, run, gang) == 100 + 5 * 4
    assert feasibility.served(15.0, run, slice_) == 100 + 5 * 0.25
