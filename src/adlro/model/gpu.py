"""Speed of each GPU model at each class of work, and its telemetry readings.

Speeds are relative to the V100 32GB. The speed is the measured one if there is one, else that of a
similar model, else the roofline: an estimate from the published figures (docs/gpus.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal, NamedTuple

from pydantic import NonNegativeFloat, model_validator

from adlro.errors import ConfigError
from adlro.model.gpu_catalogue import GpuModel, catalogue, models
from adlro.model.gpu_names import Identified, among, find, identify, is_name_of, meant_by
from adlro.model.record import Record

__all__ = [
    "DEMANDS", "REFERENCE", "Demand", "GpuModel", "Identified", "Origin", "SensorLevels", "Speed",
    "among", "busy", "find", "identify", "idle", "is_name_of", "meant_by", "missing", "models",
    "roofline", "slowdown", "speed",
]  # fmt: skip

REFERENCE = "V100 32GB"

# Telemetry readings of a GPU (docs/gpus.md): shares of its TDP, degrees Celsius.
_IDLE_POWER = 0.15
_MEMORY_POWER = 0.6  # power of a memory-bound job as a share of that of a compute-bound one
_IDLE_DEGREES, _FULL_DEGREES = 35.0, 80.0

Origin = Literal["measured", "stand-in", "roofline"]


class _Axes(NamedTuple):
    """One number for each GPU resource that can limit a job."""

    fp64: float
    fp32: float
    tensor: float
    bandwidth: float


class Demand(Record):
    """For each GPU resource, the share of a job's run time on the reference GPU that it limits."""

    fp64: NonNegativeFloat = 0.0
    fp32: NonNegativeFloat = 0.0
    tensor: NonNegativeFloat = 0.0
    bandwidth: NonNegativeFloat = 0.0

    @model_validator(mode="after")
    def _shares_sum_to_one(self) -> Demand:
        total = sum(self._axes())
        if abs(total - 1.0) > 1e-6:
            raise ValueError(f"the shares of a demand must sum to 1, not {total:g}")
        return self

    def _axes(self) -> _Axes:
        return _Axes(self.fp64, self.fp32, self.tensor, self.bandwidth)


# Fitted to the measured speeds on a grid; docs/gpus.md has the fit. The fp32 share also covers
# integer and address work, which runs at the same clock on the same number of units.
DEMANDS: Mapping[str, Demand] = MappingProxyType(
    {
        "simulation": Demand(fp64=0.05, fp32=0.35, bandwidth=0.60),
        "ml": Demand(fp32=0.25, tensor=0.25, bandwidth=0.50),
        "data": Demand(fp64=0.01, fp32=0.14, bandwidth=0.85),
    }
)


class Speed(NamedTuple):
    """Speed of a GPU at a class of work, and the origin of the figure."""

    relative: float  # the reference GPU = 1
    origin: Origin


def _tensor_rate(gpu: GpuModel) -> float | None:
    """TFLOPS of a GPU at matrix work; None = not known.

    If the tensor rate is not published: the FP32 rate times the ratio of tensor rate to FP32 rate
    of the model named by `tensor_like`. Without tensor units: the FP16 vector rate or the FP32
    rate, whichever is higher.
    """
    if gpu.tensor_tflops is None and gpu.tensor_like is not None and gpu.fp32_tflops is not None:
        like = find(gpu.tensor_like)
        rate = _tensor_rate(like)
        if rate is None or like.fp32_tflops is None:
            return None
        return gpu.fp32_tflops * rate / like.fp32_tflops
    if gpu.tensor_tflops == 0:
        return max(gpu.fp16_tflops or 0.0, gpu.fp32_tflops or 0.0) or None
    return gpu.tensor_tflops


def _rates(gpu: GpuModel) -> tuple[float | None, ...]:
    return (gpu.fp64_tflops, gpu.fp32_tflops, _tensor_rate(gpu), gpu.bandwidth_gb_s)


_FIGURES = ("fp64_tflops", "fp32_tflops", "tensor_tflops", "bandwidth_gb_s")  # as in _rates


def missing(demand: Demand, gpu: GpuModel) -> tuple[str, ...]:
    """Names of the figures of a GPU that the roofline of a demand needs and that are not known."""
    parts = zip(_FIGURES, demand._axes(), _rates(gpu), strict=True)
    return tuple(figure for figure, share, rate in parts if share > 0 and rate is None)


def _times(demand: Demand, gpu: GpuModel) -> _Axes:
    """Run time on a GPU that each resource limits; the whole run on the reference GPU = 1.

    Raises:
        ConfigError: a figure that the demand needs is not known.
    """
    unknown = missing(demand, gpu)
    if unknown:
        raise ConfigError(
            f"no speed can be computed for {gpu.name!r}: its {' and '.join(unknown)} "
            f"{'is' if len(unknown) == 1 else 'are'} not known"
        )
    parts = zip(demand._axes(), _rates(find(REFERENCE)), _rates(gpu), strict=True)
    return _Axes(*(share * (whole or 0.0) / rate if rate else 0.0 for share, whole, rate in parts))


def roofline(demand: Demand, gpu: GpuModel) -> float:
    """Speed of a GPU by its published figures, relative to the reference GPU.

    The part of the run time that a resource limits is inversely proportional to its rate.

    Raises:
        ConfigError: a figure that the demand needs is not known.
    """
    return 1.0 / sum(_times(demand, gpu))


@cache
def _known_speeds() -> dict[tuple[str, str], Speed]:
    rows = catalogue().measured
    stand_ins = {
        (row.workload_class, name): Speed(row.relative, "stand-in")
        for row in rows
        for name in row.stands_in_for
    }
    measured = {(row.workload_class, row.gpu): Speed(row.relative, "measured") for row in rows}
    return stand_ins | measured


def speed(workload_class: str | None, demand: Demand, gpu: GpuModel) -> Speed:
    """Speed of a GPU at a class of work: measured, else of a similar model, else the roofline.

    A MIG slice has the speed of its parent times the ratio of the slice's roofline to the parent's,
    and its origin is never "measured".

    Raises:
        ConfigError: neither measured nor borrowed, and a figure for the roofline is not known.
    """
    if gpu.parent is not None:
        whole = find(gpu.parent)
        known = speed(workload_class, demand, whole)
        ratio = roofline(demand, gpu) / roofline(demand, whole)
        origin: Origin = "roofline" if known.origin == "roofline" else "stand-in"
        return Speed(known.relative * ratio, origin)
    found = _known_speeds().get((workload_class or "", gpu.name))
    return found or Speed(roofline(demand, gpu), "roofline")


def slowdown(workload_class: str | None, other: str | None) -> float:
    """Factor by which one other job on the same GPU prolongs the run time of a job.

    Measured for two jobs of the same class, if known; else 1.
    """
    known = {row.workload_class: row.slowdown for row in catalogue().colocation}
    return known.get(workload_class or "", 1.0) if workload_class == other else 1.0


class SensorLevels(NamedTuple):
    """Telemetry readings of a GPU, or what a job adds to them."""

    utilisation: float  # 0 to 1
    bandwidth: float  # GB/s of memory
    temperature: float  # degrees Celsius
    power: float  # W


def idle(gpu: GpuModel) -> SensorLevels:
    """Telemetry readings of an idle GPU."""
    return SensorLevels(0.0, 0.0, _IDLE_DEGREES, _IDLE_POWER * gpu.power_w)


def busy(demand: Demand, relative: float, gpu: GpuModel) -> SensorLevels:
    """Telemetry readings that a job adds to those of an idle GPU if it holds the whole GPU.

    A GPU of unknown figures is read as always busy, and as memory-bound as the reference GPU.

    Args:
        demand: shares of the job's run time on the reference GPU.
        relative: speed of the job on this GPU; on the reference GPU it is 1.
        gpu: model of the GPU.
    """
    is_known = not missing(demand, gpu)
    times = _times(demand, gpu) if is_known else demand._axes()
    busy_share = relative * sum(times) if is_known else 1.0  # as fast as the roofline = 1
    utilisation = min(1.0, busy_share)
    memory_bound = times.bandwidth / sum(times)
    power = utilisation * (1 - memory_bound + _MEMORY_POWER * memory_bound)  # 1 = the TDP
    return SensorLevels(
        utilisation,
        utilisation * memory_bound * gpu.peak_gb_s,
        power * (_FULL_DEGREES - _IDLE_DEGREES),
        power * (1 - _IDLE_POWER) * gpu.power_w,
    )
