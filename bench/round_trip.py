"""Cost of one round of telemetry: parsing the responses of a Prometheus server."""

from __future__ import annotations

import json
from typing import Any

from adlro.telemetry.gather import SampleBuilder
from adlro.telemetry.prometheus import parse
from adlro.telemetry.sample import Sample
from bench.clock import best_times
from bench.figure import Bar, Figure, figure

GPUS = 1024
METRICS = {  # metric -> typical value
    "DCGM_FI_DEV_GPU_UTIL": 84.0,
    "DCGM_FI_PROF_DRAM_ACTIVE": 0.506252,
    "DCGM_FI_DEV_GPU_TEMP": 68.0,
    "DCGM_FI_DEV_POWER_USAGE": 218.751,
}
_NODE_GPUS = 8
_NOW = 1794768234.873
_BAR = Bar("<", 50)


def _body(series: list[dict[str, Any]]) -> bytes:
    data = {"resultType": "vector", "result": series}
    return json.dumps({"status": "success", "data": data}, separators=(",", ":")).encode()


def _series(labels: dict[str, str], value: float) -> dict[str, Any]:
    return {"metric": labels, "value": [_NOW, f"{value:.15g}"]}


def _labels(gpu: int) -> dict[str, str]:
    """Labels as dcgm-exporter and Prometheus write them."""
    host, place = divmod(gpu, _NODE_GPUS)
    return {
        "DCGM_FI_DRIVER_VERSION": "550.90.07",
        "Hostname": f"node{host:04d}",
        "UUID": f"GPU-00000000-0000-0000-0000-{gpu:012d}",
        "device": f"nvidia{place}",
        "gpu": str(place),
        "instance": f"10.0.{host // 256}.{host % 256}:9400",
        "job": "dcgm-exporter",
        "modelName": "NVIDIA A100-SXM4-80GB",
        "pci_bus_id": f"00000000:{place:02d}:00.0",
    }


def answers(gpus: int) -> tuple[bytes, bytes]:
    """Return the two responses for a number of GPUs: readings, and their timestamps."""
    values = [
        _series({"__name__": name} | _labels(gpu), usual)
        for name, usual in METRICS.items()
        for gpu in range(gpus)
    ]
    identity = ("Hostname", "gpu", "instance")
    times = [_series({key: _labels(gpu)[key] for key in identity}, _NOW - 3) for gpu in range(gpus)]
    return _body(values), _body(times)


def read(values: bytes, times: bytes) -> Sample:
    """Parse two responses into a sample."""
    gather = SampleBuilder()
    parse("bench", values, lambda labels, value: gather.take(labels["__name__"], labels, value))
    parse("bench", times, gather.date)
    return gather.sample(_NOW)


def parsing(gpus: int, repeats: int) -> list[Figure]:
    """CPU time from the bytes of both responses to a sample."""
    values, times = answers(gpus)
    (least,) = best_times([lambda: lambda: read(values, times)], repeats)
    name = f"telemetry: a round of {gpus:,} GPUs x {len(METRICS)}"
    return [figure(name, 1e3 * least, "ms", _BAR)]
