"""Room for jobs: what fits, which GPUs a gang gets, and that all of it comes back."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adlro.model import room
from adlro.model.state import DECISION, RUNNING, START, WHOLE
from tests.worlds import job, lay, nodes, records


def decision(pool=0, node=-1, gpu=-1, j=0):
    return np.array([(START, j, pool, node, gpu, 0.0)], DECISION)[0]


def running(j=0, pool=0, gpu=0, start=0.0, expected=0.0):
    """A running record; nodes and restarts are 0 and all of its work was to do."""
    return np.array([(j, pool, gpu, 0, 0, start, expected, 1.0)], RUNNING)[0]


def chain(first, gpus):
    """The GPUs of a gang in the order in which they hang together."""
    found = []
    while first >= 0:
        found.append(int(first))
        first = gpus["next"][first]
    return found


def busy(layout, taken):
    """Hand out some GPUs of an empty cluster, by their number, to a job without demands."""
    jobs = records([job(0, 1)])
    for gpu in taken:
        pool = layout.nodes["pool"][layout.gpus["node"][gpu]]
        room.place(decision(pool, gpu=gpu), jobs, layout.pools, layout.nodes, layout.gpus)
    return layout


def place(layout, want, **named):
    """Place one job; the chain of its GPUs and the number of nodes it spans."""
    jobs = records([job(0, 1, **want)])
    first, spanned = room.place(decision(**named), jobs, layout.pools, layout.nodes, layout.gpus)
    return chain(first, layout.gpus), spanned


def snapshot(layout):
    """All that placing changes and releasing restores: every field but the chain of a gang."""
    gpus = layout.gpus[["node", "free", "job", "speed", "busy"]]
    return layout.pools.tolist(), layout.nodes.tolist(), gpus.tolist()


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
def test_a_node_takes_what_its_gpus_cores_and_memory_allow(gpus, cores, memory, expected):
    node = lay(nodes("V100", 4, cores=8, memory_gb=1)).nodes[0]
    want = records([job(0, 1, gpus=gpus, cores=cores, memory=memory)])[0]
    assert room.capacity(want, node) == expected


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
def test_a_gang_fits_when_the_nodes_together_can_take_it(want, expected):
    layout = busy(lay(nodes("V100", 4, 2, cores=8), nodes("T4", 8)), [1])
    assert room.fits(records([job(0, 1, **want)])[0], layout.pools[0], layout.nodes) == expected


@pytest.mark.parametrize(("gpus", "gang"), [(1, [7]), (2, [2, 3]), (3, [9, 10, 11])])
def test_a_gang_goes_to_the_tightest_node_that_holds_it(gpus, gang):
    # Free: 2, 1, 3 GPUs. One fits node 1 exactly, two fit node 0, three only node 2.
    layout = busy(lay(nodes("V100", 4, 3)), [0, 1, 4, 5, 6, 8])
    assert place(layout, {"gpus": gpus}) == (gang, 1)


def test_equally_tight_nodes_are_taken_in_their_order():
    assert place(lay(nodes("V100", 4, 3)), {"gpus": 2}) == ([0, 1], 1)


def test_a_node_with_few_free_gpus_but_too_few_cores_is_passed_over():
    layout = lay(nodes("V100", 4, 2, cores=8))
    place(layout, {"gpus": 1, "cores": 7})  # node 0: 3 GPUs and 1 core are left
    assert place(layout, {"gpus": 1, "cores": 2}) == ([4], 1)


def test_a_gang_too_large_for_any_node_fills_the_roomiest_first():
    # Free: 2, 4, 3 GPUs. Seven = 4 of node 1, then 3 of node 2.
    layout = busy(lay(nodes("V100", 4, 3)), [0, 1, 8])
    assert place(layout, {"gpus": 7}) == ([4, 5, 6, 7, 9, 10, 11], 2)


def test_what_is_left_of_a_spanning_gang_goes_to_the_tightest_node():
    # Free: 4, 3, 1 GPUs. Five = 4 of node 0; the one left over fits node 2 exactly.
    layout = busy(lay(nodes("V100", 4, 3)), [4, 8, 9, 10])
    assert place(layout, {"gpus": 5}) == ([0, 1, 2, 3, 11], 2)


def test_a_named_node_is_filled_first_and_the_rest_is_placed_by_best_fit():
    layout = busy(lay(nodes("V100", 4, 3)), [0])
    assert place(layout, {"gpus": 6}, node=2) == ([8, 9, 10, 11, 1, 2], 2)


def test_a_named_node_gives_only_as_much_as_its_cores_allow():
    layout = lay(nodes("V100", 4, 2, cores=8))
    assert place(layout, {"gpus": 3, "cores": 4}, node=1) == ([4, 5, 0], 2)


def test_a_named_gpu_is_the_gangs_first_and_its_node_is_filled_with_the_lowest_others():
    layout = busy(lay(nodes("V100", 4, 2)), [4])
    assert place(layout, {"gpus": 3}, gpu=6) == ([6, 5, 7], 1)


def test_a_gang_takes_its_cores_and_memory_for_each_gpu_on_each_node():
    layout = lay(nodes("V100", 4, 2, cores=10, memory_gb=1))
    place(layout, {"gpus": 5, "cores": 2, "memory": 100}, node=1)
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


def naive_capacity(want, node):
    limits = [int(node["free"])]
    if want["cores"] > 0:
        limits.append(int(node["free_cores"] // want["cores"]))
    if want["memory"] > 0:
        limits.append(int(node["free_memory"] // want["memory"]))
    return min(limits)


def naive_gang(want, p, layout):
    """The GPUs of a gang by the words of docs/simulator.md; None if it does not fit."""
    machines, left = layout.nodes, {}
    for n in np.flatnonzero(machines["pool"] == p):
        left[n] = naive_capacity(want, machines[n])
    wanted, gang = int(want["gpus"]), []
    if sum(left.values()) < wanted:
        return None
    while wanted > 0:
        whole = [n for n in left if left[n] >= wanted]
        if whole:
            chosen = min(whole, key=lambda n: machines["free"][n])
        else:
            chosen = max(left, key=lambda n: left[n])
        count = min(wanted, left.pop(chosen))
        free = (layout.gpus["node"] == chosen) & (layout.gpus["free"] == WHOLE)
        gang += np.flatnonzero(free)[:count].tolist()
        wanted -= count
    return gang


def place_all(jobs, pools, layout):
    """Place jobs where they fit, one after the other: what became of each, and what should."""
    got, expected, runs = [], [], []
    for j, p in enumerate(pools):
        gang = naive_gang(jobs[j], p, layout)
        expected.append(gang and (gang, len(set(layout.gpus["node"][gang].tolist()))))
        got.append(None)
        if room.fits(jobs[j], layout.pools[p], layout.nodes):
            first, spanned = room.place(
                decision(p, j=j), jobs, layout.pools, layout.nodes, layout.gpus
            )
            got[-1] = (chain(first, layout.gpus), spanned)
            runs.append(running(j, p, first))
    return got, expected, runs


@given(GROUPS, st.lists(WANTS, min_size=1, max_size=12), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=80)
def test_gangs_are_placed_by_the_rules_and_all_comes_back(groups, wants, random):
    layout = lay(*groups)
    jobs = records([job(0, 1, **want) for want in wants])
    before = snapshot(layout)
    pools = [random.randrange(len(layout.pools)) for _ in wants]
    got, expected, runs = place_all(jobs, pools, layout)
    assert got == expected
    assert [len(given[0]) for given in got if given] == [jobs["gpus"][r["job"]] for r in runs]
    assert min(layout.nodes["free_cores"].min(), layout.nodes["free_memory"].min()) >= 0
    for run in random.sample(runs, len(runs)):
        room.release(run, jobs, layout.pools, layout.nodes, layout.gpus)
    assert snapshot(layout) == before


@given(GROUPS, WANTS, st.data())
@settings(deadline=None, max_examples=60)
def test_a_named_gpu_and_its_node_are_honoured_and_come_back(groups, want, data):
    layout = lay(*groups)
    jobs = records([job(0, 1, **want)])
    gpu = data.draw(st.integers(0, len(layout.gpus) - 1))
    node = int(layout.gpus["node"][gpu])
    pool = int(layout.nodes["pool"][node])
    share = min(naive_capacity(jobs[0], layout.nodes[node]), int(jobs["gpus"][0]))
    assume(share > 0 and naive_gang(jobs[0], pool, layout) is not None)
    before = snapshot(layout)
    first, _ = room.place(decision(pool, gpu=gpu), jobs, layout.pools, layout.nodes, layout.gpus)
    gang = chain(first, layout.gpus)
    assert first == gpu
    assert (layout.gpus["node"][gang] == node).sum() == share
    assert len(set(gang)) == len(gang) == jobs["gpus"][0]
    room.release(running(0, pool, first), jobs, layout.pools, layout.nodes, layout.gpus)
    assert snapshot(layout) == before


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
    assert room.expected_end(running(expected=expected), float(now)) == end


def test_the_age_of_an_overdue_run_counts_from_its_start():
    assert room.expected_end(running(start=60, expected=70), 100.0) == 104.0


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
    times, may = np.array(seconds, np.float64), np.array(allowed, np.bool_)
    want = records([job(0, 1)])[0]
    assert room.fastest_feasible(want, times, may, layout.pools, layout.nodes) == feasible
    assert room.fastest_eligible(times, may, layout.pools) == eligible
