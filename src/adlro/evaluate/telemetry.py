"""Computes the sensor readings of every GPU during a simulated run, as a time series in CSV.

They are derived after the run from its spans (which job ran on which GPU, and when) and events, by
the same rules as `read` in sim/terminate_kernel.py. Dimensions: S sample times, G GPUs.
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


class SensorSamples(NamedTuple):
    """Readings of G GPUs at S times, and R pairs of a job and the GPU that it runs on then.

    Each sample shows the state after all events of its time.
    """

    readings: Records  # [S, G] READING; NaN while the node is down
    cell: Indices  # [R] index of time and GPU in the flattened [S, G], ascending
    job: Indices  # [R] the job on that GPU at that time


class _SpeedChanges(NamedTuple):
    """K intervals, each with the speed and the additional heat of one GPU during it."""

    gpu: Indices  # [K]
    start: Floats  # [K]
    end: Floats  # [K]
    speed: Floats  # [K]
    heat: Floats  # [K] additional degrees


def _moments_within(times: Floats, start: Floats, end: Floats) -> tuple[Indices, Indices]:
    """Return all R pairs of an interval and a time with start <= time < end, as indices.

    `times` are ascending; `start` and `end` have an entry for each interval.
    """
    first = np.searchsorted(times, start)
    count = np.maximum(np.searchsorted(times, end) - first, 0)
    interval = np.repeat(np.arange(len(start)), count)
    within = np.arange(len(interval)) - np.repeat(np.cumsum(count) - count, count)
    return interval, within + first[interval]


def _speed_changes(events: Records) -> _SpeedChanges:
    """Return each change of a GPU's speed as an interval that ends at its next change."""
    own = events[(events["kind"] == SPEED) & (events["gpu"] >= 0)]
    own = own[np.argsort(own["gpu"], kind="stable")]
    is_next = np.diff(own["gpu"], append=-1) == 0
    end = np.where(is_next, np.roll(own["time"], -1), np.inf)
    return _SpeedChanges(own["gpu"].astype(np.int64), own["time"], end, own["value"], own["heat"])


def sample_sensors(
    times: Floats, setting: Setting, workload: Workload, result: RunResult
) -> SensorSamples:
    """Return the readings of all GPUs at ascending times from the first arrival to the last finish.

    Args:
        times: [S] in seconds.
        setting: the prepared scenario, with the cluster.
        workload: jobs and events of the run; its scenario must have telemetry.
        result: a run with `keep_spans`.
    """
    layout, jobs, shape = setting.layout, workload.jobs, (len(times), len(setting.layout.gpus))
    model = layout.pools["model"][layout.nodes["pool"][layout.gpus["node"]]]
    speed, heat = np.ones(shape), np.zeros(shape)
    changes = _speed_changes(workload.events)
    change, moment = _moments_within(times, changes.start, changes.end)
    speed[moment, changes.gpu[change]] = changes.speed[change]
    heat[moment, changes.gpu[change]] = changes.heat[change]

    spans = result.spans[(result.spans["end"] > times[0]) & (result.spans["start"] <= times[-1])]
    run, moment = _moments_within(times, spans["start"], spans["end"])
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
    outage, moment = _moments_within(times, down.start, down.end)
    is_down = np.zeros((shape[0], len(layout.nodes)), np.bool_)
    is_down[moment, down.node[outage]] = True
    shown[is_down[:, layout.gpus["node"]]] = (math.nan,) * 4
    order = np.lexsort((job, cell))
    return SensorSamples(shown, cell[order], job[order].astype(np.int64))


def _types(samples: SensorSamples, workload: Workload, names: list[str]) -> list[str]:
    """Return the job types on each GPU at each time [S * G], joined by ; in order of job id."""
    types = workload.jobs["type"][samples.job]
    texts = [""] * samples.readings.size
    for cell, name in zip(samples.cell.tolist(), np.array(names, object)[types], strict=True):
        texts[cell] = f"{texts[cell]};{name}" if texts[cell] else name
    return texts


def _numbers(values: Floats) -> list[str]:
    return ["" if x != x else f"{x:.12g}" for x in values.ravel().tolist()]


def count_rows(setting: Setting, length_s: float, every_s: float) -> int:
    """Return the number of rows of the time series of a run of `length_s` seconds.

    Raises:
        OutputError: more than _MOST_ROWS rows.
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
    """Return the number of rows and the CSV text of a run's time series.

    It has a sample every `every_s` seconds; the text is generated part by part.

    Raises:
        OutputError: more than _MOST_ROWS rows.
    """
    rows = count_rows(setting, window(workload, result).length, every_s)
    times = every_s * np.arange(rows // len(setting.layout.gpus), dtype=np.float64)
    return rows, _parts(setting, workload, result, times)


def _parts(setting: Setting, workload: Workload, result: RunResult, times: Floats) -> Iterator[str]:
    """Yield the CSV header, then rows sampled at `times` [S] in seconds after the first arrival."""
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
        samples = sample_sensors(first + part, setting, workload, result)
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(
            zip(
                _numbers(np.repeat(part, len(node))),
                *(names * len(part) for names in (node_names, places, models)),
                *(_numbers(samples.readings[name]) for name in READING.names or ()),
                _types(samples, workload, types),
                strict=True,
            )
        )
        yield buffer.getvalue()
