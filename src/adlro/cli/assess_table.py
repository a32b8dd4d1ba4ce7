"""Prints an assessment: a table of all assumptions, the verdict, who loses, what is assumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adlro.cli import options

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from adlro.evaluate.assess import Assessment, Cell, Pooled
    from adlro.evaluate.stats import Estimate
    from adlro.evaluate.verdict import Verdict

_WIDTH = 104  # of lines of text
_MOST_GROUPS = 8  # rows of the table of losers
_SPEEDS = {"none": "all alike", "measured-mix": "measured mix", "gavel-types": "Gavel's types"}


def as_json(found: Assessment, told: Verdict, command: str) -> str:
    """Return everything as JSON text."""
    from adlro.evaluate.comparison import versions

    facts = {
        "command": command,
        "versions": versions(),
        "verdict": told.model_dump(),
        **found.model_dump(),
        "losers": [one.model_dump() for one in found.losers],
    }
    return options.as_json(facts)


def shown(found: Assessment, told: Verdict) -> RenderableType:
    """Return the whole output."""
    from rich.console import Group

    parts: list[RenderableType] = [line(text) for text in _head(found)]
    parts += [_cells(found), line(_CAPTION)]
    parts += section("Verdict", told.sentences)
    parts += [line(""), _groups(found)]
    if found.findings:
        parts += section("What stands out today", [one.text for one in found.findings])
    parts += section("What is assumed", [*found.assumptions, *found.notes, *_reference(found)])
    parts += [line(""), line("Next")]
    for step in told.next:
        parts += [line(f"  # {step.purpose}"), line(f"  {step.command}")]
    return Group(*parts)


_CAPTION = (
    "Mean completion time of slurm in hours; of the others the change against it in percent, with "
    "95 % intervals paired by window."
)


def _head(found: Assessment) -> list[str]:
    lead_in = f"the first {found.lead_in_jobs:,} jobs"
    if found.runs == 1:
        told = f"; {lead_in} lead in, and chose the estimator"
    else:
        told = f" in {found.runs} parts; {lead_in} of each lead in, those of the first chose the "
        told += "estimator"
    return [
        f"{found.history} on {found.cluster}: {found.jobs:,} GPU jobs in {found.days:.1f} days, "
        f"{found.gpus:,} GPUs, load {found.load:.2f}",
        f"{found.windows} windows of {found.window_jobs:,} jobs{told}: {found.estimator.name}",
    ]


def line(text: str) -> Text:
    """Return a line of text, wrapped; its words are printed literally."""
    from rich.text import Text

    from adlro.errors import printable

    return Text(printable(text), overflow="fold")


def section(title: str, sentences: Sequence[str]) -> list[RenderableType]:
    """Return a title and a list of sentences below it."""
    from rich.padding import Padding

    listed: list[RenderableType] = [Padding(_hanging(text), (0, 0, 0, 2)) for text in sentences]
    return [line(""), line(title), *listed]


def _hanging(text: str) -> Table:
    """Return a bullet with its text, continued under the text."""
    from rich.table import Table

    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column(max_width=_WIDTH)
    table.add_row("-", line(text))
    return table


def _cells(found: Assessment) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    cells = [cell for cell in found.cells if not cell.is_reference]
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), collapse_padding=True)
    table.add_column("speeds\nestimates", no_wrap=True)
    for cell in cells:
        table.add_column(f"{_SPEEDS[cell.speeds]}\n{cell.estimates}", justify="right")
    if found.recorded is not None:
        table.add_row("recorded", *([_hours(found.recorded["mean_jct_s"])] * len(cells)))
    rows = sorted(found.pooled, key=lambda row: row.versus_today_pct is not None)
    for row in rows:
        table.add_row(row.name, *(_cell(cell, row) for cell in cells))
    return table


def _hours(figure: Estimate) -> str:
    from adlro.evaluate.durations import hours

    return f"{hours(figure.mean)} h"


def _cell(cell: Cell, row: Pooled) -> str:
    found = cell.row(row.name)
    if found is None:
        return ""
    if found.versus_today_pct is None:
        return _hours(found.mean_jct_s)
    one = found.versus_today_pct
    if one.ci95 is None:
        return f"{one.mean:+.1f}"
    return f"{one.mean:+.1f}\n({one.ci95[0]:+.0f} to {one.ci95[1]:+.0f})"


def _groups(found: Assessment) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.evaluate.durations import change, changes, durations

    if not found.losers:
        return line("Who would wait longer under ADLRO: no account, partition or gang size.")
    table = Table(box=SIMPLE_HEAD, title="Who would wait longer under ADLRO", title_justify="left")
    table.add_column("")
    for heading in ("jobs", "wait today", "wait then", "change", "95 % interval", "longer under"):
        table.add_column(heading, justify="right")
    for one in found.losers[:_MOST_GROUPS]:
        ci = one.change_s.ci95
        table.add_row(
            line(one.label),
            f"{one.jobs:,}",
            *durations(one.before_s, one.after_s),
            change(one.change_s.mean),
            "" if ci is None else " to ".join(changes(*ci)),
            f"{one.longer_in} of {one.assumptions}",
        )
    rest = len(found.losers) - _MOST_GROUPS
    if rest > 0:
        table.caption = f"and {rest} more (--json has all)"
    return table


def _reference(found: Assessment) -> list[str]:
    """Return a sentence on what ADLRO would gain if run times were known in advance."""
    from adlro.evaluate.assess import OURS

    rows = [cell.row(OURS) for cell in found.cells if cell.is_reference]
    changes = [row.versus_today_pct.mean for row in rows if row and row.versus_today_pct]
    if not changes:
        return []
    return [
        "as a reference only: with run times known in advance (oracle), which no scheduler has, "
        f"ADLRO would be at {min(changes):+.1f} to {max(changes):+.1f} %"
    ]
