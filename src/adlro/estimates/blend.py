"""The second stage of the estimator `memory` (blend_kernel.py) as a part of its file."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from adlro.estimates.blend_kernel import EXPERTS, LATEST, ROWS, SLOTS, Blend, empty
from adlro.estimates.calibration import Amount, LogSeconds
from adlro.model.record import Record
from adlro.model.state import Row

Key = Annotated[int, Field(ge=1, lt=1 << 64)]
_LogWeight = Annotated[float, Field(ge=-1e6, le=1e6)]
Weights = Annotated[tuple[_LogWeight, ...], Field(min_length=EXPERTS, max_length=EXPERTS)]


class _Group(Record):
    jobs: Annotated[int, Field(ge=1, le=1 << 53)]
    mean: LogSeconds
    latest: tuple[LogSeconds, ...]

    @model_validator(mode="after")
    def _has_the_latest_jobs(self) -> Self:
        if len(self.latest) != min(self.jobs, LATEST):
            raise ValueError("latest: not those of the jobs")
        return self


class SavedBlend(Record):
    """Weights of the experts, and the groups of alike jobs by their keys.

    What experts said of jobs that have not ended is not saved: their ends will judge nobody.
    """

    log_weights: Annotated[tuple[Weights, ...], Field(min_length=ROWS, max_length=ROWS)]
    learned: Annotated[tuple[Amount, ...], Field(min_length=ROWS, max_length=ROWS)]
    groups: Annotated[dict[Key, _Group], Field(max_length=SLOTS)]
    everyone: _Group | None  # all jobs; None = none has ended


def _saved(row: Row) -> _Group:
    jobs = int(row["jobs"])
    return _Group(
        jobs=jobs,
        mean=float(row["mean"]),
        latest=tuple(row["latest"][: min(jobs, LATEST)].tolist()),
    )


def _restore(group: _Group, key: int, row: Row) -> None:
    row["key"], row["jobs"], row["mean"] = key, group.jobs, group.mean
    row["latest"][: len(group.latest)] = group.latest


def saved_blend(blend: Blend) -> SavedBlend:
    """Return what the second stage has learned."""
    groups = blend.groups[blend.groups["key"] > 0]
    everyone = blend.everyone[0]
    return SavedBlend(
        log_weights=tuple(tuple(row) for row in blend.log_weights.tolist()),
        learned=tuple(blend.learned.tolist()),
        groups={int(row["key"]): _saved(row) for row in groups},
        everyone=_saved(everyone) if everyone["jobs"] > 0 else None,
    )


def restored(saved: SavedBlend, models: int = 1) -> Blend:
    """Return the second stage that was saved, for a memory of this number of GPU models."""
    blend = empty(models)
    blend.log_weights[:], blend.learned[:] = saved.log_weights, saved.learned
    for key, group in saved.groups.items():
        _restore(group, key, blend.groups[key & (SLOTS - 1)])
    if saved.everyone is not None:
        _restore(saved.everyone, 0, blend.everyone[0])
    return blend
