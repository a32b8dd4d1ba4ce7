"""Comparisons cached on disk, so that an interrupted experiment can resume."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

import adlro
from adlro.config.scenario import Scenario
from adlro.errors import OutputError
from adlro.evaluate.comparison import Comparison
from adlro.files import write_text
from adlro.policies.registry import Policy


class _Entry(BaseModel):
    """One file of the cache."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fingerprint: str
    comparison: Comparison


def fingerprint(scenario: Scenario, policies: Sequence[Policy], seeds: range, *more: object) -> str:
    """Hash of everything a comparison depends on: scenario, seeds, policies with weights, code."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{scenario.model_dump_json()} {seeds} {more}".encode())
    for policy in policies:
        digest.update(f" {policy.name} {policy.memory} ".encode() + policy.params.tobytes())
        digest.update(policy.file.read_bytes() if policy.file else b"")
    package = Path(adlro.__file__).parent
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class ComparisonCache(NamedTuple):
    """A folder with one file per comparison."""

    folder: Path
    is_resumed: bool  # whether existing files are used

    def open(self) -> None:
        """Create the folder.

        Raises:
            OutputError: it cannot be created.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise OutputError(f"{self.folder}: cannot be made: {exc.strerror}") from exc

    def get(self, name: str, mark: str, make: Callable[[], Comparison]) -> Comparison:
        """Return the cached comparison of this name and fingerprint, or make and cache it."""
        path = self.folder / (re.sub(r"[^a-z0-9.]+", "-", name.lower()) + ".json")
        if self.is_resumed and path.exists():
            try:
                entry = _Entry.model_validate_json(path.read_bytes())
            except ValidationError:
                entry = None
            if entry and entry.fingerprint == mark:
                sys.stderr.write(f"{name}: from {path}\n")
                return entry.comparison
            sys.stderr.write(f"{path}: of other seeds, policies or code: run again\n")
        found = make()
        write_text(path, _Entry(fingerprint=mark, comparison=found).model_dump_json() + "\n")
        return found
