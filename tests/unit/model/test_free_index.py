"""The free index: a search with it finds the same as a scan of all nodes."""

import numpy as np
import pytest

from adlro.model import feasibility, free_index, placement
from adlro.model.state import DECISION, DEMAND, RUNNING, START, WHOLE
from tests.looped import every
from tests.scanned import scan
from tests.worlds import job, lay, nodes, records

BEST_FIT = np.zeros(0, DEMAND)


def draw_want(rng):
    """A random gang or slice, with or without other demands."""
    if rng.random() < 0.5:
        share = int(rng.choice([33, 100, 250, 330, 500, 660, 999]))
        memory = int(rng.choice([0, 4_000, 12_000]))
        more = {"gpus": 1, "share": share, "gpu_memory": memory}
    else:
        more = {"gpus": int(rng.choice([1, 1, 2, 3, 4, 8, 20])), "share": WHOLE}
    return job(0, 1, cores=int(rng.choice([0, 0, 1, 5])), memory=int(rng.choice([0, 200])), **more)


class Yard:
    """A cluster on which random jobs start and end, and empty nodes go down and up."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        count, gpus = int(rng.integers(17, 201)), int(rng.choice([1, 4, 8, 40]))
        before = nodes("V100", 2, int(rng.choice([1, 40])))
        self.layout = lay(
            before, nodes("T4", gpus, count, cores=3 * gpus, memory_gb=1), nodes("A100", 2, 3)
        )
        free_index.build(*self.records)
        self.jobs = records([draw_want(rng) for _ in range(400)])
        self.runs = []

    @property
    def records(self):
        return self.layout.pools, self.layout.nodes, self.layout.gpus

    def start(self, j):
        """Start job j if it fits; returns its GPUs, and those that a scan would choose."""
        p = int(self.rng.choice([0, 1, 1, 1, 2]))
        want, pools = self.jobs[j], self.layout.pools
        expected = scan(want, p, self.layout)
        if not feasibility.fits(want, pools[p], self.layout.nodes, self.layout.gpus):
            return None, expected
        decision = np.array([(START, j, p, -1, -1, 0.0)], DECISION)[0]
        g, _ = placement.place(decision, self.jobs, BEST_FIT, *self.records)
        run = np.zeros(1, RUNNING)
        run["job"], run["pool"], run["gpu"] = j, p, g
        self.runs.append(run[0])
        gang = []
        while g >= 0:
            gang.append(int(g))
            g = self.layout.gpus["next"][g]
        return gang, expected

    def stop_one(self):
        """End a random job."""
        if self.runs:
            run = self.runs.pop(int(self.rng.integers(len(self.runs))))
            placement.release(run, self.jobs, *self.records)

    def switch_one(self):
        """Set a random empty node down, or up again."""
        n = int(self.rng.integers(len(self.layout.nodes)))
        node, gpus = self.layout.nodes[n], self.layout.gpus
        own = slice(node["first_gpu"], node["first_gpu"] + node["gpus"])
        if node["up"] and node["free"] < node["gpus"]:
            return
        node["up"] = 1 - node["up"]
        node["free"] = node["gpus"] * node["up"]
        gpus["free"][own] = WHOLE * node["up"]
        change = node["gpus"] if node["up"] else -node["gpus"]
        self.layout.pools["free"][node["pool"]] += change
        self.layout.pools["gpus"][node["pool"]] += change
        free_index.update(n, *self.records)

    def stock(self):
        """The index as maintained, and as rebuilt from scratch."""
        pools, machines, gpus = (array.copy() for array in self.records)
        machines["rooms"] = machines["block"] = 0
        free_index.build(pools, machines, gpus)
        return self.layout.nodes.tolist(), machines.tolist()


@every("seed", range(25), quick=3)
def test_feasibility_and_placement_equal_a_scan_of_all_nodes(seed):
    yard = Yard(seed)
    got, expected = [], []
    for j in range(len(yard.jobs)):
        for _ in range(yard.rng.choice([0, 0, 1, 3])):
            yard.stop_one()
        if yard.rng.random() < 0.2:
            yard.switch_one()
        given, by_scan = yard.start(j)
        got.append(given)
        expected.append(by_scan)
    assert got == expected
    assert sum(gang is not None for gang in got) > 50
    kept, anew = yard.stock()
    assert kept == anew


@every("seed", range(5), quick=2)
def test_the_index_is_restored_when_everything_is_released(seed):
    yard = Yard(seed)
    before = [array.tolist() for array in yard.records[:2]]
    for j in range(len(yard.jobs)):
        yard.start(j)
    assert [array.tolist() for array in yard.records[:2]] != before
    while yard.runs:
        yard.stop_one()
    assert [array.tolist() for array in yard.records[:2]] == before


def test_a_pool_of_one_block_has_no_index():
    layout = lay(nodes("T4", 4, free_index.BLOCK))
    free_index.build(layout.pools, layout.nodes, layout.gpus)
    assert not layout.nodes["rooms"].any()
    assert free_index.may_have(0, 1, layout.pools[0], layout.nodes)


@pytest.mark.parametrize(
    ("low", "high", "bits"),
    [
        (1, 3, 0b1110),
        (0, 0, 0b1),
        (2, 1, 0),  # none
        (3, 1, 0),
        (31, 40, 1 << 31),  # 31 and more share a bit
        (1, 40, 2**32 - 2),
    ],
)
def test_a_range_of_free_gpus_is_a_range_of_bits(low, high, bits):
    assert free_index.free_between(low, high) == bits


@pytest.mark.parametrize(
    ("low", "high", "bits"),
    [
        (0, 32, 1),  # 33 thousandths share a bit
        (33, 66, 0b110),
        (990, 999, 1 << 30),
        (500, 499, 1 << 15),  # nothing lies between, but both lie in one bit: may have, no more
        (600, 499, 0),
    ],
)
def test_a_range_of_free_shares_is_a_range_of_higher_bits(low, high, bits):
    assert free_index.left_between(low, high) == bits << 32
