"""Measures how well run times of a history can be predicted, for `adlro trace predict`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.table import Table

    from adlro.estimates.estimator import Estimator, Explanation, Progress
    from adlro.model.history import History


class Measured(NamedTuple):
    """The figures to print, and the estimator `memory` as it is after the last event."""

    figures: dict[str, Any]
    learned: Estimator


@contextlib.contextmanager
def _progress(history: History) -> Iterator[Progress]:
    """Show a progress bar on stderr if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from adlro.evaluate.prediction_error import events

    console = Console(stderr=True)
    columns = (TextColumn("predicting"), BarColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=events(history))
        yield lambda done: bar.update(task, completed=done)


def _place(history: History, wanted: str) -> int:
    """Return the row of a job, given its id, or its place from 1 on if the source has no ids."""
    from adlro.errors import TraceError

    if history.id:
        if wanted in history.id:
            return history.id.index(wanted)
        raise TraceError(
            f"{history.header.source}: has no job {wanted!r}; the first is {history.id[0]!r}"
        )
    is_short = len(wanted) <= len(str(history.jobs))  # Python refuses to read thousands of digits
    if wanted.isdecimal() and is_short and 1 <= int(wanted) <= history.jobs:
        return int(wanted) - 1
    raise TraceError(
        f"{history.header.source}: gives no ids; say which job of 1 to {history.jobs:,}, "
        f"not {wanted[:20]!r}"
    )


def _name(history: History, place: int) -> str:
    if place < 0:
        return "older jobs like these"
    return history.id[place] if history.id else str(place + 1)


def _explained(history: History, place: int, found: Explanation) -> dict[str, Any]:
    ran = float(history.run_s[place])
    return {
        "job": _name(history, place),
        "estimate_s": found.seconds,
        "confidence": found.confidence,
        "interval_80_s": list(found.interval),
        "spread_log": found.spread,
        "run_s": ran,
        "requested_s": float(history.requested_s[place]),
        "matched": found.matched,
        "sources": [
            {"job": _name(history, one.source), "share": one.share, "says_s": one.seconds}
            for one in found.sources
        ],
    }


def notes(history: History) -> list[str]:
    """Return what a history has or lacks, and what estimators do about it, as sentences."""
    import numpy as np

    from adlro.evaluate.prediction_error import gpu_models

    found = []
    models = gpu_models(history)
    if models:
        unknown = int((history.gpu_model < 0).sum())
        rest = f"; {unknown:,} jobs name none, and are predicted for {models[0]}" if unknown else ""
        found.append(
            f"each job is predicted for the GPU model that it ran on: {', '.join(models)}{rest}"
        )
    users = np.unique(history.user[history.user >= 0])
    if len(users) == 0:
        found.append("no job names its user: last two and user mean take all jobs as one user's")
    elif len(users) == 1 and history.missing("user") == 0:
        found.append("all jobs are of one user: last two and user mean are those of all jobs")
    ran = history.run_s[~np.isnan(history.run_s)]
    if len(ran) > 1 and (ran == ran[0]).all():
        found.append(f"all run times are {ran[0]:,.0f} s: that tells no estimators apart")
    return found


def measure(history: History, warm_up: float, job: str | None) -> Measured:
    """Measure all estimators on the jobs after the warm-up; explain one job if it is named.

    Raises:
        TraceError: there is no such job, or nothing can be measured.
    """
    import numpy as np

    from adlro.cli.options import say_if_slow
    from adlro.errors import TraceError
    from adlro.estimates.errors import later_part
    from adlro.evaluate import prediction_error

    history = history.without_lost()
    place = None if job is None else _place(history, job)
    with say_if_slow(), _progress(history) as progress:
        found = prediction_error.prediction_errors(history, progress)
    later = later_part(history, warm_up)
    errors, coverage, versus = (
        found.errors(later),
        found.coverage(later),
        found.memory_versus(later),
    )
    if errors["memory"].jobs == 0:
        raise TraceError(
            f"{history.header.source}: "
            + (
                "no job of the later part has both a submission and a run time; lower --warm-up"
                if np.isnan(found.jobs.log_s[later]).all()
                else "no job had ended when those of the later part were submitted, so that "
                "nothing can be predicted; take a longer part of the history"
            )
        )
    figures: dict[str, Any] = {
        "file": history.header.source,
        "jobs": history.jobs,
        "measured_jobs": errors["memory"].jobs,
        "warm_up": warm_up,
        "estimators": {
            name: {key: value for key, value in one._asdict().items() if key != "jobs"}
            | {"in_80": coverage[name]}
            | ({"memory_minus": versus[name].model_dump()} if name in versus else {})
            for name, one in errors.items()
        },
        "reliability": {
            name: [row._asdict() for row in rows] for name, rows in found.reliability(later).items()
        },
        "notes": notes(history),
    }
    if place is not None:
        with _progress(history) as progress:
            explanation = prediction_error.explain(history, place, progress)
            figures["job"] = _explained(history, place, explanation)
    return Measured(figures, found.learned["memory"])


def _difference(row: dict[str, Any]) -> str:
    """Format the error of `memory` against that of an estimator, in percent of the latter."""
    if "memory_minus" not in row or not row["mae_log"] > 0:
        return ""
    found, scale = row["memory_minus"], 100 / row["mae_log"]
    if found["ci95"] is None:
        return f"{scale * found['mean']:+.1f}"
    low, high = (scale * end for end in found["ci95"])
    return f"{scale * found['mean']:+.1f} ({low:+.0f} to {high:+.0f})"


def error_table(figures: dict[str, Any]) -> Table:
    """Return the table of errors, with one row per estimator."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    table.add_column("estimator", no_wrap=True)
    table.add_column("mean |log error|", justify="right")
    table.add_column("memory vs it, %", justify="right", no_wrap=True)
    for heading in ("within 2×", "too short", "in 80 % interval"):
        table.add_column(heading, justify="right")
    for name, one in figures["estimators"].items():
        shares = (f"{one[key] * 100:.1f} %" for key in ("within_2", "under", "in_80"))
        table.add_row(name, f"{one['mae_log']:.3f}", _difference(one), *shares)
    return table


def reliability_table(figures: dict[str, Any]) -> Table:
    """Return the reliability table of the estimator `memory`, with one row per tenth."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    table.add_column("confidence of memory")
    for heading in ("jobs", "mean", "within 2×"):
        table.add_column(heading, justify="right")
    for row in figures["reliability"]["memory"]:
        span = f"{row['low']:.1f} to {row['high']:.1f}"
        shares = (f"{100 * row[key]:.1f} %" for key in ("confidence", "within_2"))
        table.add_row(span, f"{row['jobs']:,}", *shares)
    return table


def job_lines(job: dict[str, Any]) -> Iterator[str]:
    """Yield lines of text that explain the estimate of one job."""
    asked = job["requested_s"]
    request = "no request" if math.isnan(asked) else f"requested {asked:,.0f} s"
    run_s = job["run_s"]
    ran = "its run time is not known" if math.isnan(run_s) else f"it ran {run_s:,.0f} s"
    found = job["estimate_s"]
    estimate = "no estimate" if math.isnan(found) else f"estimate {found:,.0f} s"
    yield (f"job {job['job']}: {estimate}, confidence {job['confidence']:.2f} ({request}; {ran})")
    if not math.isnan(found):
        low, high = job["interval_80_s"]
        yield f"  with a probability of 80 % it runs {low:,.0f} to {high:,.0f} s"
        yield (
            f"  confidence: it runs between {found / 2:,.0f} and {2 * found:,.0f} s (half to twice "
            f"the estimate) with a probability of {100 * job['confidence']:.0f} %"
        )
    if not math.isnan(job["spread_log"]):
        yield f"  jobs like it differ from that by a factor of {math.exp(job['spread_log']):.1f}"
    yield f"  likest jobs: {job['matched'] or 'nothing had ended yet'}"
    for one in job["sources"]:
        yield f"  {one['share'] * 100:5.1f} %  {one['says_s']:>9,.0f} s  {one['job']}"


def show(figures: dict[str, Any]) -> None:
    """Print the figures as text and a table."""
    from adlro.cli.options import say, stdout
    from adlro.evaluate.prediction_error import BLOCKS

    say(
        f"{figures['file']}: the later {figures['measured_jobs']:,} of {figures['jobs']:,} jobs, "
        "each predicted at its submission from jobs that had ended"
    )
    for note in figures["notes"]:
        say(note)
    stdout().print(error_table(figures), markup=False, highlight=False)
    stdout().print(
        "memory vs it: the mean |log error| of memory against the row's, on the same jobs, with a "
        f"95 % interval over {BLOCKS} blocks of jobs in a row; below 0 memory is better.",
        markup=False,
        highlight=False,
    )
    stdout().print(reliability_table(figures), markup=False, highlight=False)
    if "job" in figures:
        for line in job_lines(figures["job"]):
            say(line)
