"""`adlro compare --report`: checks the folder before a comparison and writes its page after it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from adlro.cli.options import PRINTED, say

if TYPE_CHECKING:
    from adlro.evaluate.compare import Watch
    from adlro.evaluate.comparison import Comparison
    from adlro.policies.registry import Policy
    from adlro.workloads.setting import Setting


def check_places(json_file: Path | None, report: Path | None, *, anonymous: bool) -> None:
    """Refuse places of --json and --report that cannot be, and --anonymous without a page.

    Raises:
        click.BadParameter: the page shall be printed, or both have the same place.
    """
    from adlro.evaluate.report.folder import FILE as PAGE

    if anonymous and report is None:
        raise click.BadParameter("it concerns the page of --report", param_hint="--anonymous")
    if report == PRINTED:
        raise click.BadParameter("it cannot be printed; name a folder", param_hint="--report")
    if json_file is None or report is None:
        return
    if json_file.resolve() in (report.resolve(), (report / PAGE).resolve()):
        raise click.BadParameter(f"{json_file} is the place of --report too", param_hint="--json")


class Reporter:
    """Collects data during a comparison and writes its page; does nothing without a folder."""

    def __init__(self, folder: Path | None, *, anonymous: bool = False) -> None:
        """Check that the page can be written; an anonymous one names nothing of a history.

        Raises:
            OutputError: the folder cannot be written to.
        """
        self._folder, self._anonymous = folder, anonymous
        self._write: Callable[[Path, Comparison], Path] | None = None
        if folder is not None:
            from adlro.evaluate.report.folder import check_folder

            check_folder(folder)

    def watch(self, setting: Setting, policies: Sequence[Policy]) -> Watch:
        """Return the callback that collects data from each finished run."""
        if self._folder is None:
            return lambda *_: None
        from adlro.evaluate.compare import in_background
        from adlro.evaluate.report.collect import Collector

        collector = Collector(setting)

        def write(folder: Path, result: Comparison) -> Path:
            from adlro.evaluate.report import page

            return in_background(
                lambda: page.write(
                    folder,
                    setting,
                    policies,
                    result,
                    collector.statistics(),
                    anonymous=self._anonymous,
                )
            )

        self._write = write
        return collector.watch

    def write(self, result: Comparison, *, quiet: bool) -> None:
        """Write the page and print its path, on standard error if `quiet`.

        Raises:
            OutputError: the page cannot be written.
        """
        if self._folder is None or self._write is None:
            return
        from rich.console import Console

        status = Console(stderr=True).status("drawing the report …")
        with status, contextlib.redirect_stdout(sys.stderr):  # a policy's print spoils no JSON
            path = self._write(self._folder, result)
        say(f"report: {path}", err=quiet)

    def leave_out(self) -> None:
        """Print that the requested page was not written."""
        if self._folder is not None:
            click.echo("no report: the comparison was stopped before its end", err=True)
