"""What every experiment shares: its options, its table, and the check against expected.json.

An experiment is a folder with run.py, expected.json and a README.md. Its run.py gives `main` a
function that makes a Result; `python experiments/NAME/run.py [--quick] [--check] [--json FILE]`.
With --readme the table goes into the folder's README.md, and its brief form into the project's,
each between the lines `<!-- NAME -->` and `<!-- end of NAME -->`.
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
from adlro.evaluate.output import check_writable, write_text

ROOT = Path(__file__).parents[1]


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


class Result(NamedTuple):
    """What an experiment found."""

    head: Sequence[str]  # the columns of the table, as printed
    table: Sequence[Sequence[str]]
    figures: dict[str, dict[str, float]]  # row -> column -> figure: what is checked
    details: Any = None  # whatever else the JSON file should hold
    brief: Sequence[str] = ()  # first cells of the lines for the project's README; none = all


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


def _put(table: str, name: str, path: Path) -> None:
    """Replace what stands between an experiment's marks in a Markdown file.

    Raises:
        ConfigError: the marks are not there.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ConfigError(f"{path}: has no lines {begin.strip()!r} and {end!r}")
    write_text(path, f"{before}{begin}{table}{end}{after}")


def show(result: Result, folder: Path) -> None:
    """Put a table into the README of its folder, and its brief form into that of the project.

    Raises:
        ConfigError: one of them has no place for it.
    """
    brief = [row for row in result.table if not result.brief or row[0] in result.brief]
    _put(markdown(result.head, result.table), folder.name, folder / "README.md")
    _put(markdown(result.head, brief), folder.name, ROOT / "README.md")


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


def _options(about: str, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="fewer seeds: to see that it runs")
    parser.add_argument("--check", action="store_true", help="compare with expected.json")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--readme", action="store_true", help="put the table into the READMEs")
    return parser.parse_args(arguments)


def main(
    about: str, folder: Path, make: Callable[[bool], Result], arguments: Sequence[str] | None = None
) -> int:
    """Run an experiment, print its table, write and check its figures.

    Args:
        about: one sentence for --help.
        folder: where expected.json is.
        make: called with True for a quick run.
        arguments: of the command line; None = the program's own.

    Returns:
        The exit status: 1 if a figure is off, 2 if the user has something to put right, else 0.
    """
    options = _options(about, arguments)
    try:
        check_writable(options.json)
        expected = load_expected(folder / "expected.json") if options.check else None
        result = make(options.quick)
        sys.stdout.write(markdown(result.head, result.table))
        if options.json:
            found = {"version": __version__, "figures": result.figures, "details": result.details}
            write_text(options.json, json.dumps(found, indent=2) + "\n")
        if options.readme:
            show(result, folder)
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
