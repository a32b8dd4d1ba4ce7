"""Settings of a scenario whose jobs are replayed from a history, a file of recorded jobs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from adlro.model.cluster import GpuName, Name
from adlro.model.job import MAX_COUNT, Extra, Seconds
from adlro.model.record import Record

# Values of `speeds` -> the shipped scenario whose job types give the speeds, as a history has none.
SPEEDS = {"measured-mix": "paper16", "gavel-types": "gavel16"}
UNUSED = {"law": "constant", "seconds": 1.0}  # size of a type: replayed jobs have their own

Priority = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0, le=MAX_COUNT)]
Path = Annotated[str, Field(min_length=1, max_length=4096)]


class Rule(Record):
    """Assigns a job type to the recorded jobs whose `field` matches the pattern `like`."""

    field: Literal["name", "queue", "account", "user", "qos"]
    like: Name  # * and ? stand for anything; upper and lower case are the same
    type: Name


class Recorded(Record):
    """The history, the part of it that is replayed, and defaults for missing fields."""

    file: Path  # relative to the folder of the scenario's file
    format: str = ""  # "" = recognised by the content
    columns: dict[str, str] = Field(default_factory=dict)  # column names of a plain CSV file
    lenient: bool = False  # skip lines that are wrong
    from_s: float | None = None  # jobs submitted at or after, in seconds of the history
    to_s: float | None = None  # and before
    speeds: Literal["none", "measured-mix", "gavel-types", "own"] = "none"
    rules: tuple[Rule, ...] = ()  # the first that matches sets a job's type; else a hash does
    gpus_from: Literal["gpus", "cores"] = "gpus"  # cores = each processor is played as a GPU
    unfit: Literal["refuse", "drop"] = "refuse"  # jobs that fit no pool of the cluster
    partitions: Literal["apply", "ignore"] = "apply"  # those that jobs were submitted to
    gpu_types: Literal["requested", "allocated", "ignore"] = "requested"  # to which jobs are bound
    strict: bool = False  # refuse, not leave out, jobs that ask for what no node has
    gpu_names: dict[str, GpuName] = Field(default_factory=dict)  # history -> catalogue
    cores_per_gpu: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 1  # if a job has no cores
    memory_gb_per_gpu: Amount = 0.0
    gpu_memory_gb: Amount = 0.0
    requested_s: Seconds | None = None  # None = the longest run in the history
    priority: Priority = 0.5
    priorities: dict[str, Priority] = Field(default_factory=dict)  # by qos
    checkpoint_s: Annotated[float, Field(ge=0, le=1e9)] | None = None  # None = no checkpoints
    communication: Extra = 0.0  # of all jobs

    @model_validator(mode="after")
    def _some_time(self) -> Recorded:
        if self.from_s is not None and self.to_s is not None and self.to_s <= self.from_s:
            raise ValueError(f"to_s {self.to_s:g} is not after from_s {self.from_s:g}")
        return self
