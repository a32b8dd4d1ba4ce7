"""Random failures, drains, repairs, speed changes and CPU-only jobs for random cases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adlro.model.state import CORES, DRAIN, EVENT, FAILURE, REPAIR, SPEED, Floats, Mask, Records

Row = tuple[float | int, ...]  # an EVENT
LAST = 3.0  # seconds after the last event at which nodes that are still down are repaired


def draw_events(
    rng: np.random.Generator,
    arrivals: Floats,
    until: float,
    sizes: tuple[int, int],
    cells: tuple[int, int],
    may_stay_down: Callable[[Mask], bool],
    whole: bool,
) -> Records:
    """Random events [E], sorted; no node that a job needs is down at the end.

    Args:
        rng: random generator.
        arrivals: [J] seconds.
        until: approximate time when the last job is done.
        sizes: number of nodes that may fail and of GPUs that may change speed, 0 = none.
        cells: number of job types and of GPU models.
        may_stay_down: whether all jobs could run without these nodes [N].
        whole: whether times are whole seconds.
    """
    nodes, gpus = sizes
    clock = Clock(rng, arrivals, until, whole)
    rows: list[Row] = []
    if nodes:
        for _ in range(rng.integers(1, 7)):
            rows += _outage(rng, clock, nodes)
    if gpus:
        rows += [_speed(rng, clock, gpus, cells, whole) for _ in range(rng.integers(1, 9))]
    events = _sorted(rows)
    down = _down_at_end(events, nodes)
    if down.any() and not may_stay_down(down):
        last = events["time"].max() + LAST
        rows += [_row(last, REPAIR, node=int(node)) for node in np.flatnonzero(down)]
    return _sorted(rows)


def add_drains_and_cores(
    events: Records, nodes: Records, arrivals: Floats, until: float, whole: bool
) -> Records:
    """The events, of which some failures become drains, and cores that CPU-only jobs hold.

    All cores are returned. The draws depend on the events alone, so that other draws stay.
    """
    rng = np.random.default_rng((5, len(events), len(nodes), len(arrivals), int(until)))
    fails = events["kind"] == FAILURE
    events["value"] = np.where(fails & (rng.random(len(events)) < 0.25), DRAIN, events["value"])
    if rng.random() < 0.6:
        return events
    clock = Clock(rng, arrivals, until, whole)
    rows = [tuple(row) for row in events.tolist()]
    for _ in range(rng.integers(1, 9)):
        n, begin = int(rng.integers(len(nodes))), clock.draw()
        end = begin + max(clock.round(float(rng.exponential(until / 8))), 1.0)
        cores = int(rng.integers(1, nodes["cores"][n] + 1))
        rows += [_row(begin, CORES, cores, node=n), _row(end, CORES, -cores, node=n)]
    return _sorted(rows)


class Clock:
    """Draws random times: any time, exactly at an arrival, or before the first arrival."""

    def __init__(
        self, rng: np.random.Generator, arrivals: Floats, until: float, whole: bool
    ) -> None:
        self.rng, self.arrivals, self.until, self.whole = rng, arrivals, until, whole

    def draw(self) -> float:
        """A random time."""
        roll, first = self.rng.random(), float(self.arrivals[0])
        if roll < 0.15:
            return float(self.rng.choice(self.arrivals))
        if roll < 0.25:
            return first
        low = 0.0 if roll < 0.32 else first
        high = first if roll < 0.32 else self.until
        return self.round(float(self.rng.uniform(low, high)))

    def round(self, time: float) -> float:
        """The time, rounded down to a whole second if times are whole seconds."""
        return float(np.floor(time)) if self.whole else time


def _outage(rng: np.random.Generator, clock: Clock, nodes: int) -> list[Row]:
    """Simultaneous failures of one or several nodes; most are repaired, some fail while down."""
    at = clock.draw()
    length = (clock.until - clock.arrivals[0]) * rng.choice([0, 0.05, 0.2, 0.5])
    back = at + clock.round(float(length * rng.random())) + rng.choice([0, 1, 1, 2])
    planned = float(rng.random() < 0.3)
    count = int(rng.integers(1, nodes + 1)) if rng.random() < 0.3 else 1
    rows = []
    for node in rng.choice(nodes, count, replace=False):
        rows.append(_row(at, FAILURE, planned, node=int(node)))
        if rng.random() < 0.9:
            rows.append(_row(back, REPAIR, node=int(node)))
        if rng.random() < 0.2:
            rows.append(_row(clock.round((at + back) / 2), FAILURE, node=int(node)))
        if rng.random() < 0.1:
            rows.append(_row(clock.draw(), REPAIR, node=int(node)))
    return rows


def _speed(
    rng: np.random.Generator, clock: Clock, gpus: int, cells: tuple[int, int], whole: bool
) -> Row:
    value = float(rng.choice([0.5, 1, 2]) if whole else rng.uniform(0.3, 2))
    if rng.random() < 0.5:
        return _row(clock.draw(), SPEED, value, gpu=int(rng.integers(gpus)))
    cell = (int(rng.integers(cells[0])), int(rng.integers(cells[1])))
    return _row(clock.draw(), SPEED, value, cell=cell)


def _row(
    time: float,
    kind: int,
    value: float = 0.0,
    node: int = -1,
    gpu: int = -1,
    cell: tuple[int, int] = (-1, -1),
) -> Row:
    """An EVENT row without heat."""
    return (time, value, 0.0, kind, node, gpu, *cell, 0)


def _sorted(rows: list[Row]) -> Records:
    """Events sorted by time, then by kind; stable."""
    events = np.array(rows, EVENT)
    return events[np.lexsort((events["kind"], events["time"]))]


def _down_at_end(events: Records, nodes: int) -> Mask:
    down = np.zeros(nodes, np.bool_)
    for event in events[events["kind"] != SPEED]:
        down[event["node"]] = event["kind"] == FAILURE
    return down
