"""The GPU catalogue (gpus.toml) as records: models, MIG slices, measured speeds, shared names."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat

from adlro.model.record import Record

# GB/s of the host interface, both directions together.
_HOST_GB_S = {
    "PCIe 3.0 x16": 32.0,
    "PCIe 4.0 x8": 32.0,
    "PCIe 4.0 x16": 64.0,
    "PCIe 5.0 x8": 64.0,
    "PCIe 5.0 x16": 128.0,
}
_ASSUMED_HOST = "PCIe 4.0 x16"
_ASSUMED_TDP_W, _ASSUMED_GB_S = 300.0, 898.0  # those of the reference GPU
_MOST_MEMORY_GB = 4096.0

# Figures that scale with the compute share and with the memory share of a MIG slice.
_BY_COMPUTE = frozenset({"fp64_tflops", "fp32_tflops", "fp16_tflops", "tensor_tflops", "tdp_w"})
_BY_MEMORY = frozenset({"memory_gb", "bandwidth_gb_s"})

Word = Annotated[str, Field(min_length=1, max_length=80)]
Rate = Annotated[float, Field(gt=0, le=1e6)] | None


class GpuModel(Record):
    """Figures of one GPU model: peak rates without sparsity; None = not known.

    Either an entry of the catalogue or a [[gpu]] table of a cluster file.
    """

    name: Word
    aliases: tuple[Word, ...] = ()
    vendor: str | None = None
    architecture: str | None = None
    launch: int | None = None  # year
    fp64_tflops: Rate = None
    fp32_tflops: Rate = None
    fp16_tflops: Rate = None  # vector units
    tensor_tflops: NonNegativeFloat | None = None  # FP16 on matrix units; 0 = no such units
    tensor_like: str | None = None  # the model with the same ratio of tensor to FP32 rate
    memory_gb: Annotated[float, Field(gt=0, le=_MOST_MEMORY_GB)]
    bandwidth_gb_s: Rate = None
    tdp_w: Rate = None
    host_interface: (
        Literal["PCIe 3.0 x16", "PCIe 4.0 x8", "PCIe 4.0 x16", "PCIe 5.0 x8", "PCIe 5.0 x16"] | None
    ) = None
    interconnect: str | None = None
    interconnect_gb_s: NonNegativeFloat | None = None  # both directions together; 0 = none
    speed: dict[Word, Annotated[float, Field(gt=0, le=1e6)]] = Field(default_factory=dict)
    source: str | None = None  # keys of [sources] in gpus.toml
    parent: str | None = None  # the whole GPU, if this is a slice of one
    board: str | None = None  # the model of the whole board, if this is one of its dies

    def __hash__(self) -> int:
        """Hash of the name, since `speed`, a table, has none."""
        return hash(self.name)

    @property
    def link_gb_s(self) -> float:
        """GB/s to the other GPUs of a node: of the interconnect, else of the host interface."""
        return self.interconnect_gb_s or _HOST_GB_S[self.host_interface or _ASSUMED_HOST]

    @property
    def power_w(self) -> float:
        """TDP in watts; that of the reference GPU if it is not known."""
        return self.tdp_w or _ASSUMED_TDP_W

    @property
    def peak_gb_s(self) -> float:
        """Memory bandwidth in GB/s; that of the reference GPU if it is not known."""
        return self.bandwidth_gb_s or _ASSUMED_GB_S


class _Profile(Record):
    name: str
    compute: Annotated[int, Field(ge=1, le=7)]
    memory: Annotated[int, Field(ge=1, le=8)]


class _Slices(Record):
    """MIG profiles of some models: the number of compute and of memory slices of each profile."""

    parents: tuple[str, ...]
    compute_slices: int = 7  # of the whole GPU
    memory_slices: int = 8
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


class _Shared(Record):
    """A name that tools give to several models; the first of them is the default."""

    name: str
    models: tuple[str, ...]


class Catalogue(Record):
    """Content of gpus.toml."""

    sources: dict[str, str]
    gpu: tuple[GpuModel, ...]
    shared: tuple[_Shared, ...]
    mig: tuple[_Slices, ...]
    measured: tuple[_Measured, ...]
    colocation: tuple[_Colocated, ...]


@cache
def catalogue() -> Catalogue:
    """Return the content of gpus.toml."""
    text = resources.files("adlro.model").joinpath("gpus.toml").read_text(encoding="utf-8")
    return Catalogue.model_validate(tomllib.loads(text))


def _mig_slice(whole: GpuModel, profile: _Profile, group: _Slices) -> GpuModel:
    """Return the model of a MIG slice of a GPU; a slice has no interconnect to other GPUs."""
    figures = whole.model_dump(exclude_none=True)
    for key in _BY_COMPUTE & figures.keys():
        figures[key] *= profile.compute / group.compute_slices
    for key in _BY_MEMORY & figures.keys():
        figures[key] *= profile.memory / group.memory_slices
    suffix = f" MIG {profile.name}"
    figures |= {"name": whole.name + suffix, "aliases": [name + suffix for name in whole.aliases]}
    figures |= {"interconnect": "none", "interconnect_gb_s": 0}
    figures |= {"source": f"{whole.source}; {group.source}", "parent": whole.name}
    return GpuModel.model_validate(figures)


@cache
def models() -> tuple[GpuModel, ...]:
    """Return all models of the catalogue in file order, MIG slices after the whole GPUs."""
    content = catalogue()
    whole = {gpu.name: gpu for gpu in content.gpu}
    slices = (
        _mig_slice(whole[parent], profile, group)
        for group in content.mig
        for parent in group.parents
        for profile in group.profiles
    )
    return (*whole.values(), *slices)
