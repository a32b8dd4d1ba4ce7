"""When running jobs return GPUs, cores and memory to their nodes, by their time limits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.compiled import njit, njit_allocating
from adlro.model.state import WHOLE, Floats, Row
from adlro.model.view import View

_UNLIMITED_S = 365 * 86_400.0  # the time limit of a job that has none
_OVERDUE_S = 1.0

Indices = NDArray[np.int64]


class Releases(NamedTuple):
    """What running jobs return to their nodes, in order of time."""

    at: Floats  # [E]
    node: Indices  # [E]
    gpus: Indices  # [E] GPUs that become free
    cores: Indices  # [E]
    memory: Indices  # [E] MB


@njit
def time_limit(job: Row) -> float:
    """Seconds after which Slurm would end a run: the limit, else the requested time."""
    if job.limit < np.inf:
        limit: float = job.limit
        return limit
    return job.requested if job.requested > 0.0 else _UNLIMITED_S


@njit
def _ends_at(run: Row, job: Row, now: float) -> float:
    """Time when a run ends by its time limit; if that is over, a second from now."""
    end: float = run.start + time_limit(job)
    return end if end > now else now + _OVERDUE_S


@njit
def _is_last_slice(r: int, view: View) -> bool:
    """True when run r, a slice, is the one that ends last on its GPU; of equals one only."""
    running, jobs, now = view.running, view.jobs, view.now
    end = _ends_at(running[r], jobs[running[r].job], now)
    other = view.gpus[running[r].gpu].slice
    while other >= 0:
        its_end = _ends_at(running[other], jobs[running[other].job], now)
        if its_end > end or (its_end == end and other > r):
            return False
        other = running[other].after
    return True


@njit
def _count_nodes(view: View) -> int:
    """Number of pairs of a run and a node that it holds GPUs of."""
    count = 0
    for r in range(len(view.running)):
        count += view.running[r].nodes
    return count


@njit
def _list_releases(view: View, found: Releases) -> int:
    """Write what each run returns to each of its nodes, not sorted; returns the number.

    Nodes out of service get nothing back.
    """
    running, jobs, nodes, gpus, count = view.running, view.jobs, view.nodes, view.gpus, 0
    for r in range(len(running)):
        job, g = jobs[running[r].job], running[r].gpu
        end, last = _ends_at(running[r], job, view.now), -1
        returned = 1 if job.share == WHOLE or _is_last_slice(r, view) else 0
        while g >= 0:
            n = gpus[g].node
            if nodes[n].up:
                if n != last:
                    found.at[count], found.node[count] = end, n
                    found.gpus[count] = found.cores[count] = found.memory[count] = 0
                    count += 1
                    last = n
                found.gpus[count - 1] += returned
                found.cores[count - 1] += job.cores
                found.memory[count - 1] += job.memory
            g = gpus[g].next if job.share == WHOLE else -1
    return count


@njit
def _sort_releases(order: Indices, found: Releases, to: Releases) -> None:
    for i in range(len(order)):
        k = order[i]
        to.at[i], to.node[i], to.gpus[i] = found.at[k], found.node[k], found.gpus[k]
        to.cores[i], to.memory[i] = found.cores[k], found.memory[k]


@njit_allocating
def _new_releases(count: int) -> Releases:
    return Releases(
        np.empty(count),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
    )


@njit_allocating
def releases_of(view: View) -> Releases:
    """Return what running jobs return to their nodes, sorted by time."""
    most = _count_nodes(view)
    found = _new_releases(most)
    count = _list_releases(view, found)
    to = _new_releases(count)
    _sort_releases(np.argsort(found.at[:count]), found, to)
    return to
