"""The request and the plan of a training; stored as plan.json when the training begins."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from adlro import __version__
from adlro.config.scenario import Scenario
from adlro.features.start_kernel import FEATURES
from adlro.model.record import Record
from adlro.train.expand_kernel import COSTS

H = TypeVar("H", bound=Record)


class TrainingRequest(Record, Generic[H]):
    """What the user asked for: algorithm, scenario, seed, budget and hyperparameters."""

    algorithm: str
    scenario: Scenario
    seed: int = 0
    budget_s: float | None = None  # CPU seconds
    episodes: int | None = None  # instead of a budget
    hyperparameters: H  # before they are scaled to the budget


class TrainingPlan(Record, Generic[H]):
    """A request, and the hyperparameters scaled to its budget; fixed when the training begins."""

    version: str = __version__
    format: Literal[2] = 2
    columns: tuple[str, ...] = (*FEATURES, *COSTS)  # of stored labels
    request: TrainingRequest[H]
    hyperparameters: H  # scaled to the budget


def difference(ours: TrainingPlan[H], theirs: TrainingPlan[H]) -> str | None:
    """Describe the first entry of the stored plan `theirs` that differs from ours; None = equal."""
    if (ours.version, ours.columns) != (theirs.version, theirs.columns):
        return f"adlro {theirs.version}, this is {ours.version}"
    for key, value in ours.request:
        other = getattr(theirs.request, key)
        if value == other:
            continue
        if key == "hyperparameters":
            return _other_hyperparameters(ours.request.hyperparameters, other)
        if key == "scenario":
            return f"another scenario ({other.name})"
        return f"{key.removesuffix('_s')} {other}"
    return None


def _other_hyperparameters(ours: Record, theirs: Record) -> str:
    key, other = next(
        (key, getattr(theirs, key)) for key, value in ours if value != getattr(theirs, key)
    )
    shown = key.removeprefix("is_").replace("_", "-")
    if isinstance(other, Record | tuple):
        return f"other hyperparameters ({shown})"
    return f"{shown} {other}"
