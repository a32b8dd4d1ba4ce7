"""HTML tables with escaped cells, which page.js sorts by a click on a heading."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from adlro.evaluate.report.frame import text


class Cell(NamedTuple):
    """A cell of a table."""

    text: str  # plain
    order: float | None = None  # sort key; None = last, or by the text in a column of words
    is_best: bool = False


NOTHING = Cell("")


class Column(NamedTuple):
    """A column of a table with its cells."""

    heading: str
    about: str  # shown while the mouse is over the heading
    cells: Sequence[Cell]
    is_words: bool = False  # words, to the left and wrapped; False = figures


class Row(NamedTuple):
    """The first cell of a row, and whether the row is marked as the best."""

    name: str
    is_best: bool = False


def words(heading: str, texts: Sequence[str], about: str = "") -> Column:
    """Return a column of words."""
    return Column(heading, about, [Cell(word) for word in texts], is_words=True)


def render(first: str, rows: Sequence[Row], columns: Sequence[Column]) -> str:
    """Return a table as HTML; `first` is the heading of the column of the rows' names."""
    named = Column(first, "click a heading to sort", [], is_words=True)
    head = "".join(_th(column) for column in (named, *columns))
    lines = []
    for i, row in enumerate(rows):
        cells = "".join(_td(column.cells[i], column) for column in columns)
        mark = ' class="best"' if row.is_best else ""
        lines.append(f'<tr{mark}><th scope="row">{text(row.name)}</th>{cells}</tr>')
    return (
        f'<div class="wide"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _unbroken(words: str) -> str:
    """Return the text of a cell that can break before a bracket, but not within its figures."""
    inside = re.sub(r"\([^)]*\)", lambda found: found[0].replace(" ", "\u00a0"), words)
    return inside.replace(" ± ", "\u00a0±\u00a0").replace(" %", "\u00a0%")


def _td(cell: Cell, column: Column) -> str:
    order = "" if cell.order is None else f' data-order="{cell.order:.9g}"'
    kind = ' class="words"' if column.is_words else ""
    shown = text(cell.text if column.is_words else _unbroken(cell.text))
    return f"<td{kind}{order}>{f'<b>{shown}</b>' if cell.is_best else shown}</td>"


def _th(column: Column) -> str:
    kind = ' class="words"' if column.is_words else ""
    return (
        f'<th{kind} scope="col" title="{text(column.about)}"><button type="button">'
        f"{text(column.heading)}</button></th>"
    )
