"""What the commands share: how lines, tables and figures are printed."""

import json
import math

import pytest
from rich.table import Table

from adlro import compile_cache
from adlro.cli.options import as_json, say, say_if_slow, stdout
from adlro.compiled import njit

NAME = "[red]x[/] [/] [v2] :smile: \x1b[31m\u202e"
SHOWN = "[red]x[/] [/] [v2] :smile: \\x1b[31m\\u202e"


def test_names_are_printed_literally_in_lines_and_in_tables(capsys):
    table = Table(title=NAME)
    table.add_column(NAME)
    table.add_row(NAME)
    stdout().print(table)
    stdout().print(NAME)
    say(NAME)
    assert capsys.readouterr().out.count(SHOWN) == 5


def test_line_breaks_of_a_heading_stay(capsys):
    stdout().print("one\ntwo")
    assert capsys.readouterr().out == "one\ntwo\n"


@pytest.mark.parametrize(
    ("columns", "width"),
    [("60", 60), ("200", 200), ("", 120), ("0", 120), ("-5", 120), ("wide", 120)],
)
def test_piped_tables_are_as_wide_as_columns_says(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    assert stdout().width == width


def test_piped_tables_are_120_wide_where_nothing_is_said(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert stdout().width == 120


def test_figures_are_valid_json_whatever_they_are():
    facts = {"a": math.nan, "b": [math.inf, (-math.inf, 1.5)], "c": {"d": True, "e": "nan"}}
    found = json.loads(as_json(facts), parse_constant=pytest.fail)
    assert found == {"a": None, "b": [None, [None, 1.5]], "c": {"d": True, "e": "nan"}}


def test_the_line_about_compiling_is_shown_only_when_something_is_compiled(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(compile_cache, "_folder", lambda: tmp_path)

    def more(x):
        return x + 1

    more.__module__ = "adlro.errors"  # a module that can be imported
    shown = []
    for _ in range(2):
        function = njit(more)
        with say_if_slow():
            assert (function(3), function(3.0)) == (4, 4.0)
        shown.append(capsys.readouterr().err)
    assert shown == ["compiling, once for this version (half a minute to a minute) …\n", ""]
