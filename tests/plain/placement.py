"""Feasibility and placement: which jobs fit where, and which GPUs a start takes."""

from __future__ import annotations

from adlro.model.state import WHOLE, Records
from tests.plain.records import Decision, Gpu, InfeasibleError, Job, Kind, Node, Pool, rows

TIE = 1e-9  # growths that differ by less count as equal


class PlainCluster:
    """P pools of nodes, and their free capacity."""

    def __init__(self, pools: Records, nodes: Records, demands: Records) -> None:
        self._pools, self._nodes = pools, nodes
        self.kinds: list[Kind] = rows(demands, Kind)
        self.in_order = [kind.gpus for kind in self.kinds] == [0]
        self.reset()

    def reset(self) -> None:
        """Reset all nodes: up, at full speed and empty."""
        self.nodes = [
            Node(k, int(record["pool"]), int(record["cores"]), int(record["memory"]))
            for k, record in enumerate(self._nodes)
        ]
        self.pools = [_pool(k, record, self.nodes) for k, record in enumerate(self._pools)]
        self.gpus: list[Gpu] = []
        for node, count in zip(self.nodes, self._nodes["gpus"].tolist(), strict=True):
            for _ in range(count):
                gpu = Gpu(len(self.gpus), node, self.pools[node.pool].gpu_memory)
                self.gpus.append(gpu)
                node.gpus.append(gpu)
            node.free = count
        self._known: list[dict[tuple[int, ...], bool]] = [{} for _ in self.pools]

    # Feasibility.

    def takes(self, gpu: Gpu, job: Job) -> bool:
        """Whether the GPU has enough free share and memory for the slice."""
        return gpu.left >= job.share and gpu.memory >= job.gpu_memory

    def capacity(self, job: Job, node: Node) -> int:
        """Number of GPUs of the job that fit on the node now; for a slice 0 or 1."""
        if not node.up:
            return 0
        if not job.whole:
            enough = node.cores >= job.cores and node.memory >= job.memory
            return int(enough and any(self.takes(gpu, job) for gpu in node.gpus))
        count = node.free
        if job.cores > 0:
            count = min(count, node.cores // job.cores)
        if job.memory > 0:
            count = min(count, node.memory // job.memory)
        return count

    def fits(self, job: Job, pool: int) -> bool:
        """Whether the whole gang fits on the pool now (allowed there or not)."""
        known = self._known[pool]  # results since the pool last changed, by demand
        need = (job.gpus, job.share, job.cores, job.memory, job.gpu_memory, job.one_node)
        if need not in known:
            rooms = [self.capacity(job, node) for node in self.pools[pool].nodes]
            known[need] = (max(rooms) if job.one_node else sum(rooms)) >= job.gpus
        return known[need]

    def take(self, job: Job, gpus: tuple[int, ...]) -> None:
        """Allocate GPUs to a job, with their cores and memory."""
        for gpu in (self.gpus[k] for k in gpus):
            gpu.node.free -= gpu.left == WHOLE
            gpu.jobs.append(job.id)
            self._move(job, gpu, -1)

    def give(self, job: Job, gpus: tuple[int, ...]) -> None:
        """Release the GPUs of a job, with their cores and memory."""
        for gpu in (self.gpus[k] for k in gpus):
            gpu.jobs.remove(job.id)
            self._move(job, gpu, 1)
            gpu.node.free += gpu.left == WHOLE

    def _move(self, job: Job, gpu: Gpu, sign: int) -> None:
        gpu.left += sign * job.share
        gpu.node.cores += sign * job.cores
        gpu.node.memory += sign * job.memory
        if not job.whole:
            gpu.memory += sign * job.gpu_memory
        self._known[gpu.node.pool].clear()

    def set_up(self, node: Node, up: bool) -> None:
        """Put a node into or out of service; jobs on it keep their GPUs."""
        node.up = up
        self._known[node.pool].clear()

    def change_cores(self, node: Node, cores: int) -> None:
        """Let CPU-only jobs take cores as far as free, or return what they took (< 0)."""
        if cores > 0:
            taken = min(cores, node.cores)
            node.cores -= taken
            node.short += cores - taken
        else:
            never_taken = min(-cores, node.short)
            node.short -= never_taken
            node.cores += -cores - never_taken
        self._known[node.pool].clear()

    # Placement.

    def place(self, job: Job, decision: Decision) -> tuple[int, ...]:
        """The GPUs that a start would take, in rising order.

        Raises:
            InfeasibleError: the job does not fit.
        """
        if not self.fits(job, decision.pool):
            raise InfeasibleError(f"job {job.id}: no room on pool {decision.pool}")
        first = self._named_node(job, decision)
        if not job.whole:
            return (self._slice(job, decision, first).id,)
        gang: list[Gpu] = []
        if first is not None:
            count = min(self.capacity(job, first), job.gpus)
            gang += pick(first, count, decision.gpu)
        nodes = [node for node in self.pools[decision.pool].nodes if node is not first]
        while len(gang) < job.gpus:
            node = self._next_node(job, nodes, job.gpus - len(gang))
            count = min(self.capacity(job, node), job.gpus - len(gang))
            gang += pick(node, count)
            nodes.remove(node)
        return tuple(sorted(gpu.id for gpu in gang))

    def _named_node(self, job: Job, decision: Decision) -> Node | None:
        """The node that the decision names, directly or by its GPU; None if it names none."""
        if decision.gpu != -1:
            if not 0 <= decision.gpu < len(self.gpus):
                raise InfeasibleError(f"job {job.id}: there is no GPU {decision.gpu}")
            gpu = self.gpus[decision.gpu]
            if not (self.takes(gpu, job) if not job.whole else gpu.left == WHOLE):
                raise InfeasibleError(f"job {job.id}: GPU {gpu.id} is not free")
            if decision.node not in (-1, gpu.node.id):
                raise InfeasibleError(f"GPU {gpu.id} is not on node {decision.node}")
            node = gpu.node
        elif decision.node == -1:
            return None
        elif 0 <= decision.node < len(self.nodes):
            node = self.nodes[decision.node]
        else:
            raise InfeasibleError(f"job {job.id}: there is no node {decision.node}")
        if node.pool != decision.pool:
            raise InfeasibleError(f"node {node.id} is not in pool {decision.pool}")
        if self.capacity(job, node) < (job.gpus if job.one_node else 1):
            raise InfeasibleError(f"job {job.id}: no room on node {node.id}")
        return node

    def _slice(self, job: Job, decision: Decision, first: Node | None) -> Gpu:
        """The GPU for a slice."""
        if decision.gpu != -1:
            return self.gpus[decision.gpu]
        nodes = self.pools[decision.pool].nodes if first is None else [first]
        able = [node for node in nodes if self.capacity(job, node) == 1]
        gpus = [gpu for node in able for gpu in node.gpus if self.takes(gpu, job)]
        if not self.kinds or self.in_order:
            return min(gpus, key=lambda gpu: (gpu.left, gpu.id))
        return gpus[least([growth(self.kinds, job, gpu.node, [gpu]) for gpu in gpus])]

    def _next_node(self, job: Job, nodes: list[Node], gpus: int) -> Node:
        """The node for the rest of a gang; if none holds it, the one with the largest capacity."""
        able = [node for node in nodes if self.capacity(job, node) >= gpus]
        if self.in_order:
            return (able or [node for node in nodes if self.capacity(job, node) > 0])[0]
        if not able:
            return min(nodes, key=lambda node: (-self.capacity(job, node), node.id))
        if not self.kinds:
            return min(able, key=lambda node: (node.free, node.id))
        grown = [growth(self.kinds, job, node, pick(node, gpus)) for node in able]
        return able[least(grown)]


def growth(kinds: list[Kind], job: Job, node: Node, gpus: list[Gpu]) -> float:
    """Growth of the node's fragmentation if the job takes these of its GPUs."""
    before = [gpu.left for gpu in node.gpus]
    after = [gpu.left - job.share * (gpu in gpus) for gpu in node.gpus]
    cores = node.cores - len(gpus) * job.cores
    memory = node.memory - len(gpus) * job.memory
    return _fragments(kinds, node.pool, after, cores, memory) - _fragments(
        kinds, node.pool, before, node.cores, node.memory
    )


def _fragments(kinds: list[Kind], pool: int, lefts: list[int], cores: int, memory: int) -> float:
    """Mean over kinds of the free share that they cannot use; lefts: free share by GPU."""
    total = 0.0
    for kind in kinds:
        can_run = (
            kind.pools >> pool & 1
            and sum(left >= kind.share for left in lefts) >= kind.gpus
            and cores >= kind.gpus * kind.cores
            and memory >= kind.gpus * kind.memory
        )
        total += kind.weight * sum(left for left in lefts if not can_run or left < kind.share)
    return total


def least(growths: list[float]) -> int:
    """Index of the smallest growth, the first on ties."""
    best = 0
    for k, growth in enumerate(growths):
        if growth < growths[best] - TIE:
            best = k
    return best


def pick(node: Node, count: int, named: int = -1) -> list[Gpu]:
    """The `count` lowest free GPUs of a node, including the named one."""
    return sorted(node.free_gpus(), key=lambda gpu: (gpu.id != named, gpu.id))[:count]


def _pool(k: int, record: Records, nodes: list[Node]) -> Pool:
    first, count = int(record["first_node"]), int(record["nodes"])
    model, memory = int(record["model"]), int(record["gpu_memory"])
    return Pool(k, model, float(record["span_cost"]), memory, nodes[first : first + count])
