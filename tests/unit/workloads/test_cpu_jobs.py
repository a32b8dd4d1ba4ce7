"""CPU-only jobs of a history: the cores that they hold, on which nodes and when."""

import numpy as np
import pytest

from adlro.config.history import Recorded
from adlro.model.cluster import Cluster, lay_out
from adlro.model.state import CORES
from adlro.workloads import cpu_jobs, replay
from adlro.workloads.cpu_jobs import CoreHolds
from tests.histories import history
from tests.unit.workloads.test_constraints import played

HEAD = "id,submit,start,run_s,gpus,cores,hosts\n"
# Nodes 0 and 1 are hosts; 2 and 3 are the parts of the host m1.
LAYOUT = lay_out(
    Cluster.model_validate(
        {
            "nodes": [
                {"name": "v", "hosts": ["v1", "v2"], "gpu": "V100", "gpus": 4, "cores": 16}
                | {"memory_gb": 64},
                {"name": "x", "hosts": ["a100@m1"], "gpu": "A100", "gpus": 1, "cores": 8}
                | {"memory_gb": 16},
                {"name": "y", "hosts": ["t4@m1"], "gpu": "T4", "gpus": 3, "cores": 24}
                | {"memory_gb": 48},
            ]
        }
    )
)


def found(folder, rows, origin=0.0):
    """The CPU-only jobs of such a file."""
    text = HEAD + "".join(f"{row}\n" for row in rows)
    recorded = Recorded(file="jobs.txt")
    return cpu_jobs.of_history(history(folder, text), recorded, LAYOUT, origin)


def test_cores_are_held_on_the_recorded_node_at_the_recorded_time(tmp_path):
    some = found(tmp_path, ["a,100,160,50,0,3,v2", "g,100,100,50,1,3,v1"], origin=100.0)
    assert [column.tolist() for column in some.holds] == [[1], [3], [60], [50]]
    assert (some.played, some.left_out) == (1, 0)


@pytest.mark.parametrize(
    ("hosts", "cores", "held"),
    [
        ("v[1-2]", 10, {0: 5, 1: 5}),
        ('"v1,v2"', 3, {0: 2, 1: 2}),  # one and a half each
        ("m1", 8, {2: 2, 3: 6}),  # by the cores of the parts
        ("[m1]", 8, {}),
        ('"v1,m1"', 16, {0: 8, 2: 2, 3: 6}),
        ('"v1,cpu7"', 20, {0: 10}),  # the rest on a host without GPUs
        ("v1", 99, {0: 16}),  # no more than there are
        ('"v1,cpu[1-29]"', 90, {0: 3}),
    ],
)
def test_cores_are_divided_among_hosts_and_their_parts(tmp_path, hosts, cores, held):
    holds = found(tmp_path, [f"a,0,0,9,0,{cores},{hosts}"]).holds
    assert dict(zip(holds.node.tolist(), holds.cores.tolist(), strict=True)) == held


def test_jobs_that_hold_nothing_are_counted(tmp_path):
    rows = [
        "a,0,0,9,0,2,cpu1",  # no GPU node
        "b,0,,9,0,2,v1",  # never started
        "c,0,0,,0,2,v1",
        "d,0,0,0,0,2,v1",
        "e,0,0,9,0,,v1",
        "f,0,0,9,0,2,",
        "g,0,0,9,0,2,v[1",
        "h,0,0,9,0,2,v1",
        "i,0,0,9,2,2,v1",
    ]
    some = found(tmp_path, rows)
    assert (some.played, some.left_out, len(some.holds.node)) == (1, 7, 1)
    none = found(tmp_path, rows[:7])
    assert (none.played, none.left_out, len(none.holds.node)) == (0, 7, 0)


def test_holds_are_sorted_by_their_begin(tmp_path):
    rows = ["a,0,50,9,0,4,v[1-2]", "b,0,20,9,0,2,v1", "c,0,30,9,0,2,m1"]
    holds = found(tmp_path, rows).holds
    assert holds.begin.tolist() == [20, 30, 30, 50, 50]
    assert holds.node.tolist() == [0, 2, 3, 0, 1]


HOLDS = CoreHolds(
    np.array([0, 1, 2, 3]),
    np.array([5, 6, 7, 8]),
    np.array([0.0, 90.0, 150.0, 300.0]),
    np.array([100.0, 60.0, 10.0, 10.0]),
)


def test_a_window_has_the_holds_that_overlap_it(tmp_path):
    some = HOLDS.within(100.0, 200.0, stretch=1.0)  # the first ended at 100
    assert [column.tolist() for column in some] == [[1, 2], [6, 7], [0, 50], [50, 10]]


def test_times_between_begins_are_stretched_and_lengths_are_not():
    some = HOLDS.within(100.0, 400.0, stretch=0.5)
    assert some.begin.tolist() == [0, 25, 100]
    assert some.length.tolist() == [50, 10, 10]


def test_events_return_what_they_take():
    events = HOLDS.events()
    assert (events["kind"] == CORES).all()
    for node in range(4):
        own = np.sort(events[events["node"] == node], order="time")
        assert own["value"].tolist() == [5 + node, -(5 + node)]
        assert np.diff(own["time"]).tolist() == [HOLDS.length[node]]
    assert len(cpu_jobs.no_holds().events()) == 0


def test_a_replay_says_how_many_hold_cores_and_a_seed_has_those_of_its_window(tmp_path):
    text = (
        "id,submit,start,run_s,gpus,cores,hosts,partition\n"
        "c,0,0,50,0,4,volta-1,gpu\nn,0,0,50,0,4,cpu1,cpu\n"
        "a,20,20,9,1,1,volta-0,gpu\nb,100000,100000,9,1,1,volta-0,gpu\n"
    )
    setting = played(tmp_path, text)
    assert (
        "1 CPU-only jobs: not scheduled; they hold their cores on their nodes at their recorded "
        "times, as far as free" in setting.filled
    )
    assert (
        "left out: 1 jobs ask for no GPU, and hold nothing (no GPU node, cores or times of theirs "
        "are recorded)" in setting.filled
    )
    # Seed 0 begins with a at 20 s, when c has 30 s left; seed 1 with b, when it is long over.
    first, second = (replay.part(setting.played, 1, 1.0, seed).holds for seed in range(2))
    assert [column.tolist() for column in first] == [[1], [4], [0], [30]]
    assert len(second.node) == 0
