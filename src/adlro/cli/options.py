"""Options, checks and output that several commands share."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from adlro.cli import completion

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from adlro.config.scenario import Scenario

C = TypeVar("C", bound=Callable[..., Any])

FILE = click.Path(dir_okay=True, path_type=Path)  # folders are refused with a better message


def refuse_same(file: Path, out: Path, hint: str = "OUT") -> None:
    """Raise click.BadParameter if the output file is the input file."""
    with contextlib.suppress(OSError):  # one of them is not there
        if out.samefile(file):
            raise click.BadParameter(
                f"{str(out)!r} is the file that is read; name another", param_hint=hint
            )


def slurm_option(command: C) -> C:
    """Add the option that names a Slurm configuration."""
    option = click.option(
        "--slurm-config",
        type=FILE,
        help="Settings of the policy slurm: the output of 'scontrol show config' (and 'show "
        "partition'), or a slurm.conf.",
    )
    return option(command)


def slurm_table(path: Path | None, partitions: list[str]) -> dict[str, Any] | None:
    """Return the table [slurm] that a Slurm configuration gives; None = no file is named.

    Prints which of its settings have no effect. partitions: the names of the cluster's.

    Raises:
        ConfigError: the file cannot be read, or is wrong.
    """
    if path is None:
        return None
    from adlro.config.slurm import read_slurm

    found = read_slurm(path, partitions)
    if found.ignored:
        say(f"{path}: without effect here: {', '.join(found.ignored)}", err=True)
    return found.slurm.model_dump(exclude_defaults=True)


def scenario_options(command: C) -> C:
    """Add the scenario argument and the options that override its keys."""
    for option in (
        click.option("--jobs", type=int, help="How many jobs arrive.  [default: the scenario's]"),
        click.option(
            "--estimates",
            help="Run times that policies see: oracle, noisy:S, request, last-two, last-two-alike, "
            "user-mean or memory.  [default: the scenario's]",
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
        click.argument("scenario", default="paper16", shell_complete=completion.scenarios),
    ):
        command = option(command)
    return slurm_option(command)


def changed_scenario(
    name: str,
    load: float | None,
    estimates: str | None,
    jobs: int | None,
    ageing: float | None,
    slurm_config: Path | None,
) -> Scenario:
    """Return the scenario with the given options applied.

    Raises:
        ConfigError: there is no such scenario, or a value is out of range.
    """
    from adlro.config.files import adjusted, find_scenario
    from adlro.config.scenario import partitions_of

    wanted = find_scenario(name)
    slurm = slurm_table(slurm_config, partitions_of(wanted.cluster))
    changes = {"load": load, "estimates": estimates, "jobs": jobs, "ageing_h": ageing}
    return adjusted(wanted, **changes, slurm=slurm)


def named_pairs(texts: tuple[str, ...], option: str, example: str) -> dict[str, str]:
    """Parse the NAME=VALUE texts of an option that may be given several times.

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
    """Print one line as soon as code must be compiled, which may take a minute."""
    from adlro.compile_cache import on_compiling

    text = "compiling, once for this version (half a minute to a minute) …"
    with on_compiling(functools.cache(lambda: click.echo(text, err=True))):
        yield


def stdout() -> Console:
    """Return the console that tables are printed on."""
    from adlro.cli import console

    return console.stdout()


def say(text: str, *, err: bool = False) -> None:
    """Print a line that may hold foreign names; terminal control characters become escapes."""
    from adlro.errors import printable

    click.echo(printable(text), err=err)


def as_json(facts: object) -> str:
    """Convert facts to JSON text; NaN and infinity, which JSON does not have, become null."""
    import json

    return json.dumps(_finite(facts), indent=2, allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list | tuple) else value


PRINTED = Path("-")  # as the name of a JSON file: print it instead of the table


def check_json_file(path: Path | None) -> None:
    """Check before the work starts that the JSON file can be written.

    Raises:
        OutputError: the file cannot be written.
    """
    from adlro.files import check_writable

    check_writable(None if path == PRINTED else path)


def hand_out(shown: RenderableType, figures: str, path: Path | None) -> None:
    """Print the table and write the figures to a JSON file; for `-`, print the JSON alone.

    Raises:
        OutputError: the file cannot be written.
    """
    from adlro.files import write_text

    if path == PRINTED:
        click.echo(figures)
        return
    stdout().print(shown)
    if path is not None:
        write_text(path, figures + "\n")
        say(f"all figures: {path}")
