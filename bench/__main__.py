"""`python -m bench`: measure speeds on this machine, side by side with other simulators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from adlro.cli.options import FILE, check_json_file, hand_out

if TYPE_CHECKING:
    from rich.console import JustifyMethod
    from rich.table import Table

    from bench.figure import Figure
    from bench.measure import Effort


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _table(figures: list[Figure]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        caption="CPU time, best of several; both sides of a ratio alternate; see docs/bench.md",
        box=SIMPLE_HEAD,
        caption_justify="left",
    )
    for heading in ("name", "value", "unit", "ours", "theirs", "bar", ""):
        justify: JustifyMethod = "left" if heading in ("name", "unit", "") else "right"
        table.add_column(heading, justify=justify, no_wrap=heading != "unit")  # units are long
    verdicts = {None: "", True: "ok", False: "[red]misses[/red]"}
    for each in figures:
        value, ours, theirs = _number(each.value), _number(each.ours), _number(each.theirs)
        table.add_row(each.name, value, each.unit, ours, theirs, each.bar, verdicts[each.holds])
    return table


def _measure(effort: Effort) -> list[Figure]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from bench.measure import steps

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    figures: list[Figure] = []
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("preparing", total=None)
        plan = steps(effort)
        progress.update(task, total=len(plan))
        for step in plan:
            progress.update(task, description=step.about)
            figures += step.measure()
            progress.advance(task)
    return figures


@click.command("bench")
@click.option(
    "--json", "json_file", type=FILE, help="Also write all figures here as JSON; - = print them."
)
@click.option(
    "--quick", is_flag=True, help="Fewer repeats and no million jobs: faster, less precise."
)
def command(json_file: Path | None, quick: bool) -> None:
    """Measure speeds on this machine, side by side with a heapq and a simpy simulator.

    Run it at the root of the repository. It takes some minutes: it simulates clusters of up to
    10,000 GPUs and measures a start with an empty compile cache.
    """
    from bench.baseline_simulators import has_simpy
    from bench.measure import QUICK, Effort, report

    check_json_file(json_file)
    effort = QUICK if quick else Effort()
    if not has_simpy():
        click.echo("simpy is missing: its rows are left out (pip install 'adlro[bench]')", err=True)
    figures = _measure(effort)
    hand_out(_table(figures), report(figures, effort).model_dump_json(indent=2), json_file)


if __name__ == "__main__":
    command()
