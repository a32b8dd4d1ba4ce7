"""`adlro`: runs a subcommand, prints an error as one line, and sets the exit status."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import sys
from pathlib import Path

import click

COMMANDS = (
    "assess",
    "plan",
    "tune",
    "compare",
    "simulate",
    "scenario",
    "cluster",
    "trace",
    "telemetry",
    "policy",
    "train",
)


class _Commands(click.Group):
    """The group of subcommands; the module of a command is imported when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order in which a new user needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of this name and return its `command`; None = no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"adlro.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does, with a suggestion for a misspelt command."""
        from adlro.errors import suggestion

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}; {suggestion(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import version

    from adlro import __version__
    from adlro.compile_cache import cache_state

    python = ".".join(str(part) for part in sys.version_info[:3])
    click.echo(f"adlro {__version__} (Python {python})")
    click.echo(f"numba {version('numba')}, numpy {version('numpy')}")
    click.echo(f"cache: {cache_state()}")
    ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the versions and the state of the compile cache.",
)
def cli() -> None:
    """A scheduler for mixed GPU clusters: simulate, compare policies, see the schedule.

    \b
    Start with:   adlro compare paper16
    Then look at: adlro simulate paper16 --gantt schedule.html
    """  # noqa: D301  click wants the character itself


def _fail(message: str, status: int) -> int:
    from adlro.errors import printable

    click.echo(printable("adlro: " + " ".join(message.split())), err=True)
    return status


def _is_folder_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _status() -> int:
    from adlro.errors import AdlroError

    try:
        status = cli.main(prog_name="adlro", standalone_mode=False)
        return status if isinstance(status, int) else 0  # what a command gave to ctx.exit
    except click.exceptions.NoArgsIsHelpError as exc:
        click.echo(exc.ctx.get_help() if exc.ctx else "")
    except click.ClickException as exc:
        context = getattr(exc, "ctx", None)
        hint = f" (see '{context.command_path} --help')" if context else ""
        return _fail(exc.format_message() + hint, 2)
    except AdlroError as exc:
        return _fail(str(exc), 2)
    except (KeyboardInterrupt, click.Abort):
        return _fail("stopped", 130)
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            return _fail(f"cannot write: {exc.strerror}", 2)
        if _is_folder_gone():
            return _fail("the working folder is gone; change to another", 2)
        if not isinstance(exc, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read us has gone
    return 0


def main() -> None:
    """Run the command line and end the process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode
    status = _status()
    if status:  # do not wait for runs that are still under way in other threads
        with contextlib.suppress(OSError):  # whoever read us has gone
            sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
