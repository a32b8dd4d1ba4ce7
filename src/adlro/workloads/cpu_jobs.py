"""CPU-only jobs of a history: the cores that they hold on GPU nodes at their recorded times.

No policy schedules them. They take cores of their recorded nodes as far as free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adlro.config.history import Recorded
from adlro.errors import TraceError
from adlro.model.cluster import Layout, host_of
from adlro.model.history import History
from adlro.model.state import CORES, EVENT, Counts, Floats, Mask, Records
from adlro.workloads import history_file, slurm_nodes


class CoreHolds(NamedTuple):
    """Cores that CPU-only jobs hold: H pairs of a job and one of its nodes, by begin."""

    node: Counts  # [H]
    cores: Counts  # [H]
    begin: Floats  # [H] seconds since the first arrival of the replay
    length: Floats  # [H] seconds

    def take(self, some: Mask | Counts) -> CoreHolds:
        """Return only some of the holds."""
        return CoreHolds(self.node[some], self.cores[some], self.begin[some], self.length[some])

    def within(self, first: float, last: float, stretch: float) -> CoreHolds:
        """Return the holds that overlap the time from `first` to `last`, relative to `first`.

        Times between begins are multiplied by `stretch`, as those between arrivals are.
        """
        some = self.take((self.begin + self.length > first) & (self.begin <= last))
        begin = some.begin - first
        length = np.where(begin < 0, some.length + begin, some.length)
        return some._replace(begin=np.maximum(begin, 0.0) * stretch, length=length)

    def events(self) -> Records:
        """Return the EVENT records [2 H] that take and return the cores, unsorted."""
        events = np.zeros(2 * len(self.node), EVENT)
        for name in ("gpu", "type", "model"):
            events[name] = -1
        events["kind"], events["node"] = CORES, np.tile(self.node, 2)
        events["time"] = np.concatenate((self.begin, self.begin + self.length))
        events["value"] = np.concatenate((self.cores, -self.cores))
        return events


def no_holds() -> CoreHolds:
    """Return the holds of a workload without CPU-only jobs."""
    return CoreHolds(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))


class CpuJobs(NamedTuple):
    """The cores held, the number of CPU-only jobs that hold them, and the number of others."""

    holds: CoreHolds
    played: int
    left_out: int  # nodes, times or cores are not recorded, or no GPU node was used


def _overlaps(history: History, recorded: Recorded) -> Mask:
    """Return a mask [J] of the jobs that were there in the part of the history that is played."""
    first = -np.inf if recorded.from_s is None else recorded.from_s
    last = np.inf if recorded.to_s is None else recorded.to_s
    end = np.fmax(history.submit_s, history.start_s + history.run_s)
    there: Mask = (end >= first) & (history.submit_s < last)
    return there


def of_history(history: History, recorded: Recorded, layout: Layout, origin_s: float) -> CpuJobs:
    """Return the CPU-only jobs of a history; times are counted from `origin_s` of the history."""
    gpus = history_file.gpus_of(history, recorded)
    rows = np.flatnonzero((gpus == 0) & _overlaps(history, recorded))
    begin, run, cores = history.start_s, history.run_s, history.cores
    known = ~np.isnan(begin) & (run > 0) & (cores >= 1) & (history.hosts >= 0)
    some = rows[known[rows]]
    words, word = np.unique(history.hosts[some], return_inverse=True)
    of_host = _of_host(layout)
    places = [_place(history.tables["hosts"][code], of_host, layout) for code in words]
    count = np.array([len(place.node) for place in places], np.int64)[word]
    job = np.repeat(some, count)  # [H]
    node = _joined([places[w].node for w in word.tolist()], np.int64)
    part = _joined([places[w].part for w in word.tolist()], np.float64)
    held = np.minimum(np.ceil(cores[job] * part - 1e-9), layout.nodes["cores"][node]).astype(
        np.int64
    )
    order = np.argsort(begin[job], kind="stable")
    holds = CoreHolds(node, held, begin[job] - origin_s, run[job]).take(order)
    played = int((count > 0).sum())
    return CpuJobs(holds, played, len(rows) - played)


class _Place(NamedTuple):
    """The nodes of a list of hosts, and the part of a job's cores that each of them holds."""

    node: Counts  # [N]
    part: Floats  # [N]


def _of_host(layout: Layout) -> dict[str, list[int]]:
    """Return the nodes of each host."""
    found: dict[str, list[int]] = {}
    for n, name in enumerate(layout.node_names):
        found.setdefault(host_of(name), []).append(n)
    return found


def _place(text: str, of_host: dict[str, list[int]], layout: Layout) -> _Place:
    """Return the nodes of a list of hosts; none if it cannot be read or names no GPU node.

    The hosts have equal parts of a job, the nodes of a host that was split parts by their cores.
    """
    try:
        names = slurm_nodes.hosts(text)
    except TraceError:
        names = []
    nodes = [of_host.get(name, []) for name in names]
    own = [layout.nodes["cores"][some] / layout.nodes["cores"][some].sum() for some in nodes]
    return _Place(_joined(nodes, np.int64), _joined(own, np.float64) / max(1, len(names)))


def _joined(parts: Sequence[ArrayLike], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([np.empty(0, kind), *parts]).astype(kind)
