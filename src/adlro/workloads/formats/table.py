"""Rows of a text file, read as columns of numbers, times and words; defects are noted by row."""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adlro.errors import TraceError, suggestion
from adlro.model.state import Floats
from adlro.workloads.formats import table_kernel as kernel
from adlro.workloads.formats.text_file import LONGEST, TextFile

_ROWS = 16_384  # handled at a time
_MOST_FIELDS = 512
_MOST_JOINED = 64  # delimiters that an open end may hold
_QUOTE = ord('"')
_SHOWN = 60  # characters of a wrong value
_UTF8 = codecs.BOM_UTF8


class Defect(NamedTuple):
    """The first defect found in a row: its kind, its line in the file and a message."""

    kind: str  # the same words for all defects of this kind
    line: int
    text: str  # message


class Style(NamedTuple):
    """How the text of a table is split into rows and fields."""

    delimiter: str = ","  # "" = any run of blanks
    quoted: bool = True
    comment: str = ""
    names: tuple[str, ...] = ()  # of the columns, if the file has no header line
    spare: int = 0  # further columns that a row may have
    open_end: str = ""  # name of a column that may hold delimiters if it is the last


def shown(text: str) -> str:
    """Return a value in quotes for an error message, shortened to 60 characters."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


class Rows:
    """R rows of a file, whose columns are read by name, and the defects found in them."""

    def __init__(
        self,
        raw: bytes,
        cells: kernel.Cells,
        lines: NDArray[np.int64],
        names: Sequence[str],
        path: Path,
    ) -> None:
        """Create rows that refer to parts of the text `raw`.

        Args:
            raw: the text.
            cells: [R, C, 2] first and end byte of each field in `raw`.
            lines: [R] line of the file where each row begins.
            names: of the C columns.
            path: of the file, for error messages.
        """
        self.lines, self.path = lines, path
        self.names = tuple(names)
        self.wrong: dict[int, Defect] = {}  # by row
        self._raw, self._bytes, self._cells = raw, np.frombuffer(raw, np.uint8), cells

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def note(self, row: int, kind: str, text: str) -> None:
        """Note a defect of a row; only the first defect of each row is stored."""
        self.wrong.setdefault(row, Defect(kind, int(self.lines[row]), text))

    def note_where(self, mask: NDArray[np.bool_], kind: str, text: Callable[[int], str]) -> None:
        """Note a defect of each row where `mask` [R] is True; text(row) is its message."""
        for row in np.flatnonzero(mask).tolist():
            self.note(row, kind, text(row))

    def where(self, mask: NDArray[np.bool_]) -> Rows:
        """Return the rows where `mask` [R] is True, with their defects."""
        places = np.flatnonzero(mask)
        some = Rows(self._raw, self._cells[places], self.lines[places], self.names, self.path)
        new = {int(old): row for row, old in enumerate(places)}
        some.wrong = {new[old]: wrong for old, wrong in self.wrong.items() if old in new}
        return some

    def _column(self, name: str) -> kernel.Cells:
        if name not in self.names:
            known = suggestion(name, self.names)
            raise TraceError(f"{self.path}:1: there is no column {name!r}; {known}")
        cells: kernel.Cells = self._cells[:, self.names.index(name)]
        return cells

    def words(self, name: str) -> list[str]:
        """Return a column as text, without surrounding blanks."""
        raw, cells = self._raw, self._column(name)
        spans = zip(cells[:, 0].tolist(), cells[:, 1].tolist(), strict=True)
        if raw.isascii():
            text = raw.decode("ascii")
            words = [text[a:b].strip() for a, b in spans]
        else:
            words = [raw[a:b].decode().strip() for a, b in spans]
        if _QUOTE in raw:
            words = [word.replace('""', '"') for word in words]
        return words

    def word(self, name: str, row: int) -> str:
        """Return the field of one row in one column as text, without surrounding blanks."""
        start, end = self._column(name)[row]
        return self._raw[start:end].decode().strip()

    def _plain(self, name: str) -> tuple[Floats, NDArray[np.int64]]:
        """Read the plain decimal numbers of a column.

        Returns:
            Numbers [R], nan where none was read, and the rows whose field is neither empty nor a
            plain decimal number.
        """
        cells = np.ascontiguousarray(self._column(name))
        values, states = np.empty(len(self)), np.empty(len(self), np.uint8)
        kernel.numbers(self._bytes, cells, values, states)
        return values, np.flatnonzero(states == kernel.UNREAD)

    def numbers(self, name: str) -> Floats:
        """Return a column as finite numbers [R]; nan = the field is empty.

        Other text becomes nan and a defect of its row.
        """
        values, others = self._plain(name)
        for row in others.tolist():
            values[row] = self._number(name, row)
        return values

    def _number(self, name: str, row: int) -> float:
        text = self.word(name, row)
        value = _float(text)
        if math.isnan(value):
            self.note(row, "text in numbers", f"{name} must be a number, not {shown(text)}")
        return value

    def whole(self, name: str, most: float = 2**53) -> Floats:
        """Return a column as numbers [R]; nan = the field is empty.

        Values other than whole numbers from 0 to `most` are noted as defects of their rows.
        """
        values = self.numbers(name)
        with np.errstate(invalid="ignore"):
            bad = (values != np.floor(values)) | (values < 0) | (values > most)
        self.note_where(
            bad & ~np.isnan(values),
            "impossible number",
            lambda row: (
                f"{name} must be a whole number from 0 to {most:g}, not "
                f"{shown(self.word(name, row))}"
            ),
        )
        return values

    def times(self, name: str, absent: Sequence[str] = ()) -> Floats:
        """Return a column as times [R] in seconds; a date like 2026-01-31 23:59:58 in Unix seconds.

        Empty fields and the words of `absent` are nan. Other text becomes nan and a defect of its
        row.
        """
        values, others = self._plain(name)
        kernel.dates(self._bytes, np.ascontiguousarray(self._column(name)), others, values)
        for row in others[np.isnan(values[others])].tolist():
            word = self.word(name, row)
            if word not in absent:
                values[row] = _float(word)
                if math.isnan(values[row]):
                    said = f"{name} must be a time (seconds, or 2026-01-31 23:59:58), not "
                    self.note(row, "text in times", said + shown(word))
        return values


def _float(text: str) -> float:
    """Return the finite number that a text writes; nan if it writes none."""
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def stamps(words: Sequence[str]) -> Floats:
    """Return the Unix seconds [R] of dates such as 2026-01-31T23:59:58; nan for any other text.

    Dates have no time zone.
    """
    coded = [word.encode() for word in words]
    ends = np.cumsum([len(word) for word in coded], dtype=np.int32)
    starts = np.concatenate((np.zeros(1, np.int32), ends))[: len(ends)]
    values = np.full(len(words), np.nan)
    text = np.frombuffer(b"".join(coded), np.uint8)
    kernel.dates(text, np.stack((starts, ends), axis=1), np.arange(len(words)), values)
    return values


class Table:
    """Reads a text file as rows, one part of the file at a time, and collects its comments."""

    def __init__(self, source: TextFile, style: Style) -> None:
        self.source, self.style = source, style
        self.comments: list[str] = []
        self._names = style.names
        self._used = 0  # bytes of the present block

    def parts(self) -> Iterator[Rows]:
        """Yield all rows of the file in parts; rows with a wrong number of fields carry a defect.

        Raises:
            TraceError: the file cannot be read, is not UTF-8 text, has invalid column names, or has
                a line that is too long.
        """
        left, is_last = b"", False
        while left or not is_last:
            block, is_last = self.source.block(left)
            if not self.source.lines:
                block = block.removeprefix(_UTF8)
            self._refuse_other_text(block)
            self._collect_comments(block)
            self._used = 0
            yield from self._cut(block)
            left = block[self._used :]
            if left and (is_last or len(left) > LONGEST):
                yield self._open_quote()
                left = left.partition(b"\n")[2]

    def _open_quote(self) -> Rows:
        """Return one row without columns whose defect is a quote that is never closed."""
        self.source.lines += 1
        here = np.array([self.source.lines])
        rows = Rows(b"", np.zeros((1, 1, 2), np.int32), here, (), self.source.path)
        rows.note(0, "open quote", "a quote is opened here and never closed")
        return rows

    def _refuse_other_text(self, block: bytes) -> None:
        at, why = block.find(b"\0"), "a zero byte"
        try:
            block.decode()
        except UnicodeDecodeError as exc:
            at, why = exc.start, f"byte {block[exc.start]:#04x}, which is not UTF-8"
        if at >= 0:
            line = self.source.lines + 1 + block.count(b"\n", 0, at)
            raise TraceError(
                f"{self.source.path}:{line}: there is {why}; is this a text file? (to convert: "
                "iconv -f latin1 -t utf-8)"
            )

    def _collect_comments(self, block: bytes) -> None:
        mark = self.style.comment.encode()
        if mark and (block.startswith(mark) or b"\n" + mark in block):
            lines = (line for line in block.split(b"\n") if line.startswith(mark))
            self.comments += [line.decode().strip() for line in lines]

    def _cut(self, block: bytes) -> Iterator[Rows]:
        style = self.style
        quote = _QUOTE if style.quoted else 0
        comment = ord(style.comment) if style.comment else 0
        delimiter = ord(style.delimiter) if style.delimiter else kernel.BLANKS
        while self._used < len(block):
            text = block[self._used :]
            width = min(len(self._names) + self._spare(), _MOST_FIELDS) or _MOST_FIELDS
            size = _ROWS if self._names else 1
            cells, rows = np.empty((size, width, 2), np.int32), np.empty((size, 2), np.int32)
            found, used, lines = kernel.split(
                np.frombuffer(text, np.uint8), delimiter, quote, comment, cells, rows
            )
            if used == 0:
                return
            first = self.source.lines + 1
            self.source.lines += lines
            self._used += used
            if found and not self._names:
                self._take_names(text, cells, rows, first)
            elif found:
                yield self._checked(text, cells[:found], rows[:found], first)

    def _has_open_end(self) -> bool:
        return bool(self.style.open_end) and self._names[-1:] == (self.style.open_end,)

    def _spare(self) -> int:
        """Return how many fields more than columns a row may have."""
        if self._has_open_end():
            return min(_MOST_JOINED, _MOST_FIELDS - len(self._names))
        return self.style.spare

    def _take_names(self, text: bytes, cells: kernel.Cells, rows: kernel.Cells, first: int) -> None:
        fields = int(rows[0, 1])
        spans = cells[0, : min(fields, _MOST_FIELDS)].tolist() if fields > 0 else []
        names = [text[a:b].decode().strip() for a, b in spans]
        where = f"{self.source.path}:{first + int(rows[0, 0])}"
        if not 0 < fields <= _MOST_FIELDS:
            raise TraceError(f"{where}: the names of the columns cannot be read")
        for name in names:
            if name and names.count(name) > 1:
                raise TraceError(f"{where}: two columns are called {shown(name)}; rename one")
        self._names = tuple(names)

    def _checked(self, text: bytes, cells: kernel.Cells, rows: kernel.Cells, first: int) -> Rows:
        """Return rows cut from a text; rows with a wrong number of fields carry a defect.

        Args:
            text: that was cut.
            cells: [R, C, 2] as from table_kernel.split.
            rows: [R, 2] as from table_kernel.split.
            first: line of the file where `text` begins.
        """
        width, spare = len(self._names), self._spare()
        right = (rows[:, 1] >= width) & (rows[:, 1] <= width + spare)
        lines = first + rows[:, 0].astype(np.int64)
        if self._has_open_end():
            last = np.clip(rows[:, 1], width, width + spare) - 1
            cells[:, width - 1, 1] = cells[np.arange(len(cells)), last, 1]
        kept = Rows(text, cells[:, :width], lines, self._names, self.source.path)
        wanted = f"{width}" if not spare else f"{width} to {width + spare}"
        kept.note_where(
            ~right,
            "wrong number of fields",
            lambda row: (
                f"expected {wanted} fields, got {rows[row, 1]}"
                if rows[row, 1] >= 0
                else "there is text behind a closing quote"
            ),
        )
        kept._cells[~right] = 0
        return kept
