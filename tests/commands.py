"""Run an `adlro` command in this process, or in a new one that is interrupted.

A new process takes seconds to load the compiler.
"""

from __future__ import annotations

import contextlib
import io
import signal
import subprocess
import sys
import time
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


def interrupted(*args: str, cwd: Path, once: Path) -> subprocess.CompletedProcess[str]:
    """Start a process with these arguments and press Ctrl-C as soon as the file `once` exists."""
    command = [sys.executable, "-m", "adlro", *args]
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not once.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(command, process.returncode, out, err)
