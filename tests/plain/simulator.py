"""The rules of docs/simulator.md in plain Python: slow, obvious, and blind to the compiled kernel.

Dimensions: J jobs, M GPU models, P pools, N nodes. Times are seconds since the start of the run.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, Protocol

from adlro.model.state import Floats, Mask, Records

MAX_RINGS = 100_000  # timers in a row with nothing else between them


class Infeasible(Exception):  # noqa: N818
    """A policy asked for what cannot be done."""


class Stalled(Exception):  # noqa: N818
    """Jobs wait and nothing will ever happen again."""


class Decision(NamedTuple):
    """One answer of a policy; -1 leaves the choice to the world."""

    kind: str  # "start" or "wake"
    job: int = -1
    pool: int = -1
    node: int = -1
    gpu: int = -1
    at: float = inf  # "wake": when to be asked again


@dataclass(slots=True)
class Job:
    """What a job asks for; cores and memory are for each of its GPUs."""

    id: int
    arrival: float
    limit: float
    communication: float
    type: int
    gpus: int
    cores: int
    memory: int  # MB


@dataclass(slots=True)
class Node:
    """What is free on one machine now."""

    id: int
    pool: int
    free_gpus: set[int]  # indices in the whole cluster
    free_cores: int
    free_memory: int  # MB


@dataclass(slots=True)
class Pool:
    """Nodes of one shape that share a GPU model."""

    id: int
    model: int
    span_cost: float
    nodes: list[Node]

    def free(self) -> int:
        """GPUs of the pool with nothing on them."""
        return sum(len(node.free_gpus) for node in self.nodes)


@dataclass(slots=True)
class Run:
    """A running job as policies see it: without its true end."""

    job: int
    pool: int
    gpus: tuple[int, ...]  # in rising order
    nodes: int
    start: float
    expected: float


@dataclass(slots=True)
class PlainResult:
    """What happened to every job [J], and to the cluster."""

    start: list[float]
    finish: list[float]
    pool: list[int]
    nodes: list[int]  # how many nodes its gang stood on
    gpus: list[tuple[int, ...]]  # in rising order
    killed: list[bool]  # ended by its limit
    job_seconds: float = 0.0  # integral of the jobs in the system
    idle_seconds: float = 0.0  # integral of the idle GPUs
    decisions: int = 0  # calls of decide
    trace: list[list[Decision]] = field(default_factory=list)  # the answer of every call


class Policy(Protocol):
    """Anything that answers the question what to do now."""

    def decide(self, world: PlainWorld) -> list[Decision]:
        """Decisions for this moment; none ends it."""


class PlainWorld:
    """The state of a cluster and the rules by which it changes."""

    def __init__(
        self,
        jobs: list[Job],
        est: list[list[float]],
        seconds: list[list[float]],
        allowed: list[list[bool]],
        pools: list[Pool],
    ) -> None:
        self.jobs, self.est, self.pools = jobs, est, pools
        self.nodes = sorted((n for pool in pools for n in pool.nodes), key=lambda node: node.id)
        self._seconds, self._allowed = seconds, allowed
        self._node_of = {gpu: node for node in self.nodes for gpu in node.free_gpus}
        self._initial = [(set(n.free_gpus), n.free_cores, n.free_memory) for n in self.nodes]
        self.reset()

    @classmethod
    def from_arrays(
        cls,
        jobs: Records,
        est: Floats,
        seconds: Floats,
        allowed: Mask,
        pools: Records,
        nodes: Records,
    ) -> PlainWorld:
        """The world before the first arrival; pools [P] and nodes [N] of the empty cluster."""
        machines = [_node(k, record) for k, record in enumerate(nodes)]
        return cls(
            [_job(k, record) for k, record in enumerate(jobs)],
            est.tolist(),
            seconds.tolist(),
            allowed.tolist(),
            [_pool(k, record, machines) for k, record in enumerate(pools)],
        )

    def reset(self) -> None:
        """Back to the empty cluster before the first arrival."""
        self.now = self.jobs[0].arrival if self.jobs else 0.0
        self.waiting: list[int] = []
        self.runs: dict[int, Run] = {}  # by job
        self.arrived = 0
        self.timer = inf
        self._ends: list[tuple[float, int]] = []  # heap of (true end, job)
        self._rings = 0
        for node, (gpus, cores, memory) in zip(self.nodes, self._initial, strict=True):
            node.free_gpus, node.free_cores, node.free_memory = set(gpus), cores, memory
        j = len(self.jobs)
        self.result = PlainResult([inf] * j, [inf] * j, [-1] * j, [0] * j, [()] * j, [False] * j)

    # What policies may ask.

    @property
    def running(self) -> list[Run]:
        """The running jobs, in the order in which they started."""
        return list(self.runs.values())

    @property
    def arrivals_left(self) -> bool:
        """Whether jobs are still to come."""
        return self.arrived < len(self.jobs)

    def eligible(self, job: int) -> list[int]:
        """The pools where the job may run at all."""
        return [pool for pool, allowed in enumerate(self._allowed[job]) if allowed]

    def capacity(self, job: int, node: int) -> int:
        """How many GPUs of the job the node could hold now."""
        need, room = self.jobs[job], self.nodes[node]
        count = len(room.free_gpus)
        if need.cores > 0:
            count = min(count, room.free_cores // need.cores)
        if need.memory > 0:
            count = min(count, room.free_memory // need.memory)
        return count

    def fits(self, job: int, pool: int) -> bool:
        """Whether the pool has room for the whole gang now (eligible or not)."""
        room = sum(self.capacity(job, node.id) for node in self.pools[pool].nodes)
        return room >= self.jobs[job].gpus

    def expected_end(self, run: Run) -> float:
        """When a run should end as far as a policy knows; later than planned if it is overdue."""
        if self.now >= run.expected:
            return self.now + max(0.1 * (self.now - run.start), 1.0)
        return run.expected

    # Placement.

    def place(self, decision: Decision) -> list[int]:
        """The GPUs that a start would take, in rising order.

        Raises:
            Infeasible: the start is not possible now.
        """
        job = decision.job
        self._check_start(decision)
        first = self._named_node(decision)
        if first is None:
            share = self._spread(job, self.pools[decision.pool].nodes, self.jobs[job].gpus)
        else:
            count = min(self.capacity(job, first.id), self.jobs[job].gpus)
            others = [node for node in self.pools[decision.pool].nodes if node is not first]
            share = [(first, count), *self._spread(job, others, self.jobs[job].gpus - count)]
        return sorted(gpu for node, count in share for gpu in _pick(node, count, decision.gpu))

    def _check_start(self, decision: Decision) -> None:
        job, pool = decision.job, decision.pool
        if job not in self.waiting:
            raise Infeasible(f"job {job} is not waiting at {self.now}")
        if not 0 <= pool < len(self.pools):
            raise Infeasible(f"job {job}: there is no pool {pool}")
        if not self._allowed[job][pool]:
            raise Infeasible(f"job {job} is not allowed on pool {pool}")
        if not self.fits(job, pool):
            raise Infeasible(f"job {job}: no room on pool {pool} at {self.now}")

    def _named_node(self, decision: Decision) -> Node | None:
        """The node that the decision names, itself or by its GPU."""
        if decision.node == -1 and decision.gpu == -1:
            return None
        if decision.gpu != -1:
            node = self._node_of.get(decision.gpu)
            if node is None or decision.gpu not in node.free_gpus:
                raise Infeasible(f"job {decision.job}: GPU {decision.gpu} is not free")
            if decision.node not in (-1, node.id):
                raise Infeasible(f"GPU {decision.gpu} is not on node {decision.node}")
        elif 0 <= decision.node < len(self.nodes):
            node = self.nodes[decision.node]
        else:
            raise Infeasible(f"job {decision.job}: there is no node {decision.node}")
        if node.pool != decision.pool:
            raise Infeasible(f"node {node.id} is not in pool {decision.pool}")
        if self.capacity(decision.job, node.id) < 1:
            raise Infeasible(f"job {decision.job}: no room on node {node.id} at {self.now}")
        return node

    def _spread(self, job: int, nodes: list[Node], gpus: int) -> list[tuple[Node, int]]:
        """What each node gives to `gpus` GPUs: the rest by best fit, else the roomiest, again."""
        room = {node.id: self.capacity(job, node.id) for node in nodes}
        share = []
        while gpus > 0:
            whole = [node for node in nodes if room[node.id] >= gpus]
            if whole:
                node = min(whole, key=lambda node: (len(node.free_gpus), node.id))
            else:
                node = min(nodes, key=lambda node: (-room[node.id], node.id))
            count = min(room[node.id], gpus)
            share.append((node, count))
            room[node.id] = 0
            gpus -= count
        return share

    def take(self, job: int, gpus: Iterable[int]) -> None:
        """Hand GPUs out to a job, with their cores and memory."""
        for gpu in gpus:
            node = self._node_of[gpu]
            node.free_gpus.remove(gpu)
            node.free_cores -= self.jobs[job].cores
            node.free_memory -= self.jobs[job].memory

    def give(self, job: int, gpus: Iterable[int]) -> None:
        """Take back what `take` handed out."""
        for gpu in gpus:
            node = self._node_of[gpu]
            node.free_gpus.add(gpu)
            node.free_cores += self.jobs[job].cores
            node.free_memory += self.jobs[job].memory

    # What happens.

    def _advance(self) -> None:
        """Go to the next moment and let everything happen that is due then."""
        next_arrival = self.jobs[self.arrived].arrival if self.arrivals_left else inf
        next_end = self._ends[0][0] if self._ends else inf
        moment = min(next_end, next_arrival, self.timer)
        if moment == inf:
            raise Stalled(f"jobs {self.waiting} wait at {self.now} and nothing can happen")
        self._pass_time(moment)
        if moment in (next_end, next_arrival):
            self._rings = 0
        while self._ends and self._ends[0][0] == moment:
            self._finish(heapq.heappop(self._ends)[1])
        while self.arrivals_left and self.jobs[self.arrived].arrival == moment:
            self.waiting.append(self.arrived)
            self.arrived += 1
        if self.timer == moment:
            self.timer = inf
            self._rings += 1

    def _pass_time(self, moment: float) -> None:
        elapsed = moment - self.now
        idle = sum(pool.free() for pool in self.pools)
        self.result.job_seconds += elapsed * (len(self.waiting) + len(self.runs))
        self.result.idle_seconds += elapsed * idle
        self.now = moment

    def _finish(self, job: int) -> None:
        run = self.runs.pop(job)
        self.give(job, run.gpus)
        self.result.finish[job] = self.now

    def _ask(self, policy: Policy) -> None:
        """Call the policy until it starts nothing more."""
        while True:
            answer = list(policy.decide(self))
            self.result.decisions += 1
            self.result.trace.append(answer)
            for decision in answer:
                self._apply(decision)
            if not any(decision.kind == "start" for decision in answer):
                break
            self._rings = 0
        if self._rings >= MAX_RINGS:
            raise Stalled(f"{self._rings} timers in a row started nothing, at {self.now}")

    def _apply(self, decision: Decision) -> None:
        if decision.kind == "start":
            self._start(decision)
        elif decision.kind == "wake":
            if not decision.at > self.now:
                raise Infeasible(f"wake at {decision.at} is not after {self.now}")
            self.timer = min(self.timer, decision.at)
        else:
            raise Infeasible(f"there is no decision of kind {decision.kind!r}")

    def _start(self, decision: Decision) -> None:
        gpus = tuple(self.place(decision))
        job, pool = self.jobs[decision.job], self.pools[decision.pool]
        nodes = len({self._node_of[gpu].id for gpu in gpus})
        factor = 1 + job.communication * pool.span_cost if nodes > 1 else 1
        length = self._seconds[job.id][pool.model] * factor
        expected = self.now + min(self.est[job.id][pool.model] * factor, job.limit)
        self.take(job.id, gpus)
        self.waiting.remove(job.id)
        self.runs[job.id] = Run(job.id, pool.id, gpus, nodes, self.now, expected)
        heapq.heappush(self._ends, (self.now + min(length, job.limit), job.id))
        result = self.result
        result.start[job.id], result.pool[job.id] = self.now, pool.id
        result.nodes[job.id], result.gpus[job.id] = nodes, gpus
        result.killed[job.id] = length > job.limit

    def play(self, policy: Policy) -> PlainResult:
        """Play from the first arrival until every job has finished."""
        self.reset()
        while self.arrivals_left or self.waiting or self.runs:
            self._advance()
            if self.arrivals_left or self.waiting or self.runs:
                self._ask(policy)
        return self.result


def run(world: PlainWorld, policy: Policy) -> PlainResult:
    """What a policy makes of the world, which starts anew.

    Raises:
        Infeasible: the policy asked for what cannot be done.
        Stalled: the policy lets jobs wait for ever.
    """
    try:
        return world.play(policy)
    except (Infeasible, Stalled) as exc:
        raise type(exc)(f"{type(policy).__name__}: {exc}") from exc


def _pick(node: Node, count: int, named: int) -> list[int]:
    """The lowest free GPUs of a node, the named one always among them."""
    return sorted(node.free_gpus, key=lambda gpu: (gpu != named, gpu))[:count]


def _job(k: int, record: Records) -> Job:
    arrival, limit, communication = (
        float(record[name]) for name in ("arrival", "limit", "communication")
    )
    type_, gpus, cores, memory = (int(record[name]) for name in ("type", "gpus", "cores", "memory"))
    return Job(k, arrival, limit, communication, type_, gpus, cores, memory)


def _node(k: int, record: Records) -> Node:
    first, gpus = int(record["first_gpu"]), int(record["gpus"])
    free = set(range(first, first + gpus))
    return Node(k, int(record["pool"]), free, int(record["free_cores"]), int(record["free_memory"]))


def _pool(k: int, record: Records, nodes: list[Node]) -> Pool:
    first, count = int(record["first_node"]), int(record["nodes"])
    own = nodes[first : first + count]
    return Pool(k, int(record["model"]), float(record["span_cost"]), own)
