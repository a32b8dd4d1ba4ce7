"""The errors that ADLRO raises on purpose, and helpers for their messages.

AdlroError            printed as one line, exit status 2
├── ConfigError       a scenario, a cluster or an option is invalid
├── PolicyError       a policy cannot be loaded, fails, or makes a decision that is not feasible
├── PlacementError    a job is reported to hold GPUs that it cannot hold
├── OutputError       a result cannot be written
├── MissingExtraError a command needs packages that are not installed
├── TraceError        a file of recorded jobs or nodes does not hold what its format promises
└── TelemetryError    GPUs cannot be read, or the source of their readings gives no valid answer
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AdlroError(Exception):
    """An error that the user can fix: the message says what is wrong, where, and what to do."""


class ConfigError(AdlroError):
    """A scenario, a cluster or an option is invalid."""


class PolicyError(AdlroError):
    """A policy cannot be loaded, fails, or makes a decision that is not feasible."""


class PlacementError(AdlroError):
    """A job is reported to hold GPUs that it cannot hold: in use, unknown, or of two pools."""


class OutputError(AdlroError):
    """A result cannot be written where the user asked for it."""


class MissingExtraError(AdlroError):
    """A command needs packages that are not installed."""

    def __init__(self, command: str, extra: str) -> None:
        super().__init__(f"{command} needs the extra: pip install 'adlro[{extra}]'")


class TraceError(AdlroError):
    """A file of recorded jobs or nodes does not hold what its format promises."""


class TelemetryError(AdlroError):
    """GPUs cannot be read, or the source of their readings gives no valid answer."""


def printable(text: str) -> str:
    r"""Return the text with every character that is not printable replaced by an escape sequence.

    Line breaks, control and bidirectional characters become `\n`, `\x1b` or `\u202e`; bytes of a
    file name that are not UTF-8 become `\xff`. So the result is one line that no terminal acts on.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # Python's stand-in for a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def suggestion(wrong: str, names: Iterable[str]) -> str:
    """Return a hint for a misspelt name: up to three similar known names, else all known names."""
    known = list(names)
    lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(wrong.lower(), lower, n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(repr(lower[name]) for name in near) + "?"
    return "known: " + ", ".join(known)
