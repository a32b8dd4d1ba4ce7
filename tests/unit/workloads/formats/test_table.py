"""Text cut into rows and fields, beside Python's own csv, float and datetime."""

import csv
import io
import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adlro.workloads.formats import text_file
from adlro.workloads.formats.table import Style, Table, stamps
from adlro.workloads.formats.text_file import TextFile
from tests.histories import write

FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def rows(path, style=Style()):  # noqa: B008  a frozen record: sharing it between calls is harmless
    """All fields of a file by row, and the lines that rows begin on."""
    opened = TextFile(path)
    try:
        fields, lines = [], []
        for part in Table(opened, style).parts():
            columns = [part.words(name) for name in part.names]
            fields += [list(row) for row in zip(*columns, strict=True)]
            lines += part.lines.tolist()
        return fields, lines
    finally:
        opened.close()


def numbers(path):
    opened = TextFile(path)
    try:
        parts = list(Table(opened, Style()).parts())
        return np.concatenate([part.numbers("a") for part in parts])
    finally:
        opened.close()


@FEW
@given(
    table=st.lists(
        st.tuples(*[st.text("ab,\"\n é;'", min_size=1, max_size=6)] * 3), min_size=1, max_size=12
    ),
    block=st.integers(8, 64),
)
def test_quoted_text_is_cut_as_python_cuts_it_whatever_the_size_of_blocks(tmp_path, table, block):
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(
        [("x", "y", "z"), *table]
    )
    path = write(tmp_path, text.getvalue())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_file, "_BLOCK", block)
        found, _ = rows(path)
    assert found == [[field.strip() for field in row] for row in table]


def test_rows_are_named_by_the_line_that_they_begin_on(tmp_path):
    path = write(tmp_path, 'a,b\n1,"two\nlines"\n\n3,4\r\n5,6')
    fields, lines = rows(path)
    assert fields == [["1", "two\nlines"], ["3", "4"], ["5", "6"]]
    assert lines == [2, 5, 6]


def test_blanks_of_any_number_part_fields_and_comments_are_left_out(tmp_path):
    path = write(tmp_path, "; about\n  1   2\t3  \n;more\n4 5 6\n")
    style = Style(delimiter="", quoted=False, comment=";", names=("a", "b", "c"))
    fields, lines = rows(path, style)
    assert (fields, lines) == ([["1", "2", "3"], ["4", "5", "6"]], [2, 4])


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    fields, _ = rows(write(tmp_path, b"\xef\xbb\xbfa,b\n1,2\n"))
    assert fields == [["1", "2"]]
    assert numbers(write(tmp_path, b"\xef\xbb\xbfa,b\n1,2\n")).tolist() == [1.0]


@FEW
@given(
    values=st.lists(
        st.one_of(
            st.floats(allow_nan=False, allow_infinity=False),
            st.integers(-(10**20), 10**20),
            st.decimals(-(10**6), 10**6, places=3),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_numbers_are_those_that_python_reads_to_the_last_bit(tmp_path, values):
    path = write(tmp_path, "a,b\n" + "".join(f" {value} ,x\n" for value in values))
    assert numbers(path).tolist() == [float(str(value)) for value in values]


@FEW
@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)), st.sampled_from("T "))
def test_dates_are_those_that_python_reads(moment, mark):
    moment = moment.replace(microsecond=0)
    text = moment.isoformat(mark)
    assert stamps([text])[0] == moment.replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "", "2026-02-30T00:00:00", "2026-13-01T00:00:00", "2026-01-01T24:00:00", "2026-01-01",
        "2026-01-01T00:00:000", "2026/01/01T00:00:00", "now", "0000-01-01T00:00:00",
        "2026-01-01t00:00:00", "2026-01-01T00:60:00", "2026-00-01T00:00:00",
    ],
)  # fmt: skip
def test_what_is_no_date_is_not_read_as_one(text):
    assert math.isnan(stamps([text])[0])
