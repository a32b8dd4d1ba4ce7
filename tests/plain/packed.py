"""Plain versions of the policies that choose node and GPU themselves: best-fit and fgd.

The oldest job that fits on any pool starts. `MAKERS` maps names to policies.
"""

from __future__ import annotations

from fractions import Fraction

from tests.plain.cases import Case, typical_demands
from tests.plain.placement import growth, least, pick
from tests.plain.policies import feasible
from tests.plain.records import Decision, Gpu, Job, Kind, Node, rows
from tests.plain.simulator import PlainWorld


class Packed:
    """Starts the oldest job that fits, on its best node and GPUs by the rule of the subclass."""

    def decide(self, world: PlainWorld) -> list[Decision]:
        for number in world.waiting:
            if feasible(world, number):
                job = world.jobs[number]
                gpu = self.choose(world, job, self.places(world, job))
                return [Decision("start", number, gpu.node.pool, gpu.node.id, gpu.id)]
        return []

    def places(self, world: PlainWorld, job: Job) -> list[list[Gpu]]:
        """Lists of GPUs of a single node that the job could take."""
        capacity, takes = world.cluster.capacity, world.cluster.takes
        nodes = [node for p in world.eligible(job.id) for node in world.pools[p].nodes]
        able = [node for node in nodes if capacity(job, node) >= job.gpus]
        if job.whole:
            return [pick(node, job.gpus) for node in able]
        return [[gpu] for node in able for gpu in node.gpus if takes(gpu, job)]

    def choose(self, world: PlainWorld, job: Job, places: list[list[Gpu]]) -> Gpu:
        """First GPU of the job."""
        if places:
            return self.best(world, job, places)[0]
        nodes = [node for p in feasible(world, job.id) for node in world.pools[p].nodes]
        roomiest = max(nodes, key=lambda node: (world.cluster.capacity(job, node), -node.id))
        return pick(roomiest, 1)[0]

    def best(self, world: PlainWorld, job: Job, places: list[list[Gpu]]) -> list[Gpu]:
        """The list of GPUs that the rule prefers."""
        raise NotImplementedError


class BestFit(Packed):
    """The node with the least free after the start, and on it the GPU with the least free share."""

    def __init__(self, case: Case) -> None:
        self.cores, self.gpus = int(case.nodes["cores"].max()), int(case.nodes["gpus"].max())

    def best(self, world: PlainWorld, job: Job, places: list[list[Gpu]]) -> list[Gpu]:
        def key(place: list[Gpu]) -> tuple[Fraction, int, int, int]:
            node, gpu = place[0].node, place[0]
            return self.left(job, node), node.id, gpu.left, gpu.id

        return min(places, key=key)

    def left(self, job: Job, node: Node) -> Fraction:
        """Mean of the shares of cores and of GPUs that are free on the node after the start."""
        cores = Fraction(node.cores - job.gpus * job.cores, self.cores)
        gpus = Fraction(sum(gpu.left for gpu in node.gpus) - job.gpus * job.share, 1000 * self.gpus)
        return cores / 2 + gpus / 2


class Fgd(Packed):
    """The GPUs for which the fragmentation of their node grows least."""

    def __init__(self, case: Case) -> None:
        self.kinds: list[Kind] = rows(typical_demands(case), Kind)

    def best(self, world: PlainWorld, job: Job, places: list[list[Gpu]]) -> list[Gpu]:
        return places[least([growth(self.kinds, job, p[0].node, p) for p in places])]


MAKERS = {
    "best-fit": lambda case, seed: BestFit(case),
    "fgd": lambda case, seed: Fgd(case),
}
