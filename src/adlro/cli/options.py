"""Options that several commands share."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from adlro.config.scenario import Scenario

C = TypeVar("C", bound=Callable[..., Any])

_SLOW_S = 2.0  # what is compiled already is there sooner, on a busy machine too
FILE = click.Path(dir_okay=True, path_type=Path)  # folders are refused with a better message


def refuse_same(file: Path, out: Path) -> None:
    """Refuse to write a result over what it is made from."""
    if out.exists() and file.exists() and out.samefile(file):
        raise click.BadParameter(
            f"{str(out)!r} is the file that is read; name another", param_hint="OUT"
        )


def scenario_options(command: C) -> C:
    """The scenario and what can be changed in it."""
    for option in (
        click.option("--jobs", type=int, help="How many jobs arrive.  [default: the scenario's]"),
        click.option(
            "--estimates",
            help="Run times that policies see: oracle, noisy:S, request, last-two, user-mean or "
            "memory.  [default: the scenario's]",
        ),
        click.option(
            "--load",
            type=click.FloatRange(0, 100, min_open=True),
            help="Arrivals as a fraction of what the cluster can carry.  [default: the scenario's]",
        ),
        click.option(
            "--ageing",
            type=float,
            metavar="HOURS",
            help="Waiting longer than that claims a pool; 0 = never.  [default: the scenario's]",
        ),
        click.argument("scenario", default="paper16"),
    ):
        command = option(command)
    return command


def changed_scenario(
    name: str,
    load: float | None,
    estimates: str | None,
    jobs: int | None,
    ageing: float | None,
) -> Scenario:
    """The scenario with the options applied.

    Raises:
        ConfigError: there is no such scenario, or a value is out of range.
    """
    from adlro.config.files import adjusted, find_scenario

    changes = {"load": load, "estimates": estimates, "jobs": jobs, "ageing_h": ageing}
    return adjusted(find_scenario(name), **changes)


def named_pairs(texts: tuple[str, ...], option: str, example: str) -> dict[str, str]:
    """NAME=VALUE texts of an option that may be given several times.

    Raises:
        click.BadParameter: one is not of that form.
    """
    pairs = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or not name.strip() or not value.strip():
            raise click.BadParameter(
                f"{text!r} is not NAME=VALUE, e.g. {example}", param_hint=option
            )
        pairs[name.strip()] = value.strip()
    return pairs


@contextlib.contextmanager
def say_if_slow() -> Iterator[None]:
    """A line while the compiler works, so that nobody thinks it hangs."""
    text = "compiling, once for this version (half a minute to a minute) …"
    timer = threading.Timer(_SLOW_S, lambda: click.echo(text, err=True))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def stdout() -> Console:
    """Where tables go: as wide as the terminal, and wide enough where there is none."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=120)


PRINTED = Path("-")  # as the name of a JSON file: print it instead of the table


def check_json_file(path: Path | None) -> None:
    """Refuse before the work starts a JSON file that could not be written after it.

    Raises:
        OutputError: it cannot be written there.
    """
    from adlro.files import check_writable

    check_writable(None if path == PRINTED else path)


def hand_out(shown: RenderableType, figures: str, path: Path | None) -> None:
    """Print what people read and write the figures as JSON, or print the JSON alone.

    Raises:
        OutputError: the file cannot be written.
    """
    from adlro.files import write_text

    if path == PRINTED:
        click.echo(figures)
        return
    stdout().print(shown, highlight=False)
    if path is not None:
        write_text(path, figures + "\n")
        click.echo(f"all figures: {path}")
