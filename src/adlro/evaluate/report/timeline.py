"""Computes GPU use and queue length over the course of a run, as means over short intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adlro.evaluate.downtime import downtime, window
from adlro.evaluate.report.runs import run_details
from adlro.model.state import WHOLE, Floats
from adlro.sim.simulator import RunResult
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

_NOTHING_UP = 1e-9  # GPUs: smaller sums are rounding errors


class UsageTimeline(NamedTuple):
    """GPU use and queue length of a run in B intervals of equal length; M GPU models."""

    hours: Floats  # [B] midpoints, since the first arrival
    use: Floats  # [M, B] busy share of the GPUs that are up; NaN if none is
    use_of_all: Floats  # [B] the same for the whole cluster
    queue: Floats  # [B] jobs waiting, including those between two runs


def mean_level(edges: Floats, start: Floats, end: Floats, weight: Floats) -> Floats:
    """Return the mean total weight [B] of the intervals under way between consecutive edges.

    Interval i lasts from start[i] to end[i] and weighs weight[i]; edges [B + 1] are ascending. The
    result is exact, because the integral of a step function is piecewise linear.
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


def usage_timeline(
    setting: Setting, workload: Workload, result: RunResult, intervals: int = 120
) -> UsageTimeline:
    """Return GPU use and queue length over time of a run made with `keep_spans`."""
    layout, spans, within = setting.layout, result.spans, window(workload, result)
    edges = np.linspace(within.first, within.last, intervals + 1)
    node_model = layout.pools["model"][layout.nodes["pool"]]
    gpu_model = node_model[layout.gpus["node"]]
    down = downtime(workload.events, within)
    busy, up = (np.zeros((len(layout.models), intervals)) for _ in range(2))
    for m in range(len(layout.models)):
        own, away = gpu_model[spans["gpu"]] == m, node_model[down.node] == m
        ran = spans[own]
        busy[m] = mean_level(edges, ran["start"], ran["end"], ran["share"] / WHOLE)
        gone = layout.nodes["gpus"][down.node[away]].astype(np.float64)
        up[m] = (gpu_model == m).sum()
        up[m] -= mean_level(edges, down.start[away], down.end[away], gone)
    runs = run_details(spans, workload.jobs)
    each = 1 / workload.jobs["gpus"][spans["job"]]  # a run has one span per GPU
    queue = mean_level(edges, spans["start"] - runs.waited, spans["start"], each)
    middle = (edges[:-1] + edges[1:]) / 2 - within.first
    use, use_of_all = _share(busy, up), _share(busy.sum(axis=0), up.sum(axis=0))
    return UsageTimeline(middle / 3600, use, use_of_all, np.maximum(queue, 0.0))


def _share(busy: Floats, up: Floats) -> Floats:
    share: Floats = np.full(busy.shape, np.nan)
    np.divide(busy, up, out=share, where=up > _NOTHING_UP)
    return np.clip(share, 0, 1, out=share)
