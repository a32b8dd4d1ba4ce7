"""Placement of jobs, and complete release of their resources."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adlro.model import feasibility, placement
from adlro.model.state import DECISION, DEMAND, RUNNING, START, WHOLE
from tests.scanned import scan, whole_room
from tests.worlds import job, lay, nodes, records

BEST_FIT = np.zeros(0, DEMAND)
GB = 1024


def decision(pool=0, node=-1, gpu=-1, j=0):
    return np.array([(START, j, pool, node, gpu, 0.0)], DECISION)[0]


def running(j=0, pool=0, gpu=0):
    """A running record of a job and its first GPU."""
    run = np.zeros(1, RUNNING)
    run["job"], run["pool"], run["gpu"] = j, pool, gpu
    return run[0]


def chain(first, gpus):
    """GPUs of a gang in list order."""
    found = []
    while first >= 0:
        found.append(int(first))
        first = gpus["next"][first]
    return found


def put(decision, jobs, layout):
    """Place by best fit."""
    return placement.place(decision, jobs, BEST_FIT, layout.pools, layout.nodes, layout.gpus)


def busy(layout, taken):
    """Allocate some GPUs of an empty cluster, by index, to a job without other demands."""
    jobs = records([job(0, 1)])
    for gpu in taken:
        put(decision(layout.nodes["pool"][layout.gpus["node"][gpu]], gpu=gpu), jobs, layout)
    return layout


def set_down(layout, want, **named):
    """Place one job; returns its GPUs and the number of nodes it spans."""
    first, spanned = put(decision(**named), records([job(0, 1, **want)]), layout)
    return chain(first, layout.gpus), spanned


def snapshot(layout):
    """Everything that placement changes and release restores: all fields but GPU.next."""
    gpus = layout.gpus[["node", "free", "free_memory", "job", "busy"]]
    return layout.pools.tolist(), layout.nodes.tolist(), gpus.tolist()


@pytest.mark.parametrize(("gpus", "gang"), [(1, [7]), (2, [2, 3]), (3, [9, 10, 11])])
def test_a_gang_goes_to_the_tightest_node_that_holds_it(gpus, gang):
    # Free: 2, 1, 3 GPUs. One fits node 1 exactly, two fit node 0, three only node 2.
    layout = busy(lay(nodes("V100", 4, 3)), [0, 1, 4, 5, 6, 8])
    assert set_down(layout, {"gpus": gpus}) == (gang, 1)


def test_equally_tight_nodes_are_taken_in_their_order():
    assert set_down(lay(nodes("V100", 4, 3)), {"gpus": 2}) == ([0, 1], 1)


def test_a_node_with_few_free_gpus_but_too_few_cores_is_passed_over():
    layout = lay(nodes("V100", 4, 2, cores=8))
    set_down(layout, {"gpus": 1, "cores": 7})  # node 0: 3 GPUs and 1 core are left
    assert set_down(layout, {"gpus": 1, "cores": 2}) == ([4], 1)


def test_a_gang_too_large_for_any_node_fills_the_roomiest_first():
    # Free: 2, 4, 3 GPUs. Seven = 4 of node 1, then 3 of node 2.
    layout = busy(lay(nodes("V100", 4, 3)), [0, 1, 8])
    assert set_down(layout, {"gpus": 7}) == ([4, 5, 6, 7, 9, 10, 11], 2)


def test_what_is_left_of_a_spanning_gang_goes_to_the_tightest_node():
    # Free: 4, 3, 1 GPUs. Five = 4 of node 0; the one left over fits node 2 exactly.
    layout = busy(lay(nodes("V100", 4, 3)), [4, 8, 9, 10])
    assert set_down(layout, {"gpus": 5}) == ([0, 1, 2, 3, 11], 2)


def test_a_named_node_is_filled_first_and_the_rest_is_placed_by_best_fit():
    layout = busy(lay(nodes("V100", 4, 3)), [0])
    assert set_down(layout, {"gpus": 6}, node=2) == ([8, 9, 10, 11, 1, 2], 2)


def test_a_named_node_gives_only_as_much_as_its_cores_allow():
    layout = lay(nodes("V100", 4, 2, cores=8))
    assert set_down(layout, {"gpus": 3, "cores": 4}, node=1) == ([4, 5, 0], 2)


def test_a_named_gpu_is_the_gangs_first_and_its_node_is_filled_with_the_lowest_others():
    layout = busy(lay(nodes("V100", 4, 2)), [4])
    assert set_down(layout, {"gpus": 3}, gpu=6) == ([6, 5, 7], 1)


def test_a_gang_takes_its_cores_and_memory_for_each_gpu_on_each_node():
    layout = lay(nodes("V100", 4, 2, cores=10, memory_gb=1))
    set_down(layout, {"gpus": 5, "cores": 2, "memory": 100}, node=1)
    assert layout.nodes["free"].tolist() == [3, 0]
    assert layout.nodes["free_cores"].tolist() == [8, 2]
    assert layout.nodes["free_memory"].tolist() == [924, 624]
    assert layout.pools["free"].tolist() == [3]
    assert layout.gpus["free"].tolist() == [0] + [WHOLE] * 3 + [0] * 4
    assert layout.gpus["job"].tolist() == [0, -1, -1, -1, 0, 0, 0, 0]


WANTS = st.fixed_dictionaries(
    {
        "gpus": st.integers(1, 9),
        "cores": st.integers(0, 4),
        "memory": st.sampled_from([0, 100, 1000, 3000]),
    }
)
GROUPS = st.lists(
    st.builds(
        nodes,
        st.sampled_from(["V100", "T4"]),
        st.integers(1, 5),
        st.integers(1, 3),
        cores=st.integers(1, 12),
        memory_gb=st.integers(1, 8),
    ),
    min_size=1,
    max_size=3,
)


def place_all(jobs, pools, layout):
    """Place jobs where they fit, one by one; returns the actual and the expected GPUs of each."""
    got, expected, runs = [], [], []
    for j, p in enumerate(pools):
        gang = scan(jobs[j], p, layout)
        expected.append(gang and (gang, len(set(layout.gpus["node"][gang].tolist()))))
        got.append(None)
        if feasibility.fits(jobs[j], layout.pools[p], layout.nodes, layout.gpus):
            first, spanned = put(decision(p, j=j), jobs, layout)
            got[-1] = (chain(first, layout.gpus), spanned)
            runs.append(running(j, p, first))
    return got, expected, runs


@given(GROUPS, st.lists(WANTS, min_size=1, max_size=12), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=80)
def test_gangs_are_placed_by_the_rules_and_released_completely(groups, wants, random):
    layout = lay(*groups)
    jobs = records([job(0, 1, **want) for want in wants])
    before = snapshot(layout)
    pools = [random.randrange(len(layout.pools)) for _ in wants]
    got, expected, runs = place_all(jobs, pools, layout)
    assert got == expected
    assert [len(given[0]) for given in got if given] == [jobs["gpus"][r["job"]] for r in runs]
    assert min(layout.nodes["free_cores"].min(), layout.nodes["free_memory"].min()) >= 0
    for run in random.sample(runs, len(runs)):
        placement.release(run, jobs, layout.pools, layout.nodes, layout.gpus)
    assert snapshot(layout) == before


@given(GROUPS, WANTS, st.data())
@settings(deadline=None, max_examples=60)
def test_a_named_gpu_and_its_node_are_used_and_released(groups, want, data):
    layout = lay(*groups)
    jobs = records([job(0, 1, **want)])
    gpu = data.draw(st.integers(0, len(layout.gpus) - 1))
    node = int(layout.gpus["node"][gpu])
    pool = int(layout.nodes["pool"][node])
    share = min(whole_room(jobs[0], layout.nodes[node]), int(jobs["gpus"][0]))
    assume(share > 0 and scan(jobs[0], pool, layout) is not None)
    before = snapshot(layout)
    first, _ = put(decision(pool, gpu=gpu), jobs, layout)
    gang = chain(first, layout.gpus)
    assert first == gpu
    assert (layout.gpus["node"][gang] == node).sum() == share
    assert len(set(gang)) == len(gang) == jobs["gpus"][0]
    placement.release(running(0, pool, first), jobs, layout.pools, layout.nodes, layout.gpus)
    assert snapshot(layout) == before


@pytest.mark.parametrize(
    ("share", "gpu"),
    [
        (100, 1),  # 100, 200 and 500 are left on GPUs 1, 0 and 2; 3 is free
        (150, 0),
        (200, 0),
        (201, 2),
        (500, 2),
        (501, 3),
    ],
)
def test_a_slice_goes_to_the_fullest_gpu_that_can_hold_it(share, gpu):
    layout = lay(nodes("T4", 2, 2))
    for taken, g in ((800, 0), (900, 1), (500, 2)):
        set_down(layout, {"share": taken}, gpu=g)
    assert set_down(layout, {"share": share}) == ([gpu], 1)


def test_equally_full_gpus_are_taken_in_their_order():
    layout = lay(nodes("T4", 3))
    for g in (2, 1):
        set_down(layout, {"share": 500}, gpu=g)
    assert set_down(layout, {"share": 400}) == ([1], 1)


def test_a_gpu_without_the_memory_and_a_node_without_the_cores_are_passed_over():
    # GPU 0 has the least share left but only 4 GB; GPU 1's node 0 has no cores left for job 2.
    layout = lay(nodes("T4", 2, 2, cores=4))
    set_down(layout, {"share": 600, "gpu_memory": 12 * GB, "cores": 2}, gpu=0)
    assert set_down(layout, {"share": 300, "gpu_memory": 5 * GB}) == ([1], 1)
    assert set_down(layout, {"share": 300, "gpu_memory": 4 * GB, "cores": 3}) == ([2], 1)
    assert set_down(layout, {"share": 300, "gpu_memory": 4 * GB, "cores": 2}) == ([0], 1)


def test_a_slice_stays_on_the_node_that_is_named_for_it():
    layout = lay(nodes("T4", 2, 2))
    set_down(layout, {"share": 900}, gpu=0)
    set_down(layout, {"share": 300}, gpu=3)
    assert set_down(layout, {"share": 100}, node=1) == ([3], 1)


def test_slices_take_their_share_and_memory_and_their_nodes_cores_and_memory():
    layout = lay(nodes("T4", 2, cores=8, memory_gb=1))
    before = snapshot(layout)
    jobs = records(
        [
            job(0, 1, share=300, gpu_memory=2 * GB, cores=2, memory=100),
            job(0, 1, share=500, gpu_memory=3 * GB, cores=1, memory=50),
        ]
    )
    firsts = [put(decision(j=j), jobs, layout)[0] for j in range(2)]
    assert firsts == [0, 0]
    assert layout.gpus[["free", "free_memory", "job"]].tolist() == [
        (200, 11 * GB, -1),
        (1000, 16 * GB, -1),
    ]
    assert layout.nodes[["free", "free_cores", "free_memory"]].tolist() == [(1, 5, 874)]
    assert layout.pools[["free", "sliced"]].tolist() == [(1, 1)]
    for j in range(2):
        placement.release(running(j), jobs, layout.pools, layout.nodes, layout.gpus)
    assert snapshot(layout) == before


def slices_of(gpu, runs, gpus):
    """Indices in `running` of the slices on a GPU, forwards and backwards along the list."""
    there, slot, last = [], gpus["slice"][gpu], -1
    while slot >= 0:
        there.append(int(slot))
        last, slot = slot, runs["after"][slot]
    back = []
    while last >= 0:
        back.append(int(last))
        last = runs["before"][last]
    assert back == there[::-1]
    return there


def test_the_list_of_slices_on_a_gpu_stays_intact_when_one_leaves_or_moves():
    layout, runs = lay(nodes("T4")), np.zeros(5, RUNNING)
    for slot in (0, 1, 2, 4):
        placement.link_slice(slot, runs, layout.gpus)
    assert slices_of(0, runs, layout.gpus) == [4, 2, 1, 0]
    placement.unlink_slice(2, runs, layout.gpus)  # from the middle
    assert slices_of(0, runs, layout.gpus) == [4, 1, 0]
    runs[2] = runs[4]  # the last record moves into the gap
    placement.relink_slice(2, runs, layout.gpus)
    assert slices_of(0, runs, layout.gpus) == [2, 1, 0]
    placement.unlink_slice(2, runs, layout.gpus)  # the first
    placement.unlink_slice(0, runs, layout.gpus)  # the last
    assert slices_of(0, runs, layout.gpus) == [1]
    placement.unlink_slice(1, runs, layout.gpus)
    assert layout.gpus["slice"][0] == -1
