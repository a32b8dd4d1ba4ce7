"""What the sensors of every GPU would have shown during a run: a time series for a CSV file.

Put together after the run from its log of spans and its events, by the rules of `read` in
sim/terminate_kernel.py. Dimensions: S sample times, G GPUs.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.errors import OutputError
from adlro.evaluate.downtime import downtime, window
from adlro.model.state import READING, SPEED, WHOLE, Floats, Records
from adlro.sim.simulator import RunResult
from adlro.workloads.setting import Setting
from adlro.workloads.workload import Workload

Indices = NDArray[np.int64]

COLUMNS = (
    "time_s", "node", "gpu", "model", "utilisation", "memory_bandwidth_gb_s", "temperature_c",
    "power_w", "job_types",
)  # fmt: skip
_MOST_ROWS = 100_000_000
_ROWS_AT_ONCE = 100_000


class Sample(NamedTuple):
    """The cluster at S moments, after all that happened in them."""

    readings: Records  # [S, G] READING; NaN while down
    cell: Indices  # [R] place in the flattened [S, G] of each job on each GPU, rising
    job: Indices  # [R]


class _Wear(NamedTuple):
    """Speed and heat of GPUs from time to time; K of them."""

    gpu: Indices  # [K]
    start: Floats  # [K]
    end: Floats  # [K]
    speed: Floats  # [K]
    heat: Floats  # [K] degrees on top


def _cover(times: Floats, start: Floats, end: Floats) -> tuple[Indices, Indices]:
    """Which moments lie in which intervals (the end not included): interval [R], moment [R]."""
    first = np.searchsorted(times, start)
    count = np.maximum(np.searchsorted(times, end) - first, 0)
    interval = np.repeat(np.arange(len(start)), count)
    within = np.arange(len(interval)) - np.repeat(np.cumsum(count) - count, count)
    return interval, within + first[interval]


def _wear(events: Records) -> _Wear:
    """Each change of a GPU's speed, until the next one of the same GPU."""
    own = events[(events["kind"] == SPEED) & (events["gpu"] >= 0)]
    own = own[np.argsort(own["gpu"], kind="stable")]
    is_next = np.diff(own["gpu"], append=-1) == 0
    end = np.where(is_next, np.roll(own["time"], -1), np.inf)
    return _Wear(own["gpu"].astype(np.int64), own["time"], end, own["value"], own["heat"])


def sample(times: Floats, setting: Setting, workload: Workload, result: RunResult) -> Sample:
    """What all GPUs show at given times, rising, between the first arrival and the last finish.

    Args:
        times: [S].
        setting: the cluster.
        workload: with readings.
        result: a run with its spans kept.
    """
    layout, jobs, shape = setting.layout, workload.jobs, (len(times), len(setting.layout.gpus))
    model = layout.pools["model"][layout.nodes["pool"][layout.gpus["node"]]]
    speed, heat = np.ones(shape), np.zeros(shape)
    wear = _wear(workload.events)
    change, moment = _cover(times, wear.start, wear.end)
    speed[moment, wear.gpu[change]] = wear.speed[change]
    heat[moment, wear.gpu[change]] = wear.heat[change]

    spans = result.spans[(result.spans["end"] > times[0]) & (result.spans["start"] <= times[-1])]
    run, moment = _cover(times, spans["start"], spans["end"])
    job, gpu = spans["job"][run], spans["gpu"][run]
    cell = moment * shape[1] + gpu
    shown = np.empty(shape, READING)
    for name in READING.names or ():
        added = workload.readings[name][jobs["type"][job], model[gpu]] * jobs["share"][job] / WHOLE
        load = np.bincount(cell, added, shape[0] * shape[1]).reshape(shape)
        idle = workload.readings[name][-1, model]
        shown[name] = idle + (load if name == "utilisation" else load * speed)
    shown["temperature"] += heat

    down = downtime(workload.events, window(workload, result))
    outage, moment = _cover(times, down.start, down.end)
    is_down = np.zeros((shape[0], len(layout.nodes)), np.bool_)
    is_down[moment, down.node[outage]] = True
    shown[is_down[:, layout.gpus["node"]]] = (math.nan,) * 4
    order = np.lexsort((job, cell))
    return Sample(shown, cell[order], job[order].astype(np.int64))


def _types(taken: Sample, workload: Workload, names: list[str]) -> list[str]:
    """The types of the jobs on each GPU at each moment [S * G], by job id, with ; between."""
    types = workload.jobs["type"][taken.job]
    texts = [""] * taken.readings.size
    for cell, name in zip(taken.cell.tolist(), np.array(names, object)[types], strict=True):
        texts[cell] = f"{texts[cell]};{name}" if texts[cell] else name
    return texts


def _numbers(values: Floats) -> list[str]:
    return ["" if x != x else f"{x:.12g}" for x in values.ravel().tolist()]


def count_rows(setting: Setting, length_s: float, every_s: float) -> int:
    """Rows of the time series of a run that lasts so long.

    Raises:
        OutputError: there would be more rows than anyone can use.
    """
    rows = (math.floor(length_s / every_s) + 1) * len(setting.layout.gpus)
    if rows > _MOST_ROWS:
        raise OutputError(
            f"a sample every {every_s:g} s makes {rows:.3g} rows of telemetry or more, and "
            f"{_MOST_ROWS:.3g} is the limit; take fewer samples (--telemetry-every)"
        )
    return rows


def series(
    setting: Setting, workload: Workload, result: RunResult, every_s: float
) -> tuple[int, Iterator[str]]:
    """The number of rows of the time series, and its text as CSV, part by part.

    Raises:
        OutputError: there would be more rows than anyone can use.
    """
    rows = count_rows(setting, window(workload, result).length, every_s)
    times = every_s * np.arange(rows // len(setting.layout.gpus), dtype=np.float64)
    return rows, _parts(setting, workload, result, times)


def _parts(setting: Setting, workload: Workload, result: RunResult, times: Floats) -> Iterator[str]:
    """CSV text with samples at some times after the first arrival."""
    layout, first = setting.layout, float(workload.jobs["arrival"][0])
    node = layout.gpus["node"]
    node_names = [layout.node_names[n] for n in node]
    places = (np.arange(len(node)) - layout.nodes["first_gpu"][node]).tolist()
    model = layout.pools["model"][layout.nodes["pool"][node]]
    models = [layout.models[m].name for m in model]
    types = [job_type.name for job_type in setting.scenario.types]
    step = max(_ROWS_AT_ONCE // len(node), 1)
    yield ",".join(COLUMNS) + "\n"
    for begin in range(0, len(times), step):
        part = times[begin : begin + step]
        taken = sample(first + part, setting, workload, result)
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(
            zip(
                _numbers(np.repeat(part, len(node))),
                *(names * len(part) for names in (node_names, places, models)),
                *(_numbers(taken.readings[name]) for name in READING.names or ()),
                _types(taken, workload, types),
                strict=True,
            )
        )
        yield buffer.getvalue()
