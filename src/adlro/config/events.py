"""Events of a scenario's cluster: failures, wear, throttling, updates."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from adlro.model.cluster import GpuName, Hours, Name, Number
from adlro.model.job import Speed
from adlro.model.record import Record

HEAT = 12.0  # degrees that a throttled GPU is hotter, unless the scenario says otherwise
_Mean = Annotated[float, Field(ge=1e-3, le=1e6)]  # hours
_Slower = Annotated[float, Field(ge=1e-3, lt=1)]  # of the speed without the change


class Failures(Record):
    """Independent failures and repairs of nodes; both times are exponential."""

    mtbf_h: _Mean  # mean hours that a node is up between failures
    repair_h: _Mean  # mean hours that it is down
    nodes: tuple[Name, ...] = ()  # groups of nodes that fail; () = all

    @property
    def availability(self) -> float:
        """Share of the time that a node is up."""
        return self.mtbf_h / (self.mtbf_h + self.repair_h)

    def touches(self, group: str) -> bool:
        """True if the nodes of this group fail."""
        return not self.nodes or group in self.nodes


class _OfGpus(Record):
    """A change of some GPUs: the named ones, or GPUs drawn from the seed."""

    node: Name | None = None  # a node or a group of nodes; None = any
    gpu: Annotated[int, Field(ge=0)] | None = None  # its place on the node; None = any
    count: Number = 1  # how many GPUs
    from_h: Hours = 0.0
    to_h: Hours
    speed: _Slower

    @model_validator(mode="after")
    def _ordered(self) -> _OfGpus:
        if self.from_h >= self.to_h:
            raise ValueError(f"from_h {self.from_h:g} is not before to_h {self.to_h:g}")
        return self


class Wear(_OfGpus):
    """GPUs that permanently slow down, step by step, to `speed`."""

    kind: Literal["wear"]


class Throttling(_OfGpus):
    """GPUs that are hot and slow for a limited time."""

    kind: Literal["throttling"]
    heat_c: Annotated[float, Field(ge=0, le=100)] = HEAT  # degrees on top


class Update(Record):
    """A new driver or library: from `at_h` on, a job type runs at another speed on a model."""

    kind: Literal["update"]
    type: Name
    model: GpuName
    at_h: Hours
    speed: Speed  # times the speed that the type had there at first


Change = Annotated[Wear | Throttling | Update, Field(discriminator="kind")]
