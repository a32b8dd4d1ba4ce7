"""The console that tables are printed on; in its own module, as rich takes long to import."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console
from rich.text import Text

from adlro.errors import printable

_WIDTH = 120  # columns where there is neither a terminal nor COLUMNS
_MOST_WIDTH = 10_000


class PlainConsole(Console):
    """A console that prints strings literally: no markup, no emoji codes, no terminal escapes."""

    def __init__(self, width: int | None = None) -> None:
        super().__init__(width=width, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401  rich's own options
        """Render as rich does, with every character that a terminal would act on as an escape."""
        lines = (printable(line) for line in text.split("\n"))
        return super().render_str("\n".join(lines), **options)


def stdout() -> PlainConsole:
    """Return the console of standard output.

    It is as wide as COLUMNS or the terminal, or 120 columns without either.
    """
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isascii() and wanted.isdigit() and int(wanted[:9]) > 0:
        return PlainConsole(min(int(wanted[:9]), _MOST_WIDTH))
    console = PlainConsole(_WIDTH)
    return PlainConsole() if console.is_terminal else console
