"""How closely a simulation reproduces what was recorded, as it is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from adlro.evaluate.calibration import Calibration, Means

_MOST_PARTITIONS = 8  # rows of the table


def _cells(means: Means) -> tuple[str, str, str]:
    change = means.difference_pct
    return (
        f"{means.recorded:,.0f}",
        f"{means.simulated:,.0f}",
        "" if change is None else f"{change:+,.1f}",
    )


def shown(found: Calibration) -> list[RenderableType]:
    """Return the sentence on how closely the record is met, a table by partition, and reasons."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from adlro.errors import printable

    parts: list[RenderableType] = [found.headline()]
    if len(found.partitions) > 1:
        table = Table(box=SIMPLE_HEAD, collapse_padding=True)
        table.add_column("partition", overflow="fold")
        for heading in ("jobs", "wait s,\nrecorded", "simu-\nlated", "%"):
            table.add_column(heading, justify="right")
        for heading in ("JCT s,\nrecorded", "simu-\nlated", "%"):
            table.add_column(heading, justify="right")
        for one in found.partitions[:_MOST_PARTITIONS]:
            name = printable(one.partition or "unknown")
            table.add_row(name, f"{one.jobs:,}", *_cells(one.wait_s), *_cells(one.jct_s))
        parts.append(table)
        rest = len(found.partitions) - _MOST_PARTITIONS
        if rest > 0:
            parts.append(f"{rest:,} more partitions are in the JSON.")
    parts.extend(f"Likely reason: {reason}." for reason in found.reasons)
    return parts
