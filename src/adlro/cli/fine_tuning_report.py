"""What `adlro train` prints at the end of a fine-tuning: as train_report.py, for its figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from adlro.config.scenario import Scenario
    from adlro.train.fine_tuning import FineTuning
    from adlro.train.held_out import HeldOut
    from adlro.train.plan import TrainingRequest
    from adlro.train.run import PolicyFiles, TrainingResult

    Result = TrainingResult[FineTuning]
    Request = TrainingRequest[Any]


def _held_out(result: Result) -> HeldOut:
    found = result.training.held_out
    assert found is not None, "the training is complete"
    return found


def table(result: Result, request: Request) -> Table:
    """Return the table to print: the start and the tuned policy on the held-out jobs."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.train.held_out import percent

    found, start = _held_out(result), result.training.start.name
    lines = (
        f"{found.where}. (a to b): 95 % intervals, windows are the unit.",
        *(f"Note: {note}." for note in result.training.notes),
    )
    made = Table(
        title=f"{request.scenario.name} · fine-tuned from {start} · load {found.load:g}",
        caption="\n".join(line[:1].upper() + line[1:] for line in lines),
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    made.add_column("policy")
    for heading in (f"mean JCT vs {start}", f"p99 JCT vs {start}", "mean JCT vs min-min"):
        made.add_column(heading, justify="right")
    made.add_row(start, "", "", percent(found.start_vs_min_min))
    if found.tuned is not None:
        tuned = found.tuned
        figures = (tuned.jct, tuned.p99, tuned.jct_vs_min_min)
        made.add_row(result.training.best.source, *(percent(figure) for figure in figures))
    return made


def figures(result: Result, request: Request, files: PolicyFiles) -> str:
    """Return all figures of a fine-tuning as JSON."""
    from adlro.cli.options import as_json

    training, found = result.training, _held_out(result)
    selected = training.best.evaluation
    data = {
        "scenario": request.scenario.name,
        "algorithm": request.algorithm,
        "seed": request.seed,
        "file": str(files.weights),
        "from": training.start.name,
        "from_sha256": training.start.card.sha256_weights,
        "is_shipped": found.is_shipped,
        "reason": found.reason,
        "source": training.chosen().source,
        "jobs": {
            "training": training.cut.first,
            "selection": training.cut.last - training.cut.first,
            "held_out": training.cut.held_out,
        },
        "selection": {"windows": selected.seeds, "gain_vs_start_pct": selected.gain.model_dump()},
        "held_out": found.model_dump(),
        "notes": training.notes,
        "budget": result.card.budget.model_dump(),
    }
    return as_json(data)


def advice(trained_on: Scenario, name: str, weights: Path) -> str:
    """Suggest how to use the policy."""
    del trained_on
    return f"use it as --policies {weights}; jobs before the last part of {name} have tuned it"


def stopped(result: Result, files: PolicyFiles) -> str:
    """Describe the policy that was written when Ctrl-C stopped the training."""
    from adlro.train.evaluation import percent

    best, start = result.training.best, result.training.start.name
    return (
        f"stopped; {files.weights} holds the best so far, from {best.source} "
        f"({percent(best.evaluation.gain)} vs {start} on the selection windows, not compared on "
        "the held-out jobs yet)"
    )


def done(result: Result, files: PolicyFiles, next_command: str) -> str:
    """Return the last line to print after a complete training."""
    found, start = _held_out(result), result.training.start
    if found.is_shipped:
        source = result.training.best.source
        return (
            f"{files.weights} and its card: tuned from {start.name}, {source}; {found.reason}; "
            f"{next_command}"
        )
    return f"{files.weights} and its card: {start.words} unchanged, since {found.reason}"
