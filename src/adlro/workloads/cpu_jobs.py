"""CPU-only jobs of a history: the cores that they hold on GPU nodes at their recorded times.

No policy schedules them. They take cores of their recorded nodes as far as free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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


def of_history(history: History, recorded: Recorded, layout: Layout, origin_s: float) -> CpuJobs:
    """Return the CPU-only jobs of a history; times are counted from `origin_s` of the history."""
    gpus = history_file.gpus_of(history, recorded)
    rows = np.flatnonzero(gpus == 0)
    begin, cores = history.start_s, history.cores
    known = ~np.isnan(begin) & ~np.isnan(history.run_s) & (cores >= 1) & (history.hosts >= 0)
    with_nodes = rows[known[rows]]
    places = _nodes_of(history.tables["hosts"], layout)
    parts = [no_holds()]
    played = 0
    for row in with_nodes.tolist():
        nodes, host, hosts = places[history.hosts[row]]
        if len(nodes) == 0 or history.run_s[row] <= 0:
            continue
        played += 1
        own = layout.nodes["cores"][nodes]
        share = own / np.bincount(host, own)[host]  # of the parts of a host that was split
        held = np.minimum(np.ceil(cores[row] / hosts * share), own).astype(np.int64)
        times = np.full(len(nodes), begin[row] - origin_s)
        parts.append(CoreHolds(nodes, held, times, np.full(len(nodes), history.run_s[row])))
    holds = CoreHolds(
        np.concatenate([part.node for part in parts]),
        np.concatenate([part.cores for part in parts]),
        np.concatenate([part.begin for part in parts]),
        np.concatenate([part.length for part in parts]),
    )
    order = np.argsort(holds.begin, kind="stable")
    return CpuJobs(holds.take(order), played, len(rows) - played)


def _nodes_of(words: tuple[str, ...], layout: Layout) -> list[tuple[Counts, Counts, int]]:
    """Return the nodes of each list of hosts, their hosts' places in the list, and its length."""
    of_host: dict[str, list[int]] = {}
    for n, name in enumerate(layout.node_names):
        of_host.setdefault(host_of(name), []).append(n)
    found = []
    for word in words:
        try:
            named = slurm_nodes.hosts(word)
        except TraceError:
            named = []
        nodes = [(n, h) for h, name in enumerate(named) for n in of_host.get(name, [])]
        table = np.array(nodes, np.int64).reshape(-1, 2)
        found.append((table[:, 0], table[:, 1], len(named)))
    return found
