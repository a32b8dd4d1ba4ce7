"""Scenarios whose jobs are replayed from a history: which jobs, and defaults for missing fields."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from adlro.model.cluster import GpuName, Name
from adlro.model.job import MAX_COUNT, Extra, Seconds
from adlro.model.record import Record

# Assumed speeds, as a history has none -> the shipped scenario whose job types are used.
SPEEDS = {"measured-mix": "paper16", "gavel-types": "gavel16"}
UNUSED = {"law": "constant", "seconds": 1.0}  # the size of a type whose jobs have their own

Priority = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0, le=MAX_COUNT)]
Path = Annotated[str, Field(min_length=1, max_length=4096)]


class Rule(Record):
    """Assigns a job type to jobs whose field matches a pattern."""

    field: Literal["name", "queue", "account", "user", "qos"]
    like: Name  # * and ? stand for anything; upper and lower case are the same
    type: Name


class Recorded(Record):
    """The history, the part of it that is replayed, and defaults for missing fields."""

    file: Path  # beside the scenario's file
    format: str = ""  # "" = as the content says
    columns: dict[str, str] = Field(default_factory=dict)  # of a plain CSV file
    lenient: bool = False  # skip lines that are wrong
    from_s: float | None = None  # jobs submitted at or after, in seconds of the history
    to_s: float | None = None  # and before
    speeds: Literal["none", "measured-mix", "gavel-types", "own"] = "none"
    rules: tuple[Rule, ...] = ()  # the first that fits says a job's type; else a hash of the job
    gpus_from: Literal["gpus", "cores"] = "gpus"  # cores = each processor is played as a GPU
    unfit: Literal["refuse", "drop"] = "refuse"  # jobs that fit no pool of the cluster
    gpu_names: dict[str, GpuName] = Field(default_factory=dict)  # the history's -> the catalogue's
    cores_per_gpu: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 1  # of a job that does not say
    memory_gb_per_gpu: Amount = 0.0
    gpu_memory_gb: Amount = 0.0
    requested_s: Seconds | None = None  # None = the longest run in the history
    priority: Priority = 0.5
    priorities: dict[str, Priority] = Field(default_factory=dict)  # by qos
    checkpoint_s: Annotated[float, Field(ge=0, le=1e9)] | None = None  # of all jobs; None = cannot
    communication: Extra = 0.0  # of all jobs

    @model_validator(mode="after")
    def _some_time(self) -> Recorded:
        if self.from_s is not None and self.to_s is not None and self.to_s <= self.from_s:
            raise ValueError(f"to_s {self.to_s:g} is not after from_s {self.from_s:g}")
        return self
