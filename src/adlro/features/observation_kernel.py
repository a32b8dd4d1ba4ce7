"""The observation and the actions of the paper's DQN, compiled.

The observation is one flat vector: a matrix [rows, columns] of the allocated share of each GPU,
one row per node; the length of the queue; and for each of the first W waiting jobs (the slots) its
priority and one-hot type. Action slot * G + g starts the job of that slot with GPU g first. The
paper has W = 1. There is no action for waiting: the agent acts only when something can start.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from numpy import float32
from numpy.typing import NDArray

from adlro.compiled import njit
from adlro.errors import ConfigError
from adlro.model.feasibility import anchors, fits, start_on
from adlro.model.state import WHOLE, Mask, Records, Row
from adlro.model.view import View

MOST_WAITING = 1000  # a queue of this length or longer is observed as 1
_MOST_LOG = math.log1p(MOST_WAITING)

Vector = NDArray[float32]


class Sizes(NamedTuple):
    """Sizes of cluster, job types and window, which give the lengths of observation and actions."""

    rows: int  # nodes
    columns: int  # most GPUs of any node
    types: int
    window: int  # W slots
    gpus: int  # G

    @property
    def observation(self) -> int:
        """O, the length of the observation."""
        return self.rows * self.columns + 1 + self.window * (1 + self.types)

    @property
    def actions(self) -> int:
        """A, the number of actions, allowed or not."""
        return self.window * self.gpus


class Cluster(Protocol):
    """Anything with the records of an empty cluster: a Layout, a Context."""

    @property
    def nodes(self) -> Records:
        """NODE records [N] of the N nodes."""

    @property
    def gpus(self) -> Records:
        """GPU records [G] of the G GPUs."""


def sizes(cluster: Cluster, types: int, window: int) -> Sizes:
    """Return the sizes for a cluster, a number of job types and a window of W slots.

    Raises:
        ConfigError: the window is less than 1.
    """
    if window < 1:
        raise ConfigError(f"window: at least 1 waiting job must be seen, not {window}")
    columns = int(cluster.nodes["gpus"].max())
    return Sizes(len(cluster.nodes), columns, types, window, len(cluster.gpus))


@njit
def observe(view: View, window: int, types: int, columns: int, x: Vector) -> None:
    """Write the observation of a state to x [O]; every number is in [0, 1].

    GPUs that are down count as allocated (1), as do the matrix cells of a node with fewer GPUs than
    columns. All numbers of an empty slot are 0.
    """
    jobs, queue, nodes, gpus = view.jobs, view.queue, view.nodes, view.gpus
    at = 0
    for n in range(len(nodes)):
        for c in range(columns):
            free = gpus[nodes[n].first_gpu + c].free if c < nodes[n].gpus else 0
            x[at] = 1.0 - free / WHOLE
            at += 1
    x[at] = min(math.log1p(len(queue)) / _MOST_LOG, 1.0)
    at += 1
    for slot in range(window):
        for k in range(1 + types):
            x[at + k] = 0.0
        if slot < len(queue):
            job = jobs[queue[slot].job]
            x[at] = job.priority
            x[at + 1 + job.type] = 1.0
        at += 1 + types


@njit
def _mark(job: Row, pool: Row, nodes: Records, gpus: Records, mask: Mask) -> int:
    """Set mask [G] to True for the GPUs of a pool where a job may start; return their number."""
    count = 0
    for g in range(pool.first_gpu, pool.first_gpu + pool.size):
        if anchors(job, gpus[g], nodes[gpus[g].node], gpus):
            mask[g] = True
            count += 1
    return count


@njit
def allow(view: View, window: int, mask: Mask) -> int:
    """Write to mask [A] which actions are feasible, and return their number."""
    jobs, queue, eligible, pools = view.jobs, view.queue, view.eligible, view.pools
    nodes, gpus = view.nodes, view.gpus
    count = 0
    for slot in range(window):
        first = slot * len(gpus)
        of_slot = mask[first : first + len(gpus)]
        for g in range(len(gpus)):
            of_slot[g] = False
        if slot < len(queue):
            job = jobs[queue[slot].job]
            for p in range(len(pools)):
                if eligible[slot, p] and fits(job, pools[p], nodes, gpus):
                    count += _mark(job, pools[p], nodes, gpus, of_slot)
    return count


@njit
def act(a: int, view: View, out: Records) -> int:
    """Write the start that action a stands for to `out`; return 1, the number of decisions."""
    nodes, gpus = view.nodes, view.gpus
    slot, g = a // len(gpus), a % len(gpus)
    return start_on(out, view.queue[slot].job, gpus[g].node, g, nodes, gpus)
