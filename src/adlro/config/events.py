"""Settings of events in a scenario's cluster: failures, drains, wear, throttling, updates."""

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
    """Independent failures of nodes; times up and times down are exponentially distributed."""

    mtbf_h: _Mean  # mean hours that a node is up between failures
    repair_h: _Mean  # mean hours that it is down
    nodes: tuple[Name, ...] = ()  # groups of nodes that fail; () = all

    @property
    def availability(self) -> float:
        """Mean share of the time that a node that can fail is up."""
        return self.mtbf_h / (self.mtbf_h + self.repair_h)

    def touches(self, group: str) -> bool:
        """True if the nodes of this group can fail."""
        return not self.nodes or group in self.nodes


class _OfGpus(Record):
    """A slowdown of `count` GPUs, drawn among those that `node` and `gpu` allow."""

    node: Name | None = None  # a node or a group of nodes; None = any
    gpu: Annotated[int, Field(ge=0)] | None = None  # its number on the node, from 0; None = any
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
    """GPUs that slow down step by step from `from_h` to `to_h`, and then stay at `speed`."""

    kind: Literal["wear"]


class Throttling(_OfGpus):
    """GPUs that are hotter and slower from `from_h` to `to_h`."""

    kind: Literal["throttling"]
    heat_c: Annotated[float, Field(ge=0, le=100)] = HEAT  # degrees that the GPU is hotter


class Update(Record):
    """A new driver or library: from `at_h` on, a job type runs at another speed on a model."""

    kind: Literal["update"]
    type: Name
    model: GpuName
    at_h: Hours
    speed: Speed  # factor on the initial speed of the type on the model


class Drain(Record):
    """Nodes that take no new job from `from_h` to `to_h`; jobs that run there end as usual."""

    kind: Literal["drain"]
    node: Name  # a node or a group of nodes
    from_h: Hours = 0.0
    to_h: Hours

    @model_validator(mode="after")
    def _ordered(self) -> Drain:
        if self.from_h >= self.to_h:
            raise ValueError(f"from_h {self.from_h:g} is not before to_h {self.to_h:g}")
        return self


Change = Annotated[Wear | Throttling | Update | Drain, Field(discriminator="kind")]
