"""Split text into rows and fields, and read fields as numbers or dates; compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adlro.compiled import njit, wide
from adlro.model.state import Floats

Bytes = NDArray[np.uint8]
Cells = NDArray[np.int32]

BLANKS = 0  # as a delimiter: any run of blanks
READ, EMPTY, UNREAD = 0, 1, 2  # result of reading a field as a number
_NEWLINE, _RETURN, _SPACE, _TAB = 10, 13, 32, 9
_PLUS, _MINUS, _POINT, _ZERO, _NINE = 43, 45, 46, 48, 57
_DIGITS = 15  # that a float64 holds exactly, whatever they are
_COLON, _T, _DATE = 58, 84, 19  # _DATE = letters of 2026-01-31T23:59:58


@njit
def split(
    text: Bytes, delimiter: int, quote: int, comment: int, cells: Cells, rows: Cells
) -> tuple[int, int, int]:
    """Split a block of text into rows and fields, until the text ends or `rows` is full.

    Blank lines and comments are left out. A row whose quote is still open at the end of the text is
    left for the next block.

    Args:
        text: [B] bytes.
        delimiter: byte between fields, or BLANKS.
        quote: byte around quoted fields, doubled inside them; 0 = no quoting.
        comment: byte that begins a comment line; 0 = no comments.
        cells: [R, C, 2] receives the first and the end byte of the first C fields of each row.
        rows: [R, 2] receives the line where each row begins, counted from the block's first line,
            and the row's number of fields (-1 = there is text after a closing quote).

    Returns:
        Number of rows found, and the numbers of bytes and of lines of the text that were used up.
    """
    size, most, width = len(text), len(rows), cells.shape[1]
    at = line = found = wide(0)
    while at < size and found < most:
        begin, first = at, line
        if comment != 0 and text[at] == comment:
            while at < size and text[at] != _NEWLINE:
                at += 1
            at, line = at + 1, line + 1
            continue
        fields, is_spoilt, is_blank = wide(0), False, True
        while True:
            if delimiter == BLANKS:
                while at < size and (text[at] == _SPACE or text[at] == _TAB):
                    at += 1
            if quote != 0 and at < size and text[at] == quote:
                at += 1
                start = at
                while at < size:
                    if text[at] == quote:
                        if at + 1 < size and text[at + 1] == quote:
                            at += 1
                        else:
                            break
                    elif text[at] == _NEWLINE:
                        line += 1
                    at += 1
                if at >= size:
                    return found, begin, first
                end, is_blank = at, False
                at += 1
                while at < size and text[at] != delimiter and text[at] != _NEWLINE:
                    is_spoilt = is_spoilt or text[at] != _RETURN
                    at += 1
            else:
                start = at
                while at < size and text[at] != _NEWLINE and text[at] != delimiter:
                    if delimiter == BLANKS and (text[at] == _SPACE or text[at] == _TAB):
                        break
                    at += 1
                end = at
                if end > start and (at >= size or text[at] == _NEWLINE):
                    end -= wide(text[end - 1] == _RETURN)
            if delimiter != BLANKS or end > start:
                if fields < width:
                    cells[found, fields, 0] = start
                    cells[found, fields, 1] = end
                fields += 1
            is_blank = is_blank and end == start
            if at >= size or text[at] == _NEWLINE:
                break
            at += 1
        at, line = at + 1, line + 1
        if is_blank and fields <= 1:
            continue
        rows[found, 0] = first
        rows[found, 1] = -1 if is_spoilt else fields
        found += 1
    return found, min(at, size), line


@njit
def numbers(text: Bytes, cells: Cells, values: Floats, states: Bytes) -> None:
    """Read fields as plain decimal numbers.

    Fields in any other notation, such as 1e5, are marked UNREAD; the caller parses them in Python.

    Args:
        text: [B] bytes.
        cells: [R, 2] first and end byte of each field.
        values: [R] receives the numbers; nan where no number was read.
        states: [R] receives READ, EMPTY or UNREAD.
    """
    for i in range(len(cells)):
        at, end = wide(cells[i, 0]), wide(cells[i, 1])
        while at < end and text[at] == _SPACE:
            at += 1
        while end > at and text[end - 1] == _SPACE:
            end -= 1
        values[i] = np.nan
        states[i] = EMPTY if at == end else UNREAD
        sign = 1.0
        if at < end and (text[at] == _MINUS or text[at] == _PLUS):
            sign = -1.0 if text[at] == _MINUS else 1.0
            at += 1
        whole, scale, digits, is_fraction = wide(0), 1.0, wide(0), False
        while at < end and digits <= _DIGITS:
            byte = text[at]
            if _ZERO <= byte <= _NINE:
                whole = whole * 10 + (wide(byte) - _ZERO)
                digits += 1
                if is_fraction:
                    scale *= 10.0
            elif byte == _POINT and not is_fraction:
                is_fraction = True
            else:
                break
            at += 1
        if at == end and 0 < digits <= _DIGITS:
            values[i] = sign * (whole / scale)
            states[i] = READ


@njit
def _pair(text: Bytes, at: int) -> int:
    """Return the number that the two bytes from `at` on write; -1 = they are not two digits."""
    tens, ones = wide(text[at]) - _ZERO, wide(text[at + 1]) - _ZERO
    return 10 * tens + ones if 0 <= tens <= 9 and 0 <= ones <= 9 else -1


@njit
def _days(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date.

    The computation lets years begin in March, so that a leap day is the last day of its year.
    """
    year -= wide(month <= 2)
    month += 9 if month <= 2 else -3
    era = year // 400
    of_era = year - 400 * era
    of_year = (153 * month + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


@njit
def dates(text: Bytes, cells: Cells, rows: NDArray[np.int64], values: Floats) -> None:
    """Read dates such as 2026-01-31T23:59:58 as Unix seconds, without a time zone.

    A blank may stand instead of the T.

    Args:
        text: [B] bytes.
        cells: [R, 2] first and end byte of each field.
        rows: indices of the fields to read.
        values: [R] receives the seconds; unchanged where the field is not such a date.
    """
    for row in rows:
        at, end = wide(cells[row, 0]), wide(cells[row, 1])
        while at < end and text[at] == _SPACE:
            at += 1
        while end > at and text[end - 1] == _SPACE:
            end -= 1
        if end - at != _DATE or text[at + 4] != _MINUS or text[at + 7] != _MINUS:
            continue
        if text[at + 13] != _COLON or text[at + 16] != _COLON:
            continue
        if text[at + 10] != _T and text[at + 10] != _SPACE:
            continue
        century, year = _pair(text, at), _pair(text, at + 2)
        month, day = _pair(text, at + 5), _pair(text, at + 8)
        hour, minute, second = _pair(text, at + 11), _pair(text, at + 14), _pair(text, at + 17)
        if min(century, year, hour, minute, second) < 0 or century + year == 0:
            continue
        if not (1 <= month <= 12 and hour <= 23 and minute <= 59 and second <= 60):
            continue
        year += 100 * century
        after = _days(year, month + 1, 1) if month < 12 else _days(year + 1, 1, 1)
        if not 1 <= day <= after - _days(year, month, 1):
            continue
        values[row] = ((_days(year, month, day) * 24 + hour) * 60 + minute) * 60.0 + second
