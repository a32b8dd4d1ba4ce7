"""The exporters' vocabulary: metrics, their units, and the labels that identify a GPU.

Three exporters are known: NVIDIA's dcgm-exporter, ROCm's device-metrics-exporter (whose metrics
have a prefix that the operator chooses) and AMD's older amd_smi_exporter (docs/telemetry.md has the
sources).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from adlro.errors import TelemetryError
from adlro.telemetry.sample import WHOLE_GPU, is_name

PREFIX = "amd_"  # of ROCm's own example
MEMORY_FREE, MEMORY_RESERVED = "memory_free", "memory_reserved"  # plus memory_used: the total


class Metric(NamedTuple):
    """How a metric of an exporter is used: raw * scale, cut to `most`, is the channel's value."""

    channel: str  # of sample.CHANNELS, or a part of the memory
    scale: float = 1.0
    rank: int = 0  # of several metrics for one channel the lowest rank is used
    most: float = float("inf")


class Gpu(NamedTuple):
    """The GPU, or part of a GPU, that a reading belongs to."""

    host: str
    number: int
    part: int = WHOLE_GPU

    def __str__(self) -> str:
        """The GPU as host/number, followed by the part if the GPU is divided."""
        part = "" if self.part == WHOLE_GPU else f".{self.part}"
        return f"{self.host}/{self.number}{part}"


_DCGM = {
    "DCGM_FI_DEV_GPU_UTIL": Metric("utilisation", 0.01),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": Metric("utilisation", rank=1),
    "DCGM_FI_PROF_DRAM_ACTIVE": Metric("bandwidth"),
    "DCGM_FI_DEV_MEM_COPY_UTIL": Metric("bandwidth", 0.01, rank=1),
    "DCGM_FI_DEV_GPU_TEMP": Metric("temperature"),
    "DCGM_FI_DEV_POWER_USAGE": Metric("power"),
    "DCGM_FI_DEV_FB_TOTAL": Metric("memory_total"),
    "DCGM_FI_DEV_FB_USED": Metric("memory_used"),
    "DCGM_FI_DEV_FB_FREE": Metric(MEMORY_FREE),
    "DCGM_FI_DEV_FB_RESERVED": Metric(MEMORY_RESERVED),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": Metric("errors"),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": Metric("errors", rank=1),
    "DCGM_FI_DEV_XID_ERRORS": Metric("errors", rank=2, most=1.0),  # a code: 0 = none so far
}
_ROCM = {
    "gpu_gfx_activity": Metric("utilisation", 0.01),
    "gpu_umc_activity": Metric("bandwidth", 0.01),
    "gpu_edge_temperature": Metric("temperature"),
    "gpu_junction_temperature": Metric("temperature", rank=1),
    "gpu_average_package_power": Metric("power"),
    "gpu_package_power": Metric("power", rank=1),
    "gpu_power_usage": Metric("power", rank=2),
    "gpu_total_vram": Metric("memory_total"),
    "gpu_used_vram": Metric("memory_used"),
    "gpu_free_vram": Metric(MEMORY_FREE),
    "gpu_ecc_uncorrect_total": Metric("errors"),
}
_AMD_SMI = {  # thousandths of a degree and millionths of a watt, as its own recording rules say
    "amd_gpu_use_percent": Metric("utilisation", 0.01),
    "amd_gpu_memory_use_percent": Metric("bandwidth", 0.01),
    "amd_gpu_current_temperature": Metric("temperature", 1e-3),
    "amd_gpu_power": Metric("power", 1e-6),
    "amd_gpu_power_avg": Metric("power", 1e-6, rank=1),
}

HOST_LABELS = ("Hostname", "hostname")  # dcgm-exporter changed it in 2026
INSTANCE = "instance"  # host:port of the exporter, which Prometheus adds
# In amd_smi_exporter the label of the GPU's number is the metric's name without "amd_".
INDEX_LABELS = ("gpu", "gpu_id", *(name.removeprefix("amd_") for name in _AMD_SMI))
PART_LABELS = ("GPU_I_ID", "gpu_partition_id", "gpu_compute_partition_type")
MODEL_LABELS = ("modelName", "card_series", "productname", "card_model")  # the best first
PROFILE_LABEL = "GPU_I_PROFILE"  # of a MIG slice

_UNDIVIDED = ("", "none", "spx")  # ROCm's compute partitions that are the whole GPU
_MOST_DIGITS = 6
_PORT = re.compile(r":[0-9]*\Z")
_PREFIX = re.compile("([a-zA-Z_:][a-zA-Z0-9_:]*)?")


def metrics(prefix: str = "") -> Mapping[str, Metric]:
    """Return all known metrics, by name.

    ROCm's are included under three names: without a prefix, with PREFIX and with the given prefix.

    Raises:
        TelemetryError: no metric can begin with that prefix.
    """
    if not _PREFIX.fullmatch(prefix):
        rule = "it has letters of English, digits, _ and :, and no digit in front"
        raise TelemetryError(f"{prefix[:80]!r} cannot be the beginning of a metric's name; {rule}")
    prefixed = {front + name: _ROCM[name] for front in (prefix, PREFIX, "") for name in _ROCM}
    return {**prefixed, **_DCGM, **_AMD_SMI}


def _number(text: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
        return int(text)
    return None


def _host(labels: Mapping[str, str]) -> str:
    for label in HOST_LABELS:
        if labels.get(label):
            return labels[label]
    return _PORT.sub("", labels.get(INSTANCE, ""))


def _part(labels: Mapping[str, str]) -> int | None:
    if labels.get("GPU_I_ID"):
        return _number(labels["GPU_I_ID"])
    if labels.get("gpu_compute_partition_type", "").lower() in _UNDIVIDED:
        return WHOLE_GPU
    return _number(labels.get("gpu_partition_id", ""))


def identify(labels: Mapping[str, str]) -> Gpu | None:
    """Return the GPU that the labels of a reading name; None = they name no valid GPU."""
    for label in INDEX_LABELS:
        if label in labels:
            host, index, part = _host(labels), _number(labels[label]), _part(labels)
            if not host or not is_name(host) or index is None or part is None:
                return None
            return Gpu(host, index, part)
    return None


def model_name(labels: Mapping[str, str]) -> str:
    """Return the GPU model that the labels name, in their spelling; "" = none.

    The name of a MIG slice is put together as in the catalogue.
    """
    for label in MODEL_LABELS:
        if labels.get(label):
            profile = labels.get(PROFILE_LABEL)
            name = f"{labels[label]} MIG {profile}" if profile else labels[label]
            return name if is_name(name) else ""
    return ""
