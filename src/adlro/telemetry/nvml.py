"""Reads this host's NVIDIA GPUs with NVIDIA's library (extra `nvidia`: nvidia-ml-py)."""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable
from typing import Any

from adlro.errors import MissingExtraError, TelemetryError
from adlro.telemetry.local import LocalSampleBuilder
from adlro.telemetry.sample import Sample

_SCALE = {  # percent, bytes, mW
    "utilisation": 0.01,
    "bandwidth": 0.01,
    "memory_used": 2**-20,
    "memory_total": 2**-20,
    "power": 1e-3,
}


def load() -> Any:  # noqa: ANN401  a module without types
    """Import NVIDIA's library.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return importlib.import_module("pynvml")
    except ImportError as exc:
        raise MissingExtraError("telemetry check --nvml", "nvidia") from exc


def _text(name: str | bytes) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def _device(nvml: Any, handle: Any, get: Callable[..., float]) -> dict[str, float]:  # noqa: ANN401  no types
    uncorrected, since_boot = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
    sensor = nvml.NVML_TEMPERATURE_GPU
    return {
        "utilisation": get(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        "bandwidth": get(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).memory),
        "memory_used": get(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used),
        "memory_total": get(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total),
        "temperature": get(lambda: nvml.nvmlDeviceGetTemperature(handle, sensor)),
        "power": get(lambda: nvml.nvmlDeviceGetPowerUsage(handle)),
        "errors": get(lambda: nvml.nvmlDeviceGetTotalEccErrors(handle, uncorrected, since_boot)),
    }


def read(nvml: Any) -> Sample:  # noqa: ANN401  no types
    """Return a sample of all GPUs that the driver lists; channels that a GPU lacks are missing.

    Raises:
        TelemetryError: the driver is missing, does not answer or lists no GPU.
    """

    def get(ask: Callable[[], float]) -> float:
        try:
            return float(ask())
        except nvml.NVMLError:
            return math.nan

    local = LocalSampleBuilder()
    try:
        nvml.nvmlInit()
        try:
            count = nvml.nvmlDeviceGetCount()
            for index in range(count):
                try:
                    handle = nvml.nvmlDeviceGetHandleByIndex(index)
                    name = _text(nvml.nvmlDeviceGetName(handle))
                except nvml.NVMLError as exc:  # fallen off the bus; the others are still there
                    local.lose(index, str(exc))
                else:
                    local.add(index, name, _device(nvml, handle, get), _SCALE)
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as exc:
        raise TelemetryError(f"NVML: {exc}; is NVIDIA's driver loaded on this host?") from exc
    if count == 0:
        raise TelemetryError("NVML: NVIDIA's driver shows no GPU on this host")
    return local.sample(time.time())
