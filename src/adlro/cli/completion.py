"""Shell completion of scenarios and policies.

Names are read from the package's folders and files: importing the registry would import the
compiler, and a shell that waits two seconds for a name completes nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

import click
from click.shell_completion import CompletionItem

import adlro

_PACKAGE = Path(adlro.__file__).parent
_DECIDE = re.compile(r"^def decide\(", re.MULTILINE)
_POLICY_FILES = (".py", ".npz")


def scenario_names() -> list[str]:
    """Return the name of every shipped scenario, as `adlro scenario list` shows them."""
    return sorted(path.stem for path in (_PACKAGE / "scenarios").glob("*.toml"))


def policy_names() -> list[str]:
    """Return the name of every shipped policy, as `adlro policy list` shows them."""
    return sorted(
        path.stem.replace("_", "-")
        for path in (_PACKAGE / "policies").glob("*.py")
        if _DECIDE.search(path.read_text(encoding="utf-8"))
    )


def _files(start: str, suffixes: tuple[str, ...]) -> list[str]:
    """Return paths that begin with `start`: files with one of the suffixes, and folders with /."""
    folder, slash, name = start.rpartition("/")
    try:
        entries = sorted(Path(folder + slash).iterdir())
    except OSError:
        return []
    shown = [entry for entry in entries if name or not entry.name.startswith(".")]
    found = [(entry.name + "/" if entry.is_dir() else entry.name) for entry in shown]
    return [
        f"{folder}{slash}{one}"
        for one in found
        if one.startswith(name) and one.endswith(("/", *suffixes))
    ]


def _items(before: str, start: str, names: list[str], suffixes: tuple[str, ...]) -> list[str]:
    """Return the names, and if `start` is not empty the files, that begin with `start`.

    Each has `before` put in front of it.
    """
    found = [name for name in names if name.startswith(start)]
    return [before + one for one in found + (_files(start, suffixes) if start else [])]


def scenarios(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the completions of one scenario: names, and TOML files."""
    found = _items("", incomplete, scenario_names(), (".toml",))
    return [CompletionItem(one) for one in found]


def policy(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the completions of one policy: names, and files of the user's own."""
    found = _items("", incomplete, policy_names(), _POLICY_FILES)
    return [CompletionItem(one) for one in found]


def policies(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return completions of the last entry in a list of policies with commas between.

    Policies that the list names already are left out.
    """
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    names = [name for name in policy_names() if name not in given]
    names += [] if comma else ["all"]
    return [CompletionItem(one) for one in _items(before + comma, last, names, _POLICY_FILES)]
