"""When the nodes of a run were out of service, put together from its events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.model.state import FAILURE, REPAIR, Floats, Mask, Records
from adlro.sim.simulator import RunResult
from adlro.workloads.workload import Workload


class Window(NamedTuple):
    """The part of time that a run is about, in seconds."""

    first: float  # arrival
    last: float  # finish

    @property
    def length(self) -> float:
        """The makespan."""
        return self.last - self.first


class Downtime(NamedTuple):
    """D times that a node was down, by node, then time."""

    node: NDArray[np.int64]  # [D]
    start: Floats  # [D]
    end: Floats  # [D]
    planned: Mask  # [D] a shutdown, not a failure; also before a node joins


def window(workload: Workload, result: RunResult) -> Window:
    """From the first arrival to the last finish."""
    return Window(float(workload.jobs["arrival"][0]), float(result.outcome["finish"].max()))


def downtime(events: Records, within: Window) -> Downtime:
    """When nodes were down, cut to the window; nothing of no length.

    Failure of a node that is down does nothing, nor does repair of one that is up.
    """
    own = events[np.isin(events["kind"], (REPAIR, FAILURE)) & (events["time"] < within.last)]
    own = own[np.argsort(own["node"], kind="stable")]
    fails = own["kind"] == FAILURE
    is_first = np.diff(own["node"], prepend=-1) != 0
    was_down = np.roll(fails, 1) & ~is_first
    turns = fails != was_down
    own, fails = own[turns], fails[turns]
    times = np.maximum(own["time"], within.first)
    is_next = np.diff(own["node"], append=-1) == 0
    ends = np.where(is_next, np.roll(times, -1), within.last)
    kept = fails & (ends > times)
    return Downtime(
        own["node"][kept].astype(np.int64), times[kept], ends[kept], own["value"][kept] == 1
    )


def up_seconds(events: Records, nodes: Records, within: Window) -> Floats:
    """Seconds [N] of the window that each node was in service."""
    down = downtime(events, within)
    away = np.bincount(down.node, down.end - down.start, len(nodes))
    up: Floats = np.maximum(within.length - away, 0.0)
    return up
