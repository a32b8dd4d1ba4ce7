"""Writes a scenario as TOML, so that a report contains everything needed to repeat it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from adlro.config.scenario import Scenario


def as_toml(scenario: Scenario) -> str:
    """Return the complete scenario as TOML, with its base and command-line options applied."""
    return to_toml(scenario.model_dump(exclude_none=True))


def to_toml(table: Mapping[str, object]) -> str:
    """Return nested tables as the text of a TOML file."""
    return "\n".join(_table(table, "")) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _string(name)


def _string(text: str) -> str:
    """Return text as a TOML basic string: escaped as in JSON, and DEL as well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _is_tables(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(entry, Mapping) for entry in value)
    )


def _inline(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)  # inf and nan are written alike
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_inline(entry)}" for key, entry in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_inline(entry) for entry in value) + "]"
    return _string(str(value))


def _table(table: Mapping[str, object], path: str) -> list[str]:
    """Return the lines of a table: first its plain keys, then its subtables with headings.

    `path` is the table's own heading, "" for the whole file.
    """
    lines, below = [], []
    for name, value in table.items():
        place = f"{path}.{_key(name)}" if path else _key(name)
        if isinstance(value, list | tuple) and _is_tables(value):
            for entry in value:
                below += ["", f"[[{place}]]", *_table(entry, place)]
        elif isinstance(value, Mapping) and not path:
            below += ["", f"[{place}]", *_table(value, place)]
        else:
            lines.append(f"{_key(name)} = {_inline(value)}")
    return lines + below
