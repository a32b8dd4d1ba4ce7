"""Comparisons kept on disk as they come: a run that stops half-way can go on where it was."""

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


class _Kept(BaseModel):
    """One file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fingerprint: str
    comparison: Comparison


def fingerprint(scenario: Scenario, policies: Sequence[Policy], seeds: range, *more: object) -> str:
    """Of all that a comparison depends on: jobs, policies with their weights, and our code."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{scenario.model_dump_json()} {seeds} {more}".encode())
    for policy in policies:
        digest.update(f" {policy.name} {policy.memory} ".encode() + policy.params.tobytes())
        digest.update(policy.file.read_bytes() if policy.file else b"")
    package = Path(adlro.__file__).parent
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class Shelf(NamedTuple):
    """A folder of comparisons, one file each."""

    folder: Path
    is_resumed: bool  # whether what is there already is used

    def open(self) -> None:
        """Make the folder.

        Raises:
            OutputError: it cannot be made.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise OutputError(f"{self.folder}: cannot be made: {exc.strerror}") from exc

    def get(self, name: str, mark: str, make: Callable[[], Comparison]) -> Comparison:
        """The comparison of this fingerprint that is kept under a name, or else a new one."""
        path = self.folder / (re.sub(r"[^a-z0-9.]+", "-", name.lower()) + ".json")
        if self.is_resumed and path.exists():
            try:
                kept = _Kept.model_validate_json(path.read_bytes())
            except ValidationError:
                kept = None
            if kept and kept.fingerprint == mark:
                sys.stderr.write(f"{name}: from {path}\n")
                return kept.comparison
            sys.stderr.write(f"{path}: of other seeds, policies or code: run anew\n")
        found = make()
        write_text(path, _Kept(fingerprint=mark, comparison=found).model_dump_json() + "\n")
        return found
