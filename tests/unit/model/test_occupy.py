"""GPUs reported as held by a job: recorded after a check, or refused with a reason."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.errors import PlacementError
from adlro.model import placement
from adlro.model.occupy import occupy
from adlro.model.state import RUNNING
from tests.worlds import job, lay, nodes, records

GB = 1024


def cluster():
    """Two pools: two nodes of 4 GPUs, and one of 2."""
    return lay(nodes(count=2, gpus=4, cores=16), nodes("P100", gpus=2, cores=4))


def take(layout, held, j=0, **want):
    jobs = records([job(0, 1), job(1, 1, **want)])
    jobs["id"] = [70, 71]
    where = occupy(j, held, jobs[1:], layout.pools, layout.nodes, layout.gpus)
    return where, jobs[1:]


def as_bytes(layout):
    gpus = layout.gpus[["node", "free", "free_memory", "job", "busy"]]
    return layout.pools.tolist(), layout.nodes.tolist(), gpus.tolist()


def test_an_uneven_gang_is_taken_as_reported():
    layout = cluster()
    where, _ = take(layout, {0: 3, 1: 1}, gpus=4, cores=2)
    assert where == (0, 0, 2)
    assert layout.gpus["job"].tolist() == [0, 0, 0, -1, 0, -1, -1, -1, -1, -1]
    assert layout.gpus["next"][[0, 1, 2, 4]].tolist() == [1, 2, 4, -1]
    assert layout.nodes["free"].tolist() == [1, 3, 2]
    assert layout.nodes["free_cores"].tolist() == [10, 14, 4]
    assert layout.pools["free"].tolist() == [4, 2]


def test_occupied_gpus_are_released_like_those_of_any_run():
    layout = cluster()
    before = as_bytes(layout)
    where, jobs = take(layout, {1: 2, 0: 1}, gpus=3, cores=1)
    run = np.zeros(1, RUNNING)
    run["pool"], run["gpu"], run["nodes"] = where
    placement.release(run[0], jobs, layout.pools, layout.nodes, layout.gpus)
    assert as_bytes(layout) == before


@pytest.mark.parametrize(
    ("held", "want", "reason"),
    [
        ({0: 3}, {"gpus": 4}, "asks for 4 GPUs and would hold 3"),
        ({0: 5}, {"gpus": 5}, "5 GPUs of node 0, which has 4 free"),
        ({0: 4}, {"gpus": 4, "cores": 5}, "20 cores of node 0, which has 16 free"),
        ({0: 2, 2: 1}, {"gpus": 3}, "span pools 0 and 1"),
        ({3: 1}, {"gpus": 1}, "no node 3; they count from 0 to 2"),
        ({-1: 1}, {"gpus": 1}, "no node -1"),
        ({0: 1, 1: 0}, {"gpus": 1}, "0 GPUs of node 1"),
        ({0: 1}, {"gpus": 1, "gpu_memory": 999 * GB}, "needs 1022976 MB on each GPU"),
        ({0: 1}, {"share": 500}, "slice"),
        ({}, {"gpus": 1}, "would hold 0"),
    ],
)
def test_an_impossible_report_is_refused_with_a_reason_and_changes_nothing(held, want, reason):
    layout = cluster()
    before = as_bytes(layout)
    with pytest.raises(PlacementError, match=rf"^job 71: .*{reason}"):
        take(layout, held, **want)
    assert as_bytes(layout) == before


def test_a_full_pool_is_never_overbooked():
    layout = cluster()
    take(layout, {0: 4}, gpus=4)
    with pytest.raises(PlacementError, match="1 GPUs of node 0, which has 0 free"):
        take(layout, {0: 1}, gpus=1)
    assert layout.pools["free"].tolist() == [4, 2]


def test_no_job_can_occupy_a_node_that_is_down():
    layout = cluster()
    layout.nodes["up"][0] = 0
    with pytest.raises(PlacementError, match="node 0 is down"):
        take(layout, {0: 1}, gpus=1)


@settings(max_examples=100, deadline=None)
@given(reports=st.lists(st.dictionaries(st.integers(0, 2), st.integers(1, 4), min_size=1)))
def test_no_gpu_is_held_twice_whatever_is_reported(reports):
    layout = cluster()
    held = 0
    for report in reports:
        try:
            take(layout, report, gpus=sum(report.values()), cores=0)
            held += sum(report.values())
        except PlacementError:
            continue
    assert held == (layout.gpus["job"] >= 0).sum()
    assert layout.pools["free"].sum() == 10 - held
    assert layout.nodes["free"].sum() == 10 - held
    assert (layout.nodes["free"] >= 0).all()
