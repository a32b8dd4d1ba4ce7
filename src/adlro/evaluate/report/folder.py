"""Checks and creates the folder of a report; without plotly, as the check precedes all runs."""

from __future__ import annotations

from pathlib import Path

from adlro.errors import OutputError
from adlro.files import check_writable

FILE = "report.html"


def check_folder(folder: Path) -> None:
    """Check before any run that the report can be written to a folder.

    Raises:
        OutputError: the folder is a file, not writable, or its parent does not exist.
    """
    try:
        is_there, is_folder = folder.exists(), folder.is_dir()
    except OSError as exc:
        raise OutputError(f"{folder}: cannot be made: {exc.strerror}") from exc
    if is_there and not is_folder:
        raise OutputError(f"{folder}: is a file; name a folder")
    check_writable(folder / FILE if is_folder else folder)


def make_folder(folder: Path) -> Path:
    """Create the folder of a report if necessary and return the path of the HTML file in it.

    Raises:
        OutputError: the folder cannot be created or written to.
    """
    check_folder(folder)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as exc:
        raise OutputError(f"{folder}: cannot be made: {exc.strerror}") from exc
    return folder / FILE
