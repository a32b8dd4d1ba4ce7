"""Fragmentation of nodes, and placement by fragmentation gradient descent."""

import numpy as np
import pytest

from adlro.model import placement
from adlro.model.fragmentation import fragments
from adlro.model.state import DECISION, DEMAND, START, WHOLE
from tests.looped import every
from tests.worlds import build, fill, gpus_of, job, lay, nodes, play, records

WHOLE_GPU = {"gpus": 1, "share": WHOLE}
HALF_GPU = {"gpus": 1, "share": 500}
PAIR = {"gpus": 2, "share": WHOLE}


def demands(*kinds, pools=1):
    """Kinds of demand with equal weights."""
    return fill(DEMAND, list(kinds), weight=1 / max(len(kinds), 1), pools=pools)


def put(layout, kinds, want, **named):
    """GPUs of a job placed by the demands, in order."""
    named = {"node": -1, "gpu": -1, **named}
    decision = np.array([(START, 0, 0, named["node"], named["gpu"], 0.0)], DECISION)[0]
    jobs = records([job(0, 1, **want)])
    g, _ = placement.place(decision, jobs, kinds, layout.pools, layout.nodes, layout.gpus)
    gang = []
    while g >= 0:
        gang.append(int(g))
        g = layout.gpus["next"][g]
    return gang


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        # 600 is left on GPU 0, GPU 1 is free, GPU 2 is taken.
        ([WHOLE_GPU], 600),  # it can run on GPU 1; what GPU 0 has left is of no use to it
        ([HALF_GPU], 0),  # both GPUs are of use to it
        ([PAIR], 1600),  # it cannot run here at all
        ([WHOLE_GPU, HALF_GPU], 300),  # on average
        ([HALF_GPU, PAIR], 800),
        ([{**HALF_GPU, "cores": 3}], 0),
        ([{**HALF_GPU, "cores": 4}], 1600),  # 3 of 8 cores are left
        ([{"gpus": 2, "share": 500, "cores": 2}], 1600),  # for each GPU
        ([{**HALF_GPU, "memory": 1025}], 1600),
    ],
)
def test_fragmentation_is_the_free_share_that_a_demand_cannot_use(kinds, expected):
    layout = lay(nodes("T4", 3, cores=8, memory_gb=1))
    put(layout, demands(), {"share": 400, "cores": 2}, gpu=0)
    put(layout, demands(), {"cores": 3}, gpu=2)
    assert fragments(0, demands(*kinds), layout.nodes, layout.gpus) == expected


def test_free_share_in_a_pool_that_a_demand_may_not_use_is_a_fragment():
    layout = lay(nodes("T4", 2), nodes("V100", 2))
    kinds = demands(WHOLE_GPU, pools=0b10)
    got = [fragments(n, kinds, layout.nodes, layout.gpus) for n in range(2)]
    assert got == [2000, 0]


def test_a_slice_goes_where_fragmentation_grows_least_even_if_another_gpu_is_fuller():
    # 600 and 500 are left. On GPU 0 it leaves 500, which is of use to half a GPU; on GPU 1 400.
    layout = lay(nodes("T4", 2))
    put(layout, demands(), {"share": 400}, gpu=0)
    put(layout, demands(), {"share": 500}, gpu=1)
    assert put(layout, demands(HALF_GPU), {"share": 100}) == [0]


def test_best_fit_would_take_the_fuller_one():
    layout = lay(nodes("T4", 2))
    put(layout, demands(), {"share": 400}, gpu=0)
    put(layout, demands(), {"share": 500}, gpu=1)
    assert put(layout, demands(), {"share": 100}) == [1]


def test_a_job_goes_to_the_node_whose_fragmentation_grows_least():
    # 2 and 3 GPUs are free. On node 0 it leaves one, of no use to a pair; on node 1 it leaves two.
    layout = lay(nodes("T4", 4, 2))
    for gpu in (0, 1, 4):
        put(layout, demands(), {}, gpu=gpu)
    assert put(layout, demands(PAIR), {}) == [5]
    assert put(layout, demands(), {}) == [2]  # by best fit


def test_ties_go_to_the_lower_index():
    layout = lay(nodes("T4", 2, 3))
    assert put(layout, demands(HALF_GPU), {"share": 500}) == [0]
    layout = lay(nodes("T4", 2, 3))
    assert put(layout, demands(WHOLE_GPU), {"gpus": 2}) == [0, 1]


def test_a_gang_too_large_for_any_node_is_placed_by_best_fit_and_its_rest_by_the_demands():
    # Free: 4, 2, 3. Five = the 4 of node 0 (the roomiest); the one left over would go to node 1 by
    # best fit, but there it would spoil the pair.
    layout = lay(nodes("T4", 4, 3))
    for gpu in (4, 5, 8):
        put(layout, demands(), {}, gpu=gpu)
    assert put(layout, demands(PAIR), {"gpus": 5}) == [0, 1, 2, 3, 9]


def test_a_slice_stays_on_the_node_that_is_named_for_it():
    layout = lay(nodes("T4", 2, 2))
    put(layout, demands(), {"share": 500}, gpu=3)
    assert put(layout, demands(WHOLE_GPU), {"share": 500}, node=1) == [3]
    assert put(layout, demands(WHOLE_GPU), {"share": 500}, node=0) == [0]


def naive_fragments(layout, n, kinds):
    """Fragmentation of a node by the definition in docs/simulator.md."""
    node = layout.nodes[n]
    left = layout.gpus["free"][layout.gpus["node"] == n]
    total = 0.0
    for kind in kinds:
        can_run = (
            (int(kind["pools"]) >> int(node["pool"])) & 1
            and (left >= kind["share"]).sum() >= kind["gpus"]
            and node["free_cores"] >= kind["gpus"] * kind["cores"]
            and node["free_memory"] >= kind["gpus"] * kind["memory"]
        )
        total += kind["weight"] * (left[left < kind["share"]].sum() if can_run else left.sum())
    return total


def naive_choice(layout, kinds, want):
    """GPU of a slice, or node of a gang, for which fragmentation grows least; or None."""
    best, chosen = np.inf, None
    share, gpus = want.get("share", WHOLE), want.get("gpus", 1)
    for n, node in enumerate(layout.nodes):
        own = np.flatnonzero(layout.gpus["node"] == n)
        able = own[layout.gpus["free"][own] >= share]
        tries = [[g] for g in able] if share < WHOLE else [able[:gpus]]
        if len(able) < gpus or node["free_cores"] < gpus * want["cores"]:
            continue
        before = naive_fragments(layout, n, kinds)
        for taken in tries:
            node["free_cores"] -= gpus * want["cores"]
            layout.gpus["free"][taken] -= share
            growth = naive_fragments(layout, n, kinds) - before
            layout.gpus["free"][taken] += share
            node["free_cores"] += gpus * want["cores"]
            if growth < best - 1e-9:
                best, chosen = growth, int(taken[0])
    return chosen


@every("seed", range(40), quick=15)
def test_every_job_goes_where_exhaustive_search_puts_it(seed):
    rng = np.random.default_rng(seed)
    layout = lay(nodes("T4", int(rng.integers(1, 5)), int(rng.integers(1, 30)), cores=12))
    kinds = fill(
        DEMAND,
        [
            {
                "gpus": int(rng.integers(1, 3)),
                "share": int(rng.choice([250, 500, 1000])),
                "cores": int(rng.integers(0, 4)),
            }
            for _ in range(int(rng.integers(1, 4)))
        ],
        pools=1,
    )
    kinds["weight"] = rng.dirichlet(np.ones(len(kinds)))
    got, expected = [], []
    for _ in range(25):
        share = int(rng.choice([100, 250, 500, 700, 1000]))
        gpus = int(rng.integers(1, 3)) if share == WHOLE else 1
        want = {"gpus": gpus, "share": share, "cores": int(rng.integers(0, 4))}
        choice = naive_choice(layout, kinds, want)
        if choice is not None:
            expected.append(choice)
            got.append(put(layout, kinds, want)[0])
    assert got == expected


def test_a_run_with_demands_is_placed_by_them():
    # By best fit all three share GPU 0. For the sake of half GPUs job 1 leaves the 600 of GPU 0
    # alone, and job 2 (100) takes of those and not of the 500 of GPU 1.
    jobs = [job(0, 9, share=400), job(0, 9, share=500), job(1, 9, share=100)]
    best_fit = play(build([nodes("T4", 2)], jobs), "fcfs")
    kinds = [{**HALF_GPU, "weight": 1.0}]
    by_demand = play(build([nodes("T4", 2)], jobs, demands=kinds), "fcfs")
    assert [gpus_of(best_fit, j) for j in range(3)] == [[0], [0], [0]]
    assert [gpus_of(by_demand, j) for j in range(3)] == [[0], [1], [0]]
