"""How one run went over time: GPUs in use and jobs waiting, as means over short stretches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.evaluate.downtime import downtime, window
from adlro.evaluate.report.runs import retrace
from adlro.model.state import WHOLE, Floats
from adlro.sim.simulator import RunResult
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

_NOTHING_UP = 1e-9  # GPUs: less than this is what adding and taking away leaves behind


class Timeline(NamedTuple):
    """A run in B stretches of equal length; M models."""

    hours: Floats  # [B] middle of each, since the first arrival
    use: Floats  # [M, B] busy share of the GPUs that were up; NaN while none was
    use_of_all: Floats  # [B] the same of the whole cluster
    queue: Floats  # [B] jobs waiting, those between two runs included


def mean_level(edges: Floats, start: Floats, end: Floats, weight: Floats) -> Floats:
    """Mean over each stretch between edges [B + 1] of the weights of the intervals under way.

    Exact: the integral of a sum of steps is a line between one step and the next.
    """
    if len(start) == 0:
        return np.zeros(len(edges) - 1)
    times = np.concatenate((start, end))
    order = np.argsort(times, kind="stable")
    level = np.cumsum(np.concatenate((weight, -weight))[order])
    times = times[order]
    integral = np.concatenate(([0.0], np.cumsum(level[:-1] * np.diff(times))))
    mean: Floats = np.diff(np.interp(edges, times, integral)) / np.diff(edges)
    return mean


def follow(
    setting: Setting, workload: Workload, result: RunResult, stretches: int = 120
) -> Timeline:
    """The course of a run whose spans were kept."""
    layout, spans, within = setting.layout, result.spans, window(workload, result)
    edges = np.linspace(within.first, within.last, stretches + 1)
    node_model = layout.pools["model"][layout.nodes["pool"]]
    gpu_model = node_model[layout.gpus["node"]]
    down = downtime(workload.events, within)
    busy, up = (np.zeros((len(layout.models), stretches)) for _ in range(2))
    for m in range(len(layout.models)):
        own, away = gpu_model[spans["gpu"]] == m, node_model[down.node] == m
        ran = spans[own]
        busy[m] = mean_level(edges, ran["start"], ran["end"], ran["share"] / WHOLE)
        gone = layout.nodes["gpus"][down.node[away]].astype(np.float64)
        up[m] = (gpu_model == m).sum()
        up[m] -= mean_level(edges, down.start[away], down.end[away], gone)
    runs = retrace(spans, workload.jobs)
    each = 1 / workload.jobs["gpus"][spans["job"]]  # the log has a row for each GPU of a run
    queue = mean_level(edges, spans["start"] - runs.waited, spans["start"], each)
    middle = (edges[:-1] + edges[1:]) / 2 - within.first
    use, use_of_all = _share(busy, up), _share(busy.sum(axis=0), up.sum(axis=0))
    return Timeline(middle / 3600, use, use_of_all, np.maximum(queue, 0.0))


def _share(busy: Floats, up: Floats) -> Floats:
    share: Floats = np.full(busy.shape, np.nan)
    np.divide(busy, up, out=share, where=up > _NOTHING_UP)
    return np.clip(share, 0, 1, out=share)
