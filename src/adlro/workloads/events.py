"""Cluster events (failures, repairs, speed changes), all drawn before the run.

Failures, and each change that the scenario lists, have their own random stream. Failures are drawn
in blocks of a fixed size, so that a longer run begins with the same failures.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.config.events import Drain, Failures, Throttling, Update, Wear
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.model import gpu
from adlro.model.cluster import Layout
from adlro.model.state import DRAIN, EVENT, FAILURE, REPAIR, SPEED, Floats, Mask, Records

_HOUR, _DAY = 3600.0, 86_400.0
_CYCLES = 32  # failures of each node drawn at a time
_SHORTEST = 1e-3  # seconds that a repair takes at least: it must come after its failure
_WEAR_STEPS = 10
_MOST_FAILURES = 5_000_000


class _Effect(NamedTuple):
    """One change of one GPU: a factor on its speed and a rise of its heat, each new at K times.

    Before the first time, the factor is 1 and the rise is 0.
    """

    gpu: int
    times: Floats  # [K] seconds, rising
    factors: Floats  # [K] factor on the speed from each time on
    heat: Floats  # [K] degrees added to the temperature from each time on


def _horizon(last: float) -> float:
    """Return the time in seconds until which failures are drawn; last = the last arrival."""
    return 2 * last + _DAY


def refuse_too_many(scenario: Scenario, layout: Layout, rate: float) -> None:
    """Raise ConfigError if the run would have more failures than can be simulated.

    rate: arrivals a second, from which the length of the run is computed.
    """
    failures = scenario.failures
    if failures is None:
        return
    nodes = sum(failures.touches(group.name) for group in layout.groups)
    cycle = (failures.mtbf_h + failures.repair_h) * _HOUR
    expected = nodes * _horizon(scenario.jobs / rate) / cycle
    if expected > _MOST_FAILURES:
        raise ConfigError(
            f"scenario {scenario.name}: failures: mtbf_h = {failures.mtbf_h:g} makes about "
            f"{expected:,.0f} failures in this run, more than {_MOST_FAILURES:,}; raise it"
        )


def _made(kind: int, times: Floats, **fields: object) -> Records:
    """Return EVENT records of one kind at these times.

    fields: values of other fields. node, gpu, type and model are -1 if not given, all others 0.
    """
    events = np.zeros(len(times), EVENT)
    for name in ("node", "gpu", "type", "model"):
        events[name] = -1
    events["kind"], events["time"] = kind, times
    for name, value in fields.items():
        events[name] = value
    return events


class _Service(NamedTuple):
    """Times in seconds when each of N nodes joins and leaves, and which nodes join late."""

    first: float  # the first arrival
    joins: Floats  # [N]; `first` for those that are there from the beginning
    leaves: Floats  # [N]; infinite for those that stay
    is_late: Mask  # [N] nodes that join after the first arrival


def _service(layout: Layout, first: float) -> _Service:
    joins = np.array([group.joins_h for group in layout.groups])
    leaves = np.array([g.leaves_h if g.leaves_h is not None else np.inf for g in layout.groups])
    return _Service(first, first + joins * _HOUR, first + leaves * _HOUR, joins > 0)


def _breakdowns(
    failures: Failures, born: Floats, until: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw the times of failure and of repair, each [A, C], of A nodes.

    C is the number of failures drawn for each node; they reach at least to `until`.

    Args:
        failures: mean times between failures and of repairs.
        born: [A] time when each node first comes up.
        until: [A] time until which failures are needed.
        rng: random stream that is used for failures only.
    """
    means = np.array([failures.mtbf_h, failures.repair_h]) * _HOUR
    least = np.array([0.0, _SHORTEST])
    clock, parts = born, [np.empty((len(born), 0, 2))]
    while (clock < until).any():
        steps = np.maximum(rng.exponential(size=(len(born), _CYCLES, 2)) * means, least)
        times = clock[:, None] + np.cumsum(steps.reshape(len(born), -1), axis=1)
        parts.append(times.reshape(steps.shape))
        clock = times[:, -1]
    times = np.concatenate(parts, axis=1)
    return times[:, :, 0], times[:, :, 1]


def _outages(
    scenario: Scenario, layout: Layout, service: _Service, until: float, rng: np.random.Generator
) -> list[Records]:
    """Draw the failures and repairs of all nodes, as EVENT records.

    They alternate on each node. A node that joins later has a planned failure at time 0 and is
    repaired when it joins; the last failure of a node that leaves is never repaired.
    """
    late = np.flatnonzero(service.is_late)
    parts = [
        _made(FAILURE, np.zeros(len(late)), node=late, value=1.0),
        _made(REPAIR, service.joins[late], node=late),
    ]
    is_down = np.zeros(len(layout.nodes), np.bool_)  # at the time when it leaves
    if scenario.failures is not None:
        touched = [scenario.failures.touches(group.name) for group in layout.groups]
        nodes, leaves = np.flatnonzero(touched), service.leaves[touched][:, None]
        ends = np.minimum(leaves, until)
        fail, repair = _breakdowns(scenario.failures, service.joins[nodes], ends[:, 0], rng)
        failed = fail < ends
        repaired = failed & (repair < leaves)
        where = np.broadcast_to(nodes[:, None], failed.shape)
        parts.append(_made(FAILURE, fail[failed], node=where[failed]))
        parts.append(_made(REPAIR, repair[repaired], node=where[repaired]))
        is_down[nodes] = (failed & ~repaired).any(axis=1)
    gone = np.flatnonzero(np.isfinite(service.leaves) & ~is_down)
    parts.append(_made(FAILURE, service.leaves[gone], node=gone, value=1.0))
    return parts


def _nodes_meant(change: Wear | Throttling | Drain, layout: Layout) -> NDArray[np.intp]:
    """Return the indices of the nodes that a change may apply to."""
    named = zip(layout.node_names, layout.groups, strict=True)
    return np.flatnonzero([change.node in (None, name, group.name) for name, group in named])


def _gpus_meant(change: Wear | Throttling, layout: Layout) -> NDArray[np.intp]:
    """Return the indices of the GPUs that a change may apply to, by its node and place on it."""
    node = layout.gpus["node"]
    place = np.arange(len(node)) - layout.nodes["first_gpu"][node]
    is_there = np.isin(node, _nodes_meant(change, layout))
    return np.flatnonzero(is_there & ((change.gpu is None) | (place == change.gpu)))


def _effects(
    change: Wear | Throttling, layout: Layout, first: float, rng: np.random.Generator
) -> list[_Effect]:
    begin, end = first + change.from_h * _HOUR, first + change.to_h * _HOUR
    if isinstance(change, Wear):
        done = np.arange(1, _WEAR_STEPS + 1) / _WEAR_STEPS
        times, factors = begin + (end - begin) * done, 1 + (change.speed - 1) * done
        heat = np.zeros(_WEAR_STEPS)
    else:
        times, factors = np.array([begin, end]), np.array([change.speed, 1.0])
        heat = np.array([change.heat_c, 0.0])
    drawn = rng.choice(_gpus_meant(change, layout), size=change.count, replace=False)
    return [_Effect(int(g), times, factors, heat) for g in drawn]


def _together(effects: list[_Effect]) -> Records:
    """Return the SPEED events of one GPU that result from all of its effects.

    At each time, the speed is the product of the factors and the heat the sum of the rises.
    """
    times = np.unique(np.concatenate([effect.times for effect in effects]))
    speed, heat = np.ones(len(times)), np.zeros(len(times))
    for effect in effects:
        step = np.searchsorted(effect.times, times, side="right")
        speed *= np.concatenate(([1.0], effect.factors))[step]
        heat += np.concatenate(([0.0], effect.heat))[step]
    return _made(SPEED, times, value=speed, heat=heat, gpu=effects[0].gpu)


def _speeds(
    scenario: Scenario, layout: Layout, first: float, streams: list[np.random.Generator]
) -> list[Records]:
    types = [job_type.name for job_type in scenario.types]
    of_gpu: dict[int, list[_Effect]] = {}
    parts: list[Records] = []
    for change, rng in zip(scenario.changes, streams, strict=True):
        if isinstance(change, Drain):
            meant = _nodes_meant(change, layout)
            begin, end = first + change.from_h * _HOUR, first + change.to_h * _HOUR
            parts.append(_made(FAILURE, np.full(len(meant), begin), node=meant, value=DRAIN))
            parts.append(_made(REPAIR, np.full(len(meant), end), node=meant))
            continue
        if isinstance(change, Update):
            at = np.array([first + change.at_h * _HOUR])
            cell = (
                types.index(change.type),
                layout.models.index(gpu.find(change.model, layout.models)),
            )
            parts.append(_made(SPEED, at, value=change.speed, type=cell[0], model=cell[1]))
            continue
        for effect in _effects(change, layout, first, rng):
            of_gpu.setdefault(effect.gpu, []).append(effect)
    return parts + [_together(effects) for effects in of_gpu.values()]


def is_quiet(scenario: Scenario) -> bool:
    """Return whether a scenario has no cluster events, so that none need to be drawn."""
    stays = all(g.joins_h == 0 and g.leaves_h is None for g in scenario.cluster.nodes)
    return scenario.failures is None and not scenario.changes and stays


def draw(scenario: Scenario, layout: Layout, arrivals: Floats, stream: tuple[int, int]) -> Records:
    """Draw all cluster events as EVENT records [E], sorted by time, then by kind.

    Args:
        scenario: with its failures and changes.
        layout: the empty cluster.
        arrivals: [J] seconds, sorted. The scenario's hours count from the first arrival; failures
            are drawn until twice the time of the last arrival plus a day.
        stream: seed and number of the random stream that is used for events only.
    """
    if is_quiet(scenario):
        return np.zeros(0, EVENT)
    first, last = float(arrivals[0]), float(arrivals[-1])
    streams = np.random.default_rng(stream).spawn(1 + len(scenario.changes))
    parts = _outages(scenario, layout, _service(layout, first), _horizon(last), streams[0])
    parts += _speeds(scenario, layout, first, streams[1:])
    return merged(*parts)


def merged(*parts: Records) -> Records:
    """Return all events of the parts, sorted by time, then by kind; ties keep their order."""
    events = np.concatenate(parts)
    return events[np.lexsort((events["kind"], events["time"]))]
