"""What every experiment shares: its options, its table, and the check against expected.json.

An experiment is a folder with run.py, expected.json and a README.md. Its run.py gives `main` a
function that makes a Result; `python experiments/NAME/run.py [--quick] [--check] [--json FILE]`.
With --readme the table goes into the folder's README.md, and its brief form into the project's,
each between the lines `<!-- NAME -->` and `<!-- end of NAME -->`; with --expect the figures become
expected.json. An experiment with options of its own adds them to `parser` and calls `run`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adlro import __version__
from adlro.errors import AdlroError, ConfigError
from adlro.files import check_writable, write_text

ROOT = Path(__file__).parents[1]
NEAR = 0.005  # of a figure: how far off a run may be, where --expect writes it


class Figure(BaseModel):
    """A figure that a run must come near to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    row: str
    column: str
    value: float
    tolerance: Annotated[float, Field(ge=0)]


class Expected(BaseModel):
    """expected.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    figures: Annotated[tuple[Figure, ...], Field(min_length=1)]
    command: str
    made_with: str


class Table(NamedTuple):
    """A further table of an experiment."""

    caption: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]
    is_brief: bool  # whether the project's README shows it, too


class Result(NamedTuple):
    """What an experiment found."""

    head: Sequence[str]  # the columns of the table, as printed
    table: Sequence[Sequence[str]]
    figures: dict[str, dict[str, float]]  # row -> column -> figure: what is checked
    details: Any = None  # whatever else the JSON file should hold
    brief: Sequence[str] = ()  # first cells of the lines for the project's README; none = all
    more: Sequence[Table] = ()
    note: str = ""  # what a reader of the tables must know, below all of them

    def text(self, *, is_brief: bool = False) -> str:
        """All tables as Markdown, or what the project's README shows of them."""
        lines = [r for r in self.table if not is_brief or not self.brief or r[0] in self.brief]
        shown = [table for table in self.more if table.is_brief or not is_brief]
        parts = [markdown(self.head, lines)]
        parts += [f"{table.caption}\n\n{markdown(table.head, table.lines)}" for table in shown]
        parts += [f"{self.note}\n"] if self.note else []
        return "\n".join(parts)


def shared() -> Path:
    """The folder of shared data: $ADLRO_SHARED, or ../shared beside the repository.

    Raises:
        ConfigError: it is not there.
    """
    folder = Path(os.environ.get("ADLRO_SHARED") or ROOT.parent / "shared")
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; set ADLRO_SHARED to the one that holds data/")
    return folder


def markdown(head: Sequence[str], table: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [head, ["---"] * len(head), *table]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


class _Place(NamedTuple):
    """A Markdown file in three parts: what is between an experiment's marks, before and after."""

    path: Path
    before: str
    after: str


def _place(name: str, path: Path) -> _Place:
    """Where a table goes.

    Raises:
        ConfigError: the marks are not there.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ConfigError(f"{path}: has no lines {begin.strip()!r} and {end!r}")
    return _Place(path, before + begin, end + after)


def _places(folder: Path) -> list[_Place]:
    """Those in the README of an experiment's folder and in that of the project."""
    return [_place(folder.name, home / "README.md") for home in (folder, ROOT)]


def show(result: Result, folder: Path) -> None:
    """Put the tables into the README of their folder, and the brief form into the project's.

    Raises:
        ConfigError: one of them has no place for it.
    """
    for place, is_brief in zip(_places(folder), (False, True), strict=True):
        text = result.text(is_brief=is_brief)
        write_text(place.path, f"{place.before}{text}{place.after}")


def plus_minus(mean: float, ci95: tuple[float, float] | None, digits: int = 2) -> str:
    """A mean and half of its interval, if it has one."""
    half = "" if ci95 is None else f" ± {(ci95[1] - ci95[0]) / 2:,.{digits}f}"
    return f"{mean:,.{digits}f}{half}"


def load_expected(path: Path) -> Expected:
    """Read an expected.json.

    Raises:
        ConfigError: it is missing, or does not hold what it must.
    """
    try:
        return Expected.model_validate_json(path.read_bytes())
    except OSError as exc:
        raise ConfigError(f"{path}: {exc.strerror}; run without --check") from exc
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: {where}: {first['msg']}") from exc


def misses(figures: dict[str, dict[str, float]], expected: Expected) -> list[str]:
    """One line for each expected figure that is missing or too far off."""
    lines = []
    for wanted in expected.figures:
        found = figures.get(wanted.row, {}).get(wanted.column)
        where = f"{wanted.row}, {wanted.column}"
        if found is None:
            lines.append(f"{where}: expected {wanted.value:g}, but there is no such figure")
        elif not abs(found - wanted.value) <= wanted.tolerance:  # a NaN is a miss
            lines.append(
                f"{where}: {found:g} is not within {wanted.tolerance:g} of {wanted.value:g}"
            )
    return lines


def _short(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def expect(figures: dict[str, dict[str, float]], folder: Path) -> None:
    """Make the figures of a run those that later runs must come near to."""
    wanted = [
        Figure(
            row=row, column=column, value=_short(value, 6), tolerance=_short(NEAR * abs(value), 2)
        )
        for row, columns in figures.items()
        for column, value in columns.items()
    ]
    command = f"python experiments/{folder.name}/run.py --check"
    holds = Expected(figures=tuple(wanted), command=command, made_with=f"adlro {__version__}")
    write_text(folder / "expected.json", holds.model_dump_json(indent=1) + "\n")


def parser(about: str, folder: Path | None = None) -> argparse.ArgumentParser:
    """The options that every experiment has; `about` is one sentence for --help.

    An experiment that keeps its results as they come, to go on with them, names its folder.
    """
    options = argparse.ArgumentParser(description=about)
    options.add_argument("--quick", action="store_true", help="fewer seeds: to see that it runs")
    options.add_argument("--check", action="store_true", help="compare with expected.json")
    options.add_argument("--expect", action="store_true", help="write expected.json anew")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options.add_argument("--readme", action="store_true", help="put the table into the READMEs")
    if folder is not None:
        options.add_argument(
            "--keep", type=Path, default=ROOT / "out" / folder.name, metavar="FOLDER",
            help="where results, and trainings, are written as they come",
        )  # fmt: skip
        options.add_argument("--resume", action="store_true", help="use what is there already")
    return options


def _hand_out(result: Result, options: argparse.Namespace, folder: Path) -> None:
    """Print and write what a run has found."""
    sys.stdout.write(result.text())
    if options.json:
        found = {"version": __version__, "figures": result.figures, "details": result.details}
        write_text(options.json, json.dumps(found, indent=2) + "\n")
    if options.expect:
        expect(result.figures, folder)
    if options.readme:
        show(result, folder)


def run(options: argparse.Namespace, folder: Path, make: Callable[[], Result]) -> int:
    """Run an experiment, print its table, write and check its figures.

    Args:
        options: what `parser` has read.
        folder: where expected.json is.
        make: does the work.

    Returns:
        The exit status: 1 if a figure is off, 2 if the user has something to put right, else 0.
    """
    try:
        check_writable(options.json)
        if options.readme:
            _places(folder)  # before the work, not after it
        expected = load_expected(folder / "expected.json") if options.check else None
        result = make()
        _hand_out(result, options, folder)
    except AdlroError as exc:
        sys.stderr.write(f"error: {exc}\n")
        return 2
    if expected is None:
        return 0
    wrong = misses(result.figures, expected)
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    sys.stderr.write(f"{len(expected.figures) - len(wrong)} of {len(expected.figures)} figures ")
    sys.stderr.write("are as expected\n")
    return 1 if wrong else 0


def main(
    about: str, folder: Path, make: Callable[[bool], Result], arguments: Sequence[str] | None = None
) -> int:
    """Run an experiment that has no options of its own.

    Args:
        about: one sentence for --help.
        folder: where expected.json is.
        make: called with True for a quick run.
        arguments: of the command line; None = the program's own.

    Returns:
        The exit status, as that of `run`.
    """
    options = parser(about).parse_args(arguments)
    return run(options, folder, lambda: make(options.quick))
