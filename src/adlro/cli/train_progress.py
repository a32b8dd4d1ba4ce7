"""Shows the progress of `adlro train` on stderr: live in a terminal, else line by line."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from adlro.train.run import Status

_SOONEST = 0.02  # share of the work after which the time left is estimated
_LINE_EVERY_S = 10.0
_WIDTH, _HEIGHT, _BAR = 60, 10, 20  # of the curve and of the bar, characters


def duration(seconds: float) -> str:
    """Format a duration as minutes and seconds, with hours if there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Clock:
    """Estimates the time left from the speed of this session."""

    def __init__(self) -> None:
        self._begin: tuple[float, float] | None = None

    def left(self, share: float) -> str:
        """Return the time left as text; empty while it cannot be estimated."""
        now = time.monotonic()
        if self._begin is None:
            self._begin = now, share
        since, before = now - self._begin[0], share - self._begin[1]
        if before < _SOONEST or share >= 1.0:
            return ""
        return f"{duration(since * (1 - share) / before)} left"


def line(status: Status, left: str) -> str:
    """Format the status of a training as one line."""
    phase = f"{status.phase}, {status.step}" if status.step else status.phase
    parts = (
        phase, f"{100 * status.share:.0f} %", status.summary, f"{duration(status.cpu_s)} CPU", left
    )  # fmt: skip
    return " · ".join(part for part in parts if part)


def picture(status: Status) -> list[str]:
    """Return the rows of the learning curve; none for algorithms without one."""
    from adlro.cli.curve import plot

    if not status.points:
        return []
    rows = plot(status.points, status.levels, _WIDTH, _HEIGHT)
    return [*rows, "mean JCT of the greedy policy by episodes"]


class Lines:
    """Writes a status as a line: at each new phase, at the end, and every ten seconds."""

    def __init__(self) -> None:
        self._clock, self._phase, self._written_at = Clock(), "", 0.0

    def __call__(self, status: Status) -> None:
        """Write the status if a line is due."""
        left, now = self._clock.left(status.share), time.monotonic()
        is_new = status.phase != self._phase or status.share >= 1.0
        if is_new or now - self._written_at >= _LINE_EVERY_S:
            self._phase, self._written_at = status.phase, now
            click.echo(line(status, left), err=True)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[Status], object]]:
    """Yield the function to call with each status, which shows it on stderr."""
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        yield Lines()
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    clock = Clock()
    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:

        def draw(status: Status) -> None:
            text = [*picture(status), line(status, clock.left(status.share))]
            bar = ProgressBar(total=1.0, completed=status.share, width=_BAR)
            live.update(Group(Text("\n".join(text)), bar), refresh=True)

        yield draw
