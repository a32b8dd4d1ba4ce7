"""Options, tables and the check against expected.json that all experiments share.

An experiment is a folder with run.py, expected.json and a README.md. Its run.py calls `main` with a
function that returns a Result; `python experiments/NAME/run.py [--quick] [--check] [--json FILE]`.
--readme writes the tables into the folder's README.md, and their brief form into docs/results.md,
each between the lines `<!-- NAME -->` and `<!-- end of NAME -->`; --expect writes the figures into
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
TOLERANCE = 0.005  # relative; written by --expect


class Figure(BaseModel):
    """A figure that a run must reproduce within a tolerance."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    row: str
    column: str
    value: float
    tolerance: Annotated[float, Field(ge=0)]


class Expected(BaseModel):
    """The content of expected.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    figures: Annotated[tuple[Figure, ...], Field(min_length=1)]
    command: str
    made_with: str


class Table(NamedTuple):
    """A further table of an experiment."""

    caption: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]
    is_brief: bool  # whether docs/results.md shows it, too


class Result(NamedTuple):
    """The tables and figures of an experiment."""

    head: Sequence[str]  # the columns of the table, as printed
    table: Sequence[Sequence[str]]
    figures: dict[str, dict[str, float]]  # row -> column -> figure; --check compares them
    details: Any = None  # further content of the JSON file
    brief: Sequence[str] = ()  # first cells of the rows for docs/results.md; empty = all
    more: Sequence[Table] = ()
    note: str = ""  # a paragraph below all tables

    def text(self, *, is_brief: bool = False) -> str:
        """All tables as Markdown, or the brief form for docs/results.md."""
        lines = [r for r in self.table if not is_brief or not self.brief or r[0] in self.brief]
        shown = [table for table in self.more if table.is_brief or not is_brief]
        parts = [markdown(self.head, lines)]
        parts += [f"{table.caption}\n\n{markdown(table.head, table.lines)}" for table in shown]
        parts += [f"{self.note}\n"] if self.note else []
        return "\n".join(parts)


def shared() -> Path:
    """Folder of shared data: $ADLRO_SHARED, or ../shared beside the repository.

    Raises:
        ConfigError: there is no such folder.
    """
    folder = Path(os.environ.get("ADLRO_SHARED") or ROOT.parent / "shared")
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; set ADLRO_SHARED to the one that holds data/")
    return folder


def markdown(head: Sequence[str], table: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table."""
    rows = [head, ["---"] * len(head), *table]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


class _Place(NamedTuple):
    """A Markdown file, split around the text between an experiment's marks."""

    path: Path
    before: str
    after: str


def _place(name: str, path: Path) -> _Place:
    """Find the marks of an experiment in a file.

    Raises:
        ConfigError: the file lacks the marks.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ConfigError(f"{path}: has no lines {begin.strip()!r} and {end!r}")
    return _Place(path, before + begin, end + after)


def _places(folder: Path) -> list[_Place]:
    """Find the marks in the experiment's own README and in docs/results.md."""
    files = (folder / "README.md", ROOT / "docs" / "results.md")
    return [_place(folder.name, file) for file in files]


def show(result: Result, folder: Path) -> None:
    """Write the tables into the README of their folder, and the brief form into docs/results.md.

    Raises:
        ConfigError: one of the files lacks the marks.
    """
    for place, is_brief in zip(_places(folder), (False, True), strict=True):
        text = result.text(is_brief=is_brief)
        write_text(place.path, f"{place.before}{text}{place.after}")


def plus_minus(mean: float, ci95: tuple[float, float] | None, digits: int = 2) -> str:
    """Format a mean with the half-width of its interval, if it has one."""
    half = "" if ci95 is None else f" ± {(ci95[1] - ci95[0]) / 2:,.{digits}f}"
    return f"{mean:,.{digits}f}{half}"


def load_expected(path: Path) -> Expected:
    """Read an expected.json.

    Raises:
        ConfigError: the file is missing or invalid.
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
    """Describe each expected figure that is missing or out of tolerance, one line each."""
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


def _tolerances(path: Path) -> dict[tuple[str, str], float]:
    """Relative tolerances of an existing expected.json: some were widened by hand."""
    if not path.exists():
        return {}
    return {
        (one.row, one.column): _short(one.tolerance / abs(one.value), 2)
        for one in load_expected(path).figures
        if one.value
    }


def expect(figures: dict[str, dict[str, float]], folder: Path) -> None:
    """Write the figures of a run into expected.json; tolerances never get narrower."""
    kept = _tolerances(folder / "expected.json")
    wanted = [
        Figure(
            row=row,
            column=column,
            value=_short(value, 6),
            tolerance=_short(max(TOLERANCE, kept.get((row, column), 0.0)) * abs(value), 2),
        )
        for row, columns in figures.items()
        for column, value in columns.items()
    ]
    command = f"python experiments/{folder.name}/run.py --check"
    holds = Expected(figures=tuple(wanted), command=command, made_with=f"adlro {__version__}")
    write_text(folder / "expected.json", holds.model_dump_json(indent=1) + "\n")


def parser(about: str, folder: Path | None = None) -> argparse.ArgumentParser:
    """Make the parser of the shared options; `about` is one sentence for --help.

    An experiment that stores partial results, so that --resume can use them, passes its folder.
    """
    options = argparse.ArgumentParser(description=about)
    options.add_argument("--quick", action="store_true", help="fewer seeds: to see that it runs")
    options.add_argument("--check", action="store_true", help="compare with expected.json")
    options.add_argument("--expect", action="store_true", help="write expected.json")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options.add_argument(
        "--readme", action="store_true", help="write the tables into README.md and docs/results.md"
    )
    if folder is not None:
        options.add_argument(
            "--keep", type=Path, default=ROOT / "out" / folder.name, metavar="FOLDER",
            help="where partial results, and trainings, are stored",
        )  # fmt: skip
        options.add_argument(
            "--resume", action="store_true", help="use the partial results of an earlier run"
        )
    return options


def _hand_out(result: Result, options: argparse.Namespace, folder: Path) -> None:
    """Print the tables and write the files that the options ask for."""
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
        options: parsed by `parser`.
        folder: the folder of the experiment.
        make: computes the result.

    Returns:
        The exit status: 1 if a figure is out of tolerance, 2 after a user error, else 0.
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
        folder: the folder of the experiment.
        make: computes the result; its argument is True for a quick run.
        arguments: of the command line; None = sys.argv.

    Returns:
        The exit status of `run`.
    """
    options = parser(about).parse_args(arguments)
    return run(options, folder, lambda: make(options.quick))
