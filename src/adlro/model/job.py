"""Job types: the properties that jobs of one type share, and the distributions of the others.

Of some properties, such as the size, each job has its own value, drawn from a distribution.
"""

from __future__ import annotations

import itertools
import math
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, NonNegativeFloat, model_validator

from adlro.model import gpu
from adlro.model.cluster import GpuName, Name
from adlro.model.record import Record
from adlro.model.state import WHOLE

Share = Annotated[float, Field(gt=0, le=1)]


class Choice(Record):
    """A discrete distribution over a few values; a bare number in a file is a constant."""

    values: Annotated[tuple[NonNegativeFloat, ...], Field(min_length=1)]
    p: tuple[NonNegativeFloat, ...]

    @model_validator(mode="after")
    def _probabilities(self) -> Choice:
        if len(self.p) != len(self.values):
            raise ValueError(f"{len(self.values)} values need as many probabilities, not {self.p}")
        if abs(math.fsum(self.p) - 1) > 1e-9:
            raise ValueError(f"the probabilities {self.p} add up to {math.fsum(self.p):g}, not 1")
        return self

    def drawn(self) -> list[float]:
        """Values with a probability above 0."""
        return [value for value, p in zip(self.values, self.p, strict=True) if p > 0]


def _as_choice(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"values": (value,), "p": (1.0,)}
    return value


def _whole_numbers(choice: Choice) -> Choice:
    if any(value != int(value) for value in choice.values):
        raise ValueError(f"whole numbers are needed, not {choice.values}")
    return choice


def _at_least_one(choice: Choice) -> Choice:
    if min(choice.values) < 1:
        raise ValueError(f"a job needs at least 1 GPU, not {min(choice.values):g}")
    return choice


def _countable(choice: Choice) -> Choice:
    if max(choice.values) > MAX_COUNT:
        raise ValueError(
            f"{max(choice.values):g} is more than the {MAX_COUNT:,} that can be counted"
        )
    return choice


def _part_of_a_gpu(choice: Choice) -> Choice:
    for share in choice.values:
        if share > 1 or round(share * WHOLE) < 1:
            raise ValueError(f"a share of one GPU is between {1 / WHOLE:g} and 1, not {share:g}")
    return choice


MAX_COUNT = 1_000_000  # upper limit of every count: GPUs, cores, GB, users
Amount = Annotated[Choice, AfterValidator(_countable), BeforeValidator(_as_choice)]
Count = Annotated[Amount, AfterValidator(_whole_numbers)]
Gang = Annotated[Count, AfterValidator(_at_least_one)]
Part = Annotated[Amount, AfterValidator(_part_of_a_gpu)]
Seconds = Annotated[float, Field(ge=1e-3, le=1e9)]
Speed = Annotated[float, Field(ge=1e-4, le=1e4)]  # V100 = 1
Extra = Annotated[float, Field(ge=0, le=100)]
Slowdown = Annotated[float, Field(ge=1, le=100, strict=True)]  # strict: true is no number
Spread = Annotated[float, Field(ge=0, le=5)]  # of a lognormal law


class Lognormal(Record):
    """Lognormal distribution of job sizes, clipped at `cap` times the median."""

    law: Literal["lognormal"] = "lognormal"
    median_s: Seconds
    sigma: Spread = 1.0
    cap: Annotated[float, Field(gt=1, le=1e6)] = 20.0


class Pareto(Record):
    """Pareto distribution of job sizes, clipped at `cap` times the minimum.

    P(size > s) = (minimum / s)^alpha.
    """

    law: Literal["pareto"]
    minimum_s: Seconds
    alpha: Annotated[float, Field(ge=0.01, le=100)]
    cap: Annotated[float, Field(gt=1, le=1e6)] = 1000.0


class Exponential(Record):
    """Exponential distribution of job sizes."""

    law: Literal["exponential"]
    mean_s: Seconds


class Constant(Record):
    """Constant job size: the same for every job."""

    law: Literal["constant"]
    seconds: Seconds


class LogUniform(Record):
    """Piecewise log-uniform distribution of job sizes.

    With probability p[i], a size lies between borders_s[i] and borders_s[i + 1].
    """

    law: Literal["log-uniform"]
    borders_s: Annotated[tuple[Seconds, ...], Field(min_length=2)]
    p: tuple[NonNegativeFloat, ...] = (1.0,)

    @model_validator(mode="after")
    def _pieces(self) -> LogUniform:
        if any(a >= b for a, b in itertools.pairwise(self.borders_s)):
            raise ValueError(f"borders_s must rise, not {self.borders_s}")
        if len(self.p) != len(self.borders_s) - 1 or abs(math.fsum(self.p) - 1) > 1e-9:
            pieces = len(self.borders_s) - 1
            raise ValueError(f"{pieces} pieces need as many p that add up to 1, not {self.p}")
        return self


def _default_law(value: object) -> object:
    return {"law": "lognormal", **value} if isinstance(value, dict) else value


Size = Annotated[
    Lognormal | Pareto | Exponential | Constant | LogUniform,
    Field(discriminator="law"),
    BeforeValidator(_default_law),
]


class Priority(Record):
    """Distribution of job priorities: uniform between `low` and `high`, which lie in [0, 1]."""

    low: Annotated[float, Field(ge=0, le=1)] = 0.0
    high: Annotated[float, Field(ge=0, le=1)] = 1.0

    @model_validator(mode="after")
    def _ordered(self) -> Priority:
        if self.low > self.high:
            raise ValueError(f"low {self.low:g} is above high {self.high:g}")
        return self


class JobType(Record):
    """Properties of the jobs of one type; cores and memory are for each GPU of the gang."""

    name: Name
    share: Share  # of the jobs; the shares are scaled to add up to 1
    size: Size  # seconds on a GPU of speed 1 (the reference, V100)
    kind: Literal["simulation", "ml", "data"] | None = None  # class whose measured speeds apply
    demand: gpu.Demand | None = None  # for the roofline of GPUs that were not measured
    speed: dict[GpuName, Speed] = Field(default_factory=dict)  # measured by the user
    gpus: Gang = Choice(values=(1,), p=(1,))
    one_node: bool = False  # True = all GPUs of a gang must be on one node
    gpu_memory_gb: Amount = Choice(values=(0,), p=(1,))
    cores: Count = Choice(values=(1,), p=(1,))
    memory_gb: Amount = Choice(values=(0,), p=(1,))
    models: tuple[GpuName, ...] = ()  # GPU models it may use; () = all
    partitions: tuple[Name, ...] = ()  # () = all
    priority: Priority = Priority()
    communication: Extra = 0.0  # extra share of run time when a gang spans nodes
    checkpoint_s: Annotated[float, Field(ge=0, le=1e9)] | None = None  # None = cannot checkpoint
    checkpoint_every_s: Seconds | None = None  # of work between automatic saves; None = never
    gpu_share: Part = Choice(values=(1,), p=(1,))  # of a single GPU; 1 = all of each GPU

    @model_validator(mode="after")
    def _usable(self) -> JobType:
        if self.kind is None and self.demand is None and not self.speed:
            raise ValueError("needs 'kind', 'demand' or 'speed' to know how fast each GPU is")
        return self

    @model_validator(mode="after")
    def _saves(self) -> JobType:
        every, cost = self.checkpoint_every_s, self.checkpoint_s
        if every is not None and cost is None:
            raise ValueError(
                f"checkpoint_every_s = {every:g} needs checkpoint_s, what a save costs"
            )
        if every is not None and cost is not None and cost >= every:
            raise ValueError(
                f"checkpoint_s = {cost:g} is not shorter than checkpoint_every_s = {every:g}: "
                "it would save more than it works"
            )
        return self

    @model_validator(mode="after")
    def _slices_stand_alone(self) -> JobType:
        gang, share = max(self.gpus.drawn()), min(self.gpu_share.drawn())
        if gang > 1 and round(share * WHOLE) < WHOLE:
            raise ValueError(
                f"a gang of {gang:g} GPUs cannot take gpu_share = {share:g} of each: only a job "
                "of one GPU may take a slice"
            )
        return self


def _both_ways(value: object) -> object:
    return (value, value) if isinstance(value, int | float) else value


class Colocation(Record):
    """Slowdowns of two job types when their slices share a GPU, in the order of `types`."""

    types: tuple[Name, Name]
    slowdown: Annotated[tuple[Slowdown, Slowdown], BeforeValidator(_both_ways)]  # 1 = none

    @model_validator(mode="after")
    def _one_answer(self) -> Colocation:
        if self.types[0] == self.types[1] and self.slowdown[0] != self.slowdown[1]:
            raise ValueError(f"two slowdowns {self.slowdown} of one type; give one number")
        return self
