"""What `adlro train` prints at the end: a table, the figures as JSON, and a last line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from adlro.config.scenario import Scenario
    from adlro.train.paper_dqn import PaperDqnTraining, Point
    from adlro.train.plan import TrainingRequest
    from adlro.train.run import PolicyFiles, TrainingResult
    from adlro.train.tuning import TunedTraining

    Result = TrainingResult[Any]
    Request = TrainingRequest[Any]

_ROWS = 10  # of a learning curve


def _table(title: str, caption: str, headings: tuple[str, ...]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=title,
        caption=caption,
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def table(result: Result, request: Request) -> Table:
    """Return the table to print: a comparison at each load, or a learning curve."""
    from adlro.train.tuning import TunedTraining

    if isinstance(result.training, TunedTraining):
        return _comparison(result, result.training, request)
    return _curve(result, result.training, request)


def _comparison(result: Result, training: TunedTraining[Any], request: Request) -> Table:
    from adlro.train.evaluation import percent

    names = list(training.comparison[0].jct)
    found = _table(
        f"{request.scenario.name} · mean JCT · {result.policy.evaluation.seeds} selection seeds",
        "(a to b): 95 % intervals, paired seed by seed. The policy was chosen by these "
        "seeds: expect a little less on others.",
        ("load", *(f"vs {name}" for name in names), "p99 JCT vs min-min"),
    )
    for row in training.comparison:
        figures = (*row.jct.values(), row.p99_vs_min_min)
        found.add_row(f"{row.load:g}", *(percent(figure) for figure in figures))
    return found


def _curve(result: Result, training: PaperDqnTraining, request: Request) -> Table:
    used = request.hyperparameters
    found = _table(
        f"{request.scenario.name} · mean JCT · {used.evaluation_seeds} selection seeds",
        f"the last network vs min-min on {used.final_seeds} of them: {gain(result)}",
        ("episodes", "greedy policy, s", "in training, s", "epsilon", "loss"),
    )
    for point in _some(training.points):
        training_jct = "" if point.training_jct_s is None else f"{point.training_jct_s:,.0f}"
        found.add_row(
            f"{point.episodes:,}", f"{point.jct_s:,.0f}", training_jct, f"{point.epsilon:.2f}",
            f"{point.loss:.4f}",
        )  # fmt: skip
    for name, value in training.levels.items():
        found.add_row(name, f"{value:,.0f}")
    return found


def _some(points: tuple[Point, ...]) -> list[Point]:
    """Return about ten points at even distances, the last one included."""
    every = max(len(points) // _ROWS, 1)
    return list(reversed(points[::-1][::every]))


def gain(result: Result) -> str:
    """Format the difference of the objective from Min-Min's, in percent."""
    from adlro.train.evaluation import percent

    return percent(result.policy.evaluation.gain)


def figures(result: Result, request: Request, files: PolicyFiles) -> str:
    """Return all figures of a training as JSON."""
    from adlro.cli.options import as_json
    from adlro.train.tuning import TunedTraining

    training, found = result.training, result.policy.evaluation
    data = {
        "scenario": request.scenario.name,
        "algorithm": request.algorithm,
        "seed": request.seed,
        "file": str(files.weights),
        "gain_pct": found.gain.model_dump(),
        "selection_seeds": found.seeds,
        "budget": result.card.budget.model_dump(),
    }
    if isinstance(training, TunedTraining):
        data |= {
            "objective": getattr(request.hyperparameters, "objective", "jct"),
            "source": training.chosen().source,
            "p99_ratio": found.p99_ratio,
            "table": [row.flat() for row in training.comparison],
        }
    else:
        data |= {
            "levels": training.levels,
            "curve": [point.model_dump() for point in training.points],
        }
    return as_json(data)


def advice(trained_on: Scenario, name: str, weights: Path) -> str:
    """Suggest how to compare the policy on jobs that it was not trained on.

    Other seeds give other generated jobs; for a history, only another part of it does.
    """
    if trained_on.history is None:
        return f"try: adlro compare {name} --policies min-min,{weights}"
    return (
        "compare it on a later part of the history, not on jobs that it was trained on: train with "
        "`adlro trace scenario … --to 50%`, compare with --from 50%"
    )


def stopped(result: Result, files: PolicyFiles) -> str:
    """Describe the policy that was written when Ctrl-C stopped the training."""
    from adlro.train.tuning import TunedTraining

    if isinstance(result.training, TunedTraining):
        return f"stopped; {files.weights} holds the best so far ({gain(result)} vs min-min)"
    return (
        f"stopped after {result.card.budget.episodes:,} episodes; {files.weights} holds the "
        f"network as it is ({gain(result)} vs min-min)"
    )


def done(result: Result, files: PolicyFiles, next_command: str) -> str:
    """Return the last line to print after a complete training."""
    from adlro.train.tuning import TunedTraining

    what, source = "mean JCT", ""
    if isinstance(result.training, TunedTraining):
        what, source = result.policy.objective, f", from {result.training.chosen().source}"
    return f"{files.weights} and its card: {what} {gain(result)} vs min-min{source}; {next_command}"
