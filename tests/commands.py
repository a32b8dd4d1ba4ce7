"""Run an `adlro` command in this process; a new process takes seconds to load the compiler."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path

from adlro.cli import main


def called(*args: str, cwd: Path | str | None = ".") -> subprocess.CompletedProcess[str]:
    """Return what a process with these arguments would print, and its exit status.

    Without `cwd` it runs in the present folder.
    """
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["adlro", *args]
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            contextlib.nullcontext() if cwd is None else contextlib.chdir(cwd),
        ):
            status = main._status()
    finally:
        sys.argv = before
    return subprocess.CompletedProcess(sys.argv, status, out.getvalue(), err.getvalue())
