"""Jobs, runs, GPUs, nodes, pools, events and results as plain records.

Times are in seconds, memory in MB, GPU shares in thousandths.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from adlro.model.state import WHOLE, Records
from tests.plain.timeline import Timeline


class InfeasibleError(Exception):
    """A policy made an infeasible decision."""


class StalledError(Exception):
    """A policy prevents the simulation from ending."""


class Decision(NamedTuple):
    """One decision of a policy; -1 = the world chooses."""

    kind: str  # "start", "preempt", "migrate" or "wake"
    job: int = -1
    pool: int = -1
    node: int = -1
    gpu: int = -1
    at: float = inf  # "wake": when to call the policy again


@dataclass(slots=True)
class Job:
    """Demands of a job; cores and memory are for each of its GPUs."""

    id: int
    arrival: float
    limit: float
    communication: float
    checkpoint: float
    interval: float
    least_run: float
    start_delay: float
    type: int
    gpus: int
    share: int
    cores: int
    memory: int
    gpu_memory: int
    one_node: int

    @property
    def whole(self) -> bool:
        """Whether it takes all of each of its GPUs."""
        return self.share == WHOLE


@dataclass(slots=True)
class Gpu:
    """One GPU: its free share and memory, and the jobs on it."""

    id: int
    node: Node
    memory: int  # MB left for slices
    left: int = WHOLE
    jobs: list[int] = field(default_factory=list)
    speed: float = 1.0


@dataclass(slots=True)
class Node:
    """One node: its free cores and memory, and its GPUs."""

    id: int
    pool: int
    cores: int
    memory: int
    up: bool = True
    gpus: list[Gpu] = field(default_factory=list)
    free: int = 0  # GPUs without any job
    short: int = 0  # cores that CPU-only jobs should hold but did not find free

    def free_gpus(self) -> list[Gpu]:
        """Free GPUs in rising order."""
        return [gpu for gpu in self.gpus if gpu.left == WHOLE]


@dataclass(slots=True)
class Pool:
    """Nodes of one shape with one GPU model."""

    id: int
    model: int
    span_cost: float
    gpu_memory: int
    nodes: list[Node]

    def up(self) -> list[Gpu]:
        """The GPUs that are in service."""
        return [gpu for node in self.nodes if node.up for gpu in node.gpus]

    def free(self) -> int:
        """Number of free GPUs that are up."""
        return sum(node.free for node in self.nodes if node.up)


class Kind(NamedTuple):
    """A kind of demand for placement by fragmentation."""

    weight: float
    pools: int  # bit p = may run on pool p
    gpus: int
    share: int
    cores: int
    memory: int


class Event(NamedTuple):
    """A change of the cluster: REPAIR, FAILURE, SPEED or CORES."""

    time: float
    value: float
    kind: int
    node: int
    gpu: int
    type: int
    model: int


class Span(NamedTuple):
    """Use of one GPU by one run."""

    job: int
    gpu: int
    start: float
    end: float
    share: int
    why: int  # FINISH, FAILURE or PREEMPTION


@dataclass(slots=True)
class Run:
    """A running job: the fields that policies see, and from `line` on hidden ones."""

    job: int
    pool: int
    gpus: tuple[int, ...]  # in rising order
    nodes: int
    start: float
    expected: float
    factor: float  # span factor
    left: float  # share of its work still to do at `start`, by the estimate
    line: Timeline
    over: float = inf  # time when its work is done
    end: float = inf  # the same, but at most its limit


@dataclass(slots=True)
class Carried:
    """State of a job that persists from run to run."""

    undone: float = 1.0  # true share of its work still to do
    left: float = 1.0  # the same share by the estimate
    saved: bool = False
    since: float = inf  # when it last began to wait


@dataclass(slots=True)
class PlainResult:
    """Outcome of every job [J], and totals of the cluster."""

    start: list[float]  # of the first run
    finish: list[float]
    lost: list[float]  # work lost to preemptions and failures
    pool: list[int]  # this and the next two: of the last run
    nodes: list[int]
    gpus: list[tuple[int, ...]]  # in rising order
    restarts: list[int]
    killed: list[bool]  # ended by its limit
    busy: list[float]  # [G] seconds, a slice by its share
    spans: list[Span] = field(default_factory=list)
    job_seconds: float = 0.0  # integral of the number of jobs in the system
    wait_seconds: float = 0.0  # integral of the number of waiting jobs
    idle_seconds: float = 0.0  # integral of the number of idle GPUs that are up
    stranded_seconds: float = 0.0  # integral of the free share on GPUs that hold slices
    decisions: int = 0  # calls of decide
    preemptions: int = 0  # runs ended by the policy
    trace: list[list[Decision]] = field(default_factory=list)  # answers of all calls
    seen: Counter[str] = field(default_factory=Counter)  # counts of rare situations


def rows(records: Records, cls: type) -> list[Any]:
    """A record array as a list of plain tuples or data classes, by field name."""
    names = [name for name in cls.__annotations__ if name != "id"]
    columns = zip(*(records[name].tolist() for name in names), strict=True)
    numbered = "id" in cls.__annotations__
    return [cls(k, *row) if numbered else cls(*row) for k, row in enumerate(columns)]
