"""Downtime of the nodes during a run, derived from its events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.model.state import CRASH, DRAIN, FAILURE, REPAIR, Floats, Mask, Records
from adlro.sim.simulator import RunResult
from adlro.workloads.workload import Workload


class Window(NamedTuple):
    """The period of a run from its first arrival to its last finish, in seconds."""

    first: float  # first arrival
    last: float  # last finish

    @property
    def length(self) -> float:
        """Length of the period in seconds: the makespan of the run."""
        return self.last - self.first


class Downtime(NamedTuple):
    """D intervals during which a node was down, ordered by node, then time."""

    node: NDArray[np.int64]  # [D]
    start: Floats  # [D]
    end: Floats  # [D]
    planned: Mask  # [D] False = failure; True = planned shutdown, or before the node joins


def window(workload: Workload, result: RunResult) -> Window:
    """Return the period from the first arrival to the last finish."""
    return Window(float(workload.jobs["arrival"][0]), float(result.outcome["finish"].max()))


def downtime(events: Records, within: Window) -> Downtime:
    """Return the intervals in which nodes were down, clipped to the window, without empty ones.

    The failure of a node that is down and the repair of one that is up have no effect. A draining
    node counts as up: its jobs go on.
    """
    is_drain = (events["kind"] == FAILURE) & (events["value"] == DRAIN)
    own = events[np.isin(events["kind"], (REPAIR, FAILURE)) & ~is_drain]
    own = own[own["time"] < within.last]
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
        own["node"][kept].astype(np.int64), times[kept], ends[kept], own["value"][kept] != CRASH
    )


def up_seconds(events: Records, nodes: Records, within: Window) -> Floats:
    """Return the seconds [N] of the window during which each node was up."""
    down = downtime(events, within)
    away = np.bincount(down.node, down.end - down.start, len(nodes))
    up: Floats = np.maximum(within.length - away, 0.0)
    return up
