"""Types that describe a file format, with the functions that recognise it and read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from adlro.errors import TraceError
from adlro.model.history import Header, History
from adlro.workloads.formats.gather import Columns, HistoryBuilder, ReadOptions
from adlro.workloads.formats.table import Rows, Style, Table
from adlro.workloads.formats.text_file import TextFile

_LINES = 200  # that are examined

LOCAL = "local time, zone unknown"


class Head(NamedTuple):
    """The beginning of a file, from which its format is recognised: bytes and non-blank lines."""

    raw: bytes
    lines: tuple[str, ...]  # without those that are blank

    @property
    def names(self) -> tuple[str, ...]:
        """Fields of the first non-blank line, split at commas."""
        return tuple(name.strip() for name in self.lines[0].split(",")) if self.lines else ()

    def first_field(self, line: int) -> str:
        """Return the text of a line, counted from 0, up to its first comma; "" = no such line."""
        return self.lines[line].split(",")[0] if line < len(self.lines) else ""


def head_of(raw: bytes) -> Head:
    """Return the head of a file from its first bytes."""
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = [line for line in text.split("\n")[:_LINES] if line.strip()]
    return Head(raw, tuple(lines))


class Format(NamedTuple):
    """A file format: its name, a description, and functions that recognise and read such files."""

    name: str
    about: str
    recognises: Callable[[Head], bool]
    read: Callable[[TextFile, ReadOptions], History]


class TableFormat(NamedTuple):
    """A format of text tables with fixed columns, and how they become columns of a history."""

    name: str
    about: str
    needs: tuple[str, ...]  # columns that every such file has
    columns: Callable[[Rows], Columns]
    style: Style = Style()
    notes: tuple[str, ...] = ()  # caveats for readers of the figures
    clock: str = ""


def read_table(kind: TableFormat, source: TextFile, options: ReadOptions) -> History:
    """Read the history in a file that is a table of this format.

    Raises:
        TraceError: a column is missing, or a line is defective and the options are not lenient.
    """
    table = Table(source, kind.style)
    builder = HistoryBuilder(source.path, options)
    for rows in table.parts():
        if rows.names:
            builder.add(rows, kind.columns(rows))
        else:
            builder.add(rows, {})
    notes = (*kind.notes, *(f"skipped {text}" for text in builder.skipped))
    header = Header(format=kind.name, source=source.path.name, clock=kind.clock, notes=notes)
    return builder.finish(header)


def of_table(kind: TableFormat, also: Callable[[Head], bool] = lambda _: True) -> Format:
    """Return the Format of comma-separated tables with the columns `kind.needs`.

    A file is recognised if it has all of these columns and also(head) is True.
    """

    def recognises(head: Head) -> bool:
        return set(kind.needs) <= set(head.names) and also(head)

    def read(source: TextFile, options: ReadOptions) -> History:
        return read_table(kind, source, options)

    return Format(kind.name, kind.about, recognises, read)


def refuse_empty(source: TextFile, head: Head) -> None:
    """Raise TraceError if a file has no text."""
    if not head.lines:
        raise TraceError(f"{source.path}: is empty")
