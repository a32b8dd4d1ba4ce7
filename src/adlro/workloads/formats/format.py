"""What a format is: how it is recognised, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from adlro.errors import TraceError
from adlro.model.history import Header, History
from adlro.workloads.formats.gather import Columns, Gathered, Reading
from adlro.workloads.formats.table import Rows, Style, Table
from adlro.workloads.formats.text_file import Source

_LINES = 200  # that are looked at

LOCAL = "local time, zone unknown"


class Head(NamedTuple):
    """The beginning of a file."""

    raw: bytes
    lines: tuple[str, ...]  # without those that are blank

    @property
    def names(self) -> tuple[str, ...]:
        """The fields of the first line, if commas are between them."""
        return tuple(name.strip() for name in self.lines[0].split(",")) if self.lines else ()

    def first_field(self, line: int) -> str:
        """What a line begins with, up to the first comma."""
        return self.lines[line].split(",")[0] if line < len(self.lines) else ""


def head_of(raw: bytes) -> Head:
    """What can be told of a file from its first bytes."""
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = [line for line in text.split("\n")[:_LINES] if line.strip()]
    return Head(raw, tuple(lines))


class Format(NamedTuple):
    """A kind of file."""

    name: str
    about: str
    recognises: Callable[[Head], bool]
    read: Callable[[Source, Reading], History]


class Plan(NamedTuple):
    """A table whose columns always mean the same."""

    name: str
    about: str
    needs: tuple[str, ...]  # columns without which it is another format
    columns: Callable[[Rows], Columns]
    style: Style = Style()
    notes: tuple[str, ...] = ()  # what a reader of the figures should know
    clock: str = ""


def read_table(plan: Plan, source: Source, reading: Reading) -> History:
    """All rows of a table.

    Raises:
        TraceError: a column is not there, or (strict) a line is wrong.
    """
    table = Table(source, plan.style)
    gathered = Gathered(source.path, reading)
    for rows in table.parts():
        if rows.names:
            gathered.add(rows, plan.columns(rows))
        else:
            gathered.add(rows, {})
    notes = (*plan.notes, *(f"skipped {text}" for text in gathered.skipped))
    header = Header(format=plan.name, source=source.path.name, clock=plan.clock, notes=notes)
    return gathered.finish(header)


def of_table(plan: Plan, also: Callable[[Head], bool] = lambda _: True) -> Format:
    """The format of a table with commas, known by its columns and what `also` says."""

    def recognises(head: Head) -> bool:
        return set(plan.needs) <= set(head.names) and also(head)

    def read(source: Source, reading: Reading) -> History:
        return read_table(plan, source, reading)

    return Format(plan.name, plan.about, recognises, read)


def refuse_empty(source: Source, head: Head) -> None:
    """Raise TraceError for a file with nothing in it."""
    if not head.lines:
        raise TraceError(f"{source.path}: is empty")
