"""Reads this host's AMD GPUs with AMD's library amdsmi if it is installed, else from sysfs."""

from __future__ import annotations

import importlib
import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adlro.errors import TelemetryError
from adlro.telemetry.local import LocalSampleBuilder
from adlro.telemetry.sample import Sample

SYSFS = Path("/sys")
_VENDOR = "0x1002"
_SYSFS_SCALE = {  # percent, bytes, thousandths of a degree, millionths of a watt
    "utilisation": 0.01,
    "bandwidth": 0.01,
    "memory_used": 2**-20,
    "memory_total": 2**-20,
    "temperature": 1e-3,
    "power": 1e-6,
}
_AMDSMI_SCALE = {"utilisation": 0.01, "bandwidth": 0.01}
_CARD = re.compile("card([0-9]+)")
_UNCORRECTED = re.compile(r"^ue: *([0-9]{1,15})$", re.MULTILINE)
_MOST_FILE = 4096  # bytes that are read of a file


def _text(path: Path) -> str:
    """Return the content of a sysfs file; "" if it cannot be read, as drivers omit files."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_FILE).decode(errors="replace").strip()
    except OSError:
        return ""


def _number(*paths: Path) -> float:
    """Return the number in the first of the files that holds one; NaN if none does."""
    for path in paths:
        text = _text(path)
        if re.fullmatch("-?[0-9]{1,20}", text):
            return float(text)
    return math.nan


def _temperatures(sensors: list[Path]) -> list[Path]:
    """Return the files with temperatures: the edge sensor's first, then the junction's.

    Where no temperature has a label, the file is temp1_input.
    """
    found = []
    for sensor in sensors:
        labels = {_text(path): path for path in sorted(sensor.glob("temp*_label"))}
        named = [labels[name] for name in ("edge", "junction") if name in labels]
        found += [path.with_name(path.name.replace("_label", "_input")) for path in named]
        if not labels:
            found.append(sensor / "temp1_input")
    return found


def _errors(device: Path) -> float:
    """Sum the uncorrectable errors of all blocks of a GPU that count them; NaN if none does."""
    counts = [_UNCORRECTED.search(_text(path)) for path in device.glob("ras/*_err_count")]
    found = [int(match[1]) for match in counts if match]
    return float(sum(found)) if found else math.nan


def _device(device: Path) -> dict[str, float]:
    sensors = sorted(device.glob("hwmon/hwmon*"))
    power = [sensor / name for sensor in sensors for name in ("power1_average", "power1_input")]
    return {
        "utilisation": _number(device / "gpu_busy_percent"),
        "bandwidth": _number(device / "mem_busy_percent"),
        "memory_used": _number(device / "mem_info_vram_used"),
        "memory_total": _number(device / "mem_info_vram_total"),
        "temperature": _number(*_temperatures(sensors)),
        "power": _number(*power),
        "errors": _errors(device),
    }


def read_sysfs(root: Path = SYSFS) -> Sample:
    """Return a sample of all AMD GPUs below a folder like /sys, numbered in the order of the cards.

    Raises:
        TelemetryError: there is no AMD GPU.
    """
    cards = [(_CARD.fullmatch(path.name), path) for path in (root / "class/drm").glob("card*")]
    numbered = sorted((int(match[1]), path / "device") for match, path in cards if match)
    local, index = LocalSampleBuilder(), 0
    for _, device in numbered:
        if _text(device / "vendor") != _VENDOR:
            continue
        name = _text(device / "product_name") or f"AMD device {_text(device / 'device')}"
        local.add(index, name, _device(device), _SYSFS_SCALE)
        index += 1
    if index == 0:
        raise TelemetryError(f"{root}/class/drm: no GPU of AMD; is the amdgpu driver loaded?")
    return local.sample(time.time())


def load() -> Any:  # noqa: ANN401  a module without types
    """Import AMD's library; return None where it is not installed or does not load."""
    try:
        return importlib.import_module("amdsmi")
    except (ImportError, KeyError, OSError):  # without its driver it fails with KeyError
        return None


def _amdsmi_device(smi: Any, handle: Any) -> dict[str, float]:  # noqa: ANN401  no types
    """Read all channels of a GPU; NaN where amdsmi raises or returns "N/A"."""

    def get(call: Callable[..., Any], *names: str) -> float:
        try:
            fields = call(handle)
        except smi.AmdSmiException:
            return math.nan
        numbers = (fields.get(name) for name in names)
        return next((float(n) for n in numbers if isinstance(n, int | float)), math.nan)

    def degrees(handle: Any) -> dict[str, Any]:  # noqa: ANN401  no types
        kinds, now = smi.AmdSmiTemperatureType, smi.AmdSmiTemperatureMetric.CURRENT
        try:
            return {"degrees": smi.amdsmi_get_temp_metric(handle, kinds.EDGE, now)}
        except smi.AmdSmiException:
            return {"degrees": smi.amdsmi_get_temp_metric(handle, kinds.JUNCTION, now)}

    power = ("average_socket_power", "current_socket_power")
    return {
        "utilisation": get(smi.amdsmi_get_gpu_activity, "gfx_activity"),
        "bandwidth": get(smi.amdsmi_get_gpu_activity, "umc_activity"),
        "memory_used": get(smi.amdsmi_get_gpu_vram_usage, "vram_used"),
        "memory_total": get(smi.amdsmi_get_gpu_vram_usage, "vram_total"),
        "temperature": get(degrees, "degrees"),
        "power": get(smi.amdsmi_get_power_info, *power),
        "errors": get(smi.amdsmi_get_gpu_total_ecc_count, "uncorrectable_count"),
    }


def read_amdsmi(smi: Any) -> Sample:  # noqa: ANN401  no types
    """Return a sample of all GPUs that amdsmi lists; channels that a GPU lacks are missing.

    Raises:
        TelemetryError: amdsmi does not answer, or lists no GPU.
    """
    local = LocalSampleBuilder()
    try:
        smi.amdsmi_init()
        try:
            handles = smi.amdsmi_get_processor_handles()
            for index, handle in enumerate(handles):
                try:
                    name = str(smi.amdsmi_get_gpu_asic_info(handle).get("market_name", ""))
                except smi.AmdSmiException as exc:
                    local.lose(index, str(exc))
                else:
                    local.add(index, name, _amdsmi_device(smi, handle), _AMDSMI_SCALE)
        finally:
            smi.amdsmi_shut_down()
    except smi.AmdSmiException as exc:
        raise TelemetryError(f"amdsmi: {exc}; is the amdgpu driver loaded?") from exc
    if not handles:
        raise TelemetryError("amdsmi: no GPU of AMD; is the amdgpu driver loaded?")
    return local.sample(time.time())


def read() -> Sample:
    """Return a sample of all AMD GPUs of this host.

    Raises:
        TelemetryError: there is no AMD GPU, or amdsmi does not answer.
    """
    smi = load()
    return read_sysfs() if smi is None else read_amdsmi(smi)
