"""Packing: where each rule places pods, and when it rejects them."""

import math

import numpy as np
import pytest
from openb_placement import packing
from openb_placement.packing import ANY, BEST_FIT, FGD, FGD_STEPS, Pods

from adlro.model.state import DEMAND, GPU, NODE, POD, WHOLE
from tests.worlds import fill

RULES = (ANY, BEST_FIT, FGD, FGD_STEPS)
EVERYWHERE = 2**62 - 1


def pod(gpus=1, share=WHOLE, cores=0, memory=0, pools=EVERYWHERE):
    return {"gpus": gpus, "share": share, "cores": cores, "memory": memory, "pools": pools}


def kind(gpus=1, share=WHOLE, weight=1.0, cores=0, pools=EVERYWHERE):
    return {"gpus": gpus, "share": share, "weight": weight, "cores": cores, "pools": pools}


def node(gpus, cores=8, pool=0):
    return {"gpus": gpus, "cores": cores, "free_cores": cores, "pool": pool}


def coming(nodes, pods, kinds=()):
    """Return pods to pack; equal pods share a spec."""
    machines = fill(NODE, nodes, memory=99, free_memory=99)
    machines["first_gpu"] = np.cumsum(machines["gpus"]) - machines["gpus"]
    specs = [one for i, one in enumerate(pods) if one not in pods[:i]]
    order = np.array([specs.index(one) for one in pods], np.int64)
    gpus = fill(GPU, [{}] * int(machines["gpus"].sum()), free=WHOLE)
    return Pods(fill(POD, specs), order, fill(DEMAND, list(kinds)), machines, gpus)


def pack(pods, rule, seed=0, random_ties=False):
    return packing.pack(pods, rule, random_ties=random_ties, rng=np.random.default_rng(seed))


def test_best_fit_takes_the_node_with_the_least_free_cores_and_gpus():
    # C = 16, N = 2: 0.5 * 16/16 + 0.5 * 2/2, 0.5 * 8/16 + 0.5 * 2/2, 0.5 * 16/16 + 0.5 * 1/2: a tie
    # of the second and the third, then by cores: 4 of 8 left and one GPU, 0.25 + 0.25.
    nodes = [node(2, 16), node(2, 8), node(1, 16)]
    found = pack(coming(nodes, [pod(cores=4), pod(cores=1), pod()]), BEST_FIT)
    assert found.node.tolist() == [1, 1, 2]
    assert found.gpu.tolist() == [2, 3, 4]


def test_best_fit_takes_the_tightest_gpu_of_the_node():
    slices = [pod(share=300), pod(share=800), pod(share=200)]
    assert pack(coming([node(2)], slices), BEST_FIT).gpu.tolist() == [0, 1, 1]


def test_fgd_depends_on_its_tie_rule():
    # Typical pods want one GPU: wherever two such pods go, nothing is spoilt. On one node, by name,
    # they leave the other to the pod of two; drawn by luck they sometimes do not.
    pods = coming([node(2), node(2)], [pod(), pod(), pod(2)], [kind()])
    by_name = pack(pods, FGD).share
    by_luck = {pack(pods, FGD, seed, random_ties=True).share for seed in range(20)}
    assert by_name == 1.0
    assert by_luck == {0.5, 1.0}


def test_fgd_places_where_typical_pods_still_fit():
    # Typical pods want 700: the second 300 on GPU 0 would leave 400 of no use, on GPU 1 nothing.
    pods = coming([node(2)], [pod(share=300), pod(share=300)], [kind(share=700)])
    assert pack(pods, FGD).gpu.tolist() == [0, 1]
    assert pack(pods, BEST_FIT).gpu.tolist() == [0, 0]


def test_the_rounded_score_ties_where_the_exact_one_does_not():
    # On node 0 the slice spoils nothing (990 still take a typical 500): score 100 * s(0) = 50. Node
    # 1 is of a model that typical pods may not use: fragments shrink by 10, 100 * s(0.01) = 50.2.
    pods = coming([node(1), node(1, pool=1)], [pod(share=10)], [kind(share=500, pools=1)])
    assert pack(pods, FGD).node.tolist() == [1]
    assert pack(pods, FGD_STEPS).node.tolist() == [0]
    # With 100 it is 100 * s(0.1) = 52.5.
    pods = coming([node(1), node(1, pool=1)], [pod(share=100)], [kind(share=500, pools=1)])
    assert pack(pods, FGD_STEPS).node.tolist() == [1]


@pytest.mark.parametrize("rule", [BEST_FIT, FGD, FGD_STEPS])
def test_ties_go_to_the_first_node_or_to_a_random_one(rule):
    pods = coming([node(1)] * 3, [pod()], [kind()])
    firsts = {int(pack(pods, rule, seed).node[0]) for seed in range(30)}
    drawn = {int(pack(pods, rule, seed, random_ties=True).node[0]) for seed in range(30)}
    assert firsts == {0}
    assert drawn == {0, 1, 2}


def test_random_ties_are_among_the_best_nodes_only():
    # Node 0 has four GPUs: it is never among the fullest.
    pods = coming([node(4), node(1), node(1)], [pod()])
    drawn = {int(pack(pods, BEST_FIT, seed, random_ties=True).node[0]) for seed in range(30)}
    assert drawn == {1, 2}


def test_random_takes_any_node_and_any_gpu_that_can_hold_a_slice():
    pods = coming([node(2), node(1, cores=0), node(1)], [pod(share=500, cores=1)])
    runs = [pack(pods, ANY, seed, random_ties=True) for seed in range(60)]
    assert {(int(run.node[0]), int(run.gpu[0])) for run in runs} == {(0, 0), (0, 1), (2, 3)}


@pytest.mark.parametrize("rule", RULES)
def test_an_infeasible_pod_is_rejected_and_the_next_is_placed(rule):
    # Two GPUs on one node are nowhere, nor are 9 cores, nor pool 2; 1500 of 2000 are handed out.
    pods = [pod(2), pod(cores=9), pod(pools=4), pod(), pod(share=500), pod(memory=100), pod()]
    found = pack(coming([node(1), node(1, pool=1)], pods, [kind()]), rule)
    assert (found.node >= 0).tolist() == [False, False, False, True, True, False, False]
    assert found.gpu[found.node < 0].tolist() == [-1] * 5
    assert found.share == 0.75


@pytest.mark.parametrize("rule", RULES)
def test_a_pod_without_a_gpu_takes_cores_alone(rule):
    # It takes 6 of 8 cores: the GPU pod with 4 cores has no room any more, that with 2 has.
    pods = [pod(0, 0, cores=6), pod(cores=4), pod(cores=2)]
    found = pack(coming([node(1)], pods, [kind()]), rule)
    assert found.node.tolist() == [0, -1, 0]
    assert found.gpu.tolist() == [-1, -1, 0]
    assert found.share == 1.0


@pytest.mark.parametrize("rule", RULES)
def test_several_whole_gpus_are_the_first_free_ones_of_a_node(rule):
    found = pack(coming([node(4)], [pod(share=1), pod(2), pod(1)], [kind()]), rule, 3)
    free = [g for g in range(4) if g != found.gpu[0]]
    assert found.gpu[1:].tolist() == [free[0], free[2]]
    assert found.share == pytest.approx(3.001 / 4)


def test_the_result_depends_on_the_seed_only_and_the_cluster_is_not_modified():
    pods = coming([node(2)] * 5, [pod(share=300)] * 20, [kind()])
    before = [array.copy() for array in pods]
    runs = [pack(pods, ANY, seed, random_ties=True).gpu.tolist() for seed in (4, 4, 5)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    assert all(np.array_equal(a, b) for a, b in zip(before, pods, strict=True))


class PlainPacking:
    """The same rules without a cache: every score is recomputed for each pod."""

    def __init__(self, pods):
        names = NODE.names
        self.nodes = [dict(zip(names, row, strict=True)) for row in pods.nodes.tolist()]
        self.left = [[WHOLE] * node["gpus"] for node in self.nodes]
        self.kinds = [dict(zip(DEMAND.names, row, strict=True)) for row in pods.demands.tolist()]
        self.most = (max(n["cores"] for n in self.nodes), max(n["gpus"] for n in self.nodes))

    def fragments(self, n, left, cores):
        total = 0.0
        for k in self.kinds:
            able = [x for x in left if x >= k["share"]]
            runs = k["pools"] >> self.nodes[n]["pool"] & 1 and len(able) >= k["gpus"]
            usable = sum(able) if runs and cores >= k["gpus"] * k["cores"] else 0
            total += k["weight"] * (sum(left) - usable)
        return total

    def places(self, pod, n):
        """The GPU sets of a node that a pod could take."""
        own = self.nodes[n]
        if not pod["pools"] >> own["pool"] & 1 or pod["cores"] > own["free_cores"]:
            return []
        able = [g for g, left in enumerate(self.left[n]) if left >= pod["share"]]
        if pod["memory"] > own["free_memory"] or len(able) < pod["gpus"]:
            return []
        return [able[: pod["gpus"]]] if pod["gpus"] != 1 else [[g] for g in able]

    def score(self, rule, pod, n, gpus):
        own, left = self.nodes[n], self.left[n]
        cores = own["free_cores"] - pod["cores"]
        after = [x - pod["share"] * (g in gpus) for g, x in enumerate(left)]
        if rule == BEST_FIT:
            tight = left[gpus[0]] if gpus else 0
            share = cores * self.most[1] * WHOLE + sum(after) * self.most[0]
            return share, tight
        growth = self.fragments(n, after, cores) - self.fragments(n, left, own["free_cores"])
        growth = round(growth, 6)
        if rule == FGD_STEPS:
            return -math.floor(100 / (1 + math.exp(growth / 1000))), growth
        return growth, 0

    def place(self, rule, pod):
        """Node and GPUs of the best placement, ties to the first; None if infeasible."""
        found = [(n, gpus) for n in range(len(self.nodes)) for gpus in self.places(pod, n)]
        if not found:
            return None
        n, gpus = min(found, key=lambda at: (self.score(rule, pod, *at)[0], at[0]))
        here = [(n, gpus) for m, gpus in found if m == n]
        n, gpus = min(here, key=lambda at: (self.score(rule, pod, *at), at[1]))
        self.nodes[n]["free_cores"] -= pod["cores"]
        self.nodes[n]["free_memory"] -= pod["memory"]
        for g in gpus:
            self.left[n][g] -= pod["share"]
        return n, gpus


def random_pods(seed):
    rng = np.random.default_rng(seed)
    nodes = [
        node(int(rng.integers(0, 5)), int(rng.choice([4, 8, 12])), int(rng.integers(2)))
        for _ in range(rng.integers(1, 6))
    ]
    nodes.append(node(2))
    specs = [
        pod(gpus, WHOLE if gpus > 1 else gpus * int(rng.choice([100, 250, 500, 700, 1000])))
        | {"cores": int(rng.integers(0, 4)), "memory": int(rng.integers(0, 20))}
        | {"pools": int(rng.integers(1, 4))}
        for gpus in rng.choice([0, 1, 1, 1, 2, 3], 6).tolist()
    ]
    kinds = [
        kind(gpus, WHOLE if gpus > 1 else int(rng.choice([250, 500, 1000])), weight)
        | {"cores": int(rng.integers(0, 4)), "pools": int(rng.integers(0, 4))}
        for gpus, weight in zip(rng.choice([1, 1, 2], 3).tolist(), (0.5, 0.25, 0.25), strict=True)
    ]
    return coming(nodes, [specs[s] for s in rng.integers(6, size=40)], kinds)


@pytest.mark.parametrize("rule", [BEST_FIT, FGD, FGD_STEPS])
def test_every_pod_goes_where_an_exhaustive_search_places_it(rule):
    for seed in range(100):
        pods = random_pods(seed)
        plain, found = PlainPacking(pods), pack(pods, rule)
        for i, s in enumerate(pods.coming):
            spec = dict(zip(POD.names, pods.specs[s].tolist(), strict=True))
            place = plain.place(rule, spec)
            n = -1 if place is None else place[0]
            g = -1 if place is None or not place[1] else pods.nodes["first_gpu"][n] + place[1][0]
            assert (int(found.node[i]), int(found.gpu[i])) == (n, g), f"seed {seed}, pod {i}"


def test_nothing_is_allocated_twice():
    for seed in range(100):
        pods = random_pods(seed)
        found = pack(pods, ANY, seed, random_ties=True)
        specs = pods.specs[pods.coming]
        for n, own in enumerate(pods.nodes):
            here = specs[found.node == n]
            assert here["cores"].sum() <= own["cores"]
            assert here["memory"].sum() <= own["memory"]
            assert (here["gpus"] * here["share"]).sum() <= WHOLE * own["gpus"]
        for g in range(len(pods.gpus)):
            assert specs["share"][(found.gpu == g) & (specs["share"] < WHOLE)].sum() <= WHOLE
