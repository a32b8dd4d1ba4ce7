"""The GPU catalogue: published figures of each model, and its speed at each class of work.

Speeds are relative to the V100 32GB. The speed is the measured one if there is one, else that of a
similar model, else the roofline: an estimate from the published figures (docs/gpus.md).
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from adlro.errors import ConfigError
from adlro.model.record import Record

REFERENCE = "V100 32GB"
_HOST_GB_S = {"PCIe 3.0 x16": 32.0, "PCIe 4.0 x16": 64.0, "PCIe 5.0 x16": 128.0}  # both directions
# Figures that scale with the compute share and with the memory share of a MIG slice.
_BY_COMPUTE = frozenset({"fp64_tflops", "fp32_tflops", "fp16_tflops", "tensor_tflops", "tdp_w"})
_BY_MEMORY = frozenset({"memory_gb", "bandwidth_gb_s"})

# Telemetry readings of a GPU (docs/gpus.md): shares of its TDP, degrees Celsius.
_IDLE_POWER = 0.15
_MEMORY_POWER = 0.6  # power of a memory-bound job as a share of that of a compute-bound one
_IDLE_DEGREES, _FULL_DEGREES = 35.0, 80.0

Origin = Literal["measured", "stand-in", "roofline"]


class GpuModel(Record):
    """Published figures of one GPU model: peak rates without sparsity; None = not published."""

    name: str
    aliases: tuple[str, ...] = ()
    vendor: str
    architecture: str
    launch: int  # year
    fp64_tflops: PositiveFloat
    fp32_tflops: PositiveFloat
    fp16_tflops: PositiveFloat | None = None  # vector units
    tensor_tflops: NonNegativeFloat | None = None  # FP16 on matrix units; 0 = no such units
    tensor_like: str | None = None  # the model with the same ratio of tensor to FP32 rate
    memory_gb: PositiveFloat
    bandwidth_gb_s: PositiveFloat
    tdp_w: PositiveFloat
    host_interface: Literal["PCIe 3.0 x16", "PCIe 4.0 x16", "PCIe 5.0 x16"]
    interconnect: str | None = None
    interconnect_gb_s: NonNegativeFloat | None = None  # both directions together; 0 = none
    source: str  # keys of [sources] in gpus.toml
    parent: str | None = None  # the whole GPU, if this is a slice of one

    @property
    def link_gb_s(self) -> float:
        """GB/s to the other GPUs of a node: of the interconnect, else of the host interface."""
        return self.interconnect_gb_s or _HOST_GB_S[self.host_interface]


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


class _Profile(Record):
    name: str
    compute_sevenths: Annotated[int, Field(ge=1, le=7)]
    memory_eighths: Annotated[int, Field(ge=1, le=8)]


class _Slices(Record):
    parent: str
    profiles: tuple[_Profile, ...]
    source: str


class _Measured(Record):
    workload_class: str = Field(alias="class")
    gpu: str
    relative: PositiveFloat
    stands_in_for: tuple[str, ...] = ()
    benchmarks: str
    source: str


class _Colocated(Record):
    workload_class: str = Field(alias="class")
    slowdown: Annotated[float, Field(ge=1)]
    benchmarks: str
    source: str


class _Catalogue(Record):
    sources: dict[str, str]
    gpu: tuple[GpuModel, ...]
    mig: tuple[_Slices, ...]
    measured: tuple[_Measured, ...]
    colocation: tuple[_Colocated, ...]


@cache
def _catalogue() -> _Catalogue:
    text = resources.files("adlro.model").joinpath("gpus.toml").read_text(encoding="utf-8")
    return _Catalogue.model_validate(tomllib.loads(text))


def _mig_slice(whole: GpuModel, profile: _Profile, source: str) -> GpuModel:
    """Model of a MIG slice of a GPU; a slice has no interconnect to other GPUs."""
    figures = whole.model_dump(exclude_none=True)
    for key in _BY_COMPUTE & figures.keys():
        figures[key] *= profile.compute_sevenths / 7
    for key in _BY_MEMORY:
        figures[key] *= profile.memory_eighths / 8
    suffix = f" MIG {profile.name}"
    figures |= {"name": whole.name + suffix, "aliases": [name + suffix for name in whole.aliases]}
    figures |= {"interconnect": "none", "interconnect_gb_s": 0}
    figures |= {"source": f"{whole.source}; {source}", "parent": whole.name}
    return GpuModel.model_validate(figures)


@cache
def models() -> tuple[GpuModel, ...]:
    """All models of the catalogue in file order, MIG slices after the whole GPUs."""
    catalogue = _catalogue()
    whole = {gpu.name: gpu for gpu in catalogue.gpu}
    slices = (
        _mig_slice(whole[group.parent], profile, group.source)
        for group in catalogue.mig
        for profile in group.profiles
    )
    return (*whole.values(), *slices)


def _fold(name: str) -> str:
    """Return the name in lower case without punctuation and leading brand, for comparison."""
    letters = "".join(filter(str.isalnum, name.casefold()))
    return letters.removeprefix("nvidia").removeprefix("amd").removeprefix("tesla")


@cache
def _index() -> dict[str, GpuModel]:
    return {_fold(name): gpu for gpu in models() for name in (gpu.name, *gpu.aliases)}


def _suggestion(name: str) -> str:
    index = _index()
    near = difflib.get_close_matches(_fold(name), index, n=len(index), cutoff=0.5)
    names = list(dict.fromkeys(repr(index[key].name) for key in near))[:3]
    if not names:
        return f"none of the {len(models())} models in the catalogue is spelt like that"
    return f"did you mean {' or '.join(names)}?"


def find(name: str) -> GpuModel:
    """Find a model by name or alias; ignores case, punctuation, "NVIDIA", "AMD" and "Tesla".

    Raises:
        ConfigError: the catalogue has no such model; the message names close ones.
    """
    gpu = _index().get(_fold(name))
    if gpu is None:
        raise ConfigError(f"unknown GPU model {name!r}: {_suggestion(name)}")
    return gpu


def _tensor_rate(gpu: GpuModel) -> float:
    """TFLOPS of a GPU at matrix work.

    If the tensor rate is not published: the FP32 rate times the ratio of tensor rate to FP32 rate
    of the model named by `tensor_like`. Without tensor units: the FP16 vector rate, else the FP32
    rate.
    """
    if gpu.tensor_tflops is None and gpu.tensor_like is not None:
        like = find(gpu.tensor_like)
        return gpu.fp32_tflops * _tensor_rate(like) / like.fp32_tflops
    return gpu.tensor_tflops or gpu.fp16_tflops or gpu.fp32_tflops


def _rates(gpu: GpuModel) -> _Axes:
    return _Axes(gpu.fp64_tflops, gpu.fp32_tflops, _tensor_rate(gpu), gpu.bandwidth_gb_s)


def _times(demand: Demand, gpu: GpuModel) -> _Axes:
    """Run time on a GPU that each resource limits; the whole run on the reference GPU = 1."""
    parts = zip(demand._axes(), _rates(find(REFERENCE)), _rates(gpu), strict=True)
    return _Axes(*(share * reference / rate for share, reference, rate in parts))


def roofline(demand: Demand, gpu: GpuModel) -> float:
    """Speed of a GPU by its published figures, relative to the reference GPU.

    The part of the run time that a resource limits is inversely proportional to its rate.
    """
    return 1.0 / sum(_times(demand, gpu))


@cache
def _known_speeds() -> dict[tuple[str, str], Speed]:
    rows = _catalogue().measured
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
    known = {row.workload_class: row.slowdown for row in _catalogue().colocation}
    return known.get(workload_class or "", 1.0) if workload_class == other else 1.0


class SensorLevels(NamedTuple):
    """Telemetry readings of a GPU, or what a job adds to them."""

    utilisation: float  # 0 to 1
    bandwidth: float  # GB/s of memory
    temperature: float  # degrees Celsius
    power: float  # W


def idle(gpu: GpuModel) -> SensorLevels:
    """Telemetry readings of an idle GPU."""
    return SensorLevels(0.0, 0.0, _IDLE_DEGREES, _IDLE_POWER * gpu.tdp_w)


def busy(demand: Demand, relative: float, gpu: GpuModel) -> SensorLevels:
    """Telemetry readings that a job adds to those of an idle GPU if it holds the whole GPU.

    Args:
        demand: shares of the job's run time on the reference GPU.
        relative: speed of the job on this GPU; on the reference GPU it is 1.
        gpu: model of the GPU.
    """
    times = _times(demand, gpu)
    utilisation = min(1.0, relative * sum(times))  # as fast as the roofline = always busy
    memory_bound = times.bandwidth / sum(times)
    power = utilisation * (1 - memory_bound + _MEMORY_POWER * memory_bound)  # 1 = the TDP
    return SensorLevels(
        utilisation,
        utilisation * memory_bound * gpu.bandwidth_gb_s,
        power * (_FULL_DEGREES - _IDLE_DEGREES),
        power * (1 - _IDLE_POWER) * gpu.tdp_w,
    )
