"""The folder of a training: plan, labels, checkpoint, metrics; no file is ever half there."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from adlro import __version__
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError, OutputError
from adlro.features.start_kernel import FEATURES
from adlro.model.record import Record
from adlro.train.events import EventFile
from adlro.train.expand_kernel import COSTS
from adlro.train.expansion import Labels
from adlro.train.recipe import Recipe

Arrays = dict[str, NDArray[Any]]
P = TypeVar("P", bound=Record)

_OURS = re.compile(
    r"plan\.json|checkpoint\.npz|labels-\d+-\d+-\d+\.npz|metrics\.jsonl|lock|"
    r"events\.out\.tfevents\..*|\..*\.beside"
)
_META = "meta"
_LOCK = "lock"


class Wish(Record):
    """What a training was asked for."""

    scenario: Scenario
    objective: str
    seed: int
    budget_s: float | None
    episodes: int | None
    recipe: Recipe  # before it is scaled to the budget


class Plan(Record):
    """What a training will do; fixed when it begins."""

    version: str = __version__
    features: tuple[str, ...] = FEATURES
    costs: tuple[str, ...] = COSTS
    format: Literal[1] = 1
    wish: Wish
    recipe: Recipe  # as it is carried out


def difference(ours: Plan, theirs: Plan) -> str | None:
    """The first thing in which the plan of a folder is not what is wanted now."""
    if (ours.version, ours.features, ours.costs) != (theirs.version, theirs.features, theirs.costs):
        return f"adlro {theirs.version}, this is {ours.version}"
    for key, value in ours.wish:
        other = getattr(theirs.wish, key)
        if value != other:
            shown = key in ("objective", "seed", "budget_s", "episodes")
            name = theirs.wish.scenario.name if key == "scenario" else None
            what = f"{key.removesuffix('_s')} {other}" if shown else f"another {key}"
            return f"{what} ({name})" if name and name != ours.wish.scenario.name else what
    return None


class Folder:
    """Files of one training."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal: int = 0
        self._events: EventFile | None = None

    def clear(self) -> None:
        """Remove what a training left there; the folder must be held."""
        for file in self.path.iterdir():
            if file.name != _LOCK:
                file.unlink()

    def _refuse_others(self) -> None:
        for file in self.path.iterdir():
            if not _OURS.fullmatch(file.name) or file.is_dir():
                raise ConfigError(
                    f"{self.path}: holds {file.name}, which is not of a training; "
                    "move it away or choose another --out"
                )

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder, and keep other trainings out of it.

        Raises:
            ConfigError: one is at work there, or the folder holds other things.
            OutputError: it cannot be made.
        """
        try:
            self.path.mkdir(exist_ok=True)
            self._refuse_others()
            file = (self.path / _LOCK).open("w")
        except FileExistsError as exc:
            raise ConfigError(f"{self.path}: is no folder; choose another --out") from exc
        except OSError as exc:
            raise OutputError(f"{self.path}: cannot be written: {exc.strerror}") from exc
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise ConfigError(
                    f"{self.path}: another training is at work there; wait for it, "
                    "or choose another --out"
                ) from exc
            yield

    def begun(self, ours: P, difference: Callable[[P, P], str | None]) -> P | None:
        """The plan that was begun here; None = none yet.

        Args:
            ours: what is wanted now.
            difference: says the first thing in which another plan is not what is wanted.

        Raises:
            ConfigError: it is one for another wish or algorithm, or cannot be read.
        """
        file = self.path / "plan.json"
        if not file.exists():
            return None
        try:
            found = type(ours).model_validate_json(file.read_bytes())
        except ValidationError as exc:
            raise ConfigError(
                f"{file}: is not a plan of this algorithm and this adlro ({__version__}); "
                "say --fresh to train anew, or choose another --out"
            ) from exc
        other = difference(ours, found)
        if other is not None:
            raise ConfigError(
                f"{self.path}: was begun with {other}; ask for the same, say --fresh to train "
                "anew, or choose another --out"
            )
        return found

    def write_plan(self, plan: Record) -> None:
        """Begin."""
        self._write("plan.json", plan.model_dump_json(indent=1).encode())

    def _write(self, name: str, data: bytes) -> None:
        beside = self.path / f".{name}.beside"
        beside.write_bytes(data)
        beside.replace(self.path / name)

    def _write_arrays(self, name: str, arrays: Arrays) -> None:
        data = io.BytesIO()
        np.savez(data, **cast("dict[str, Any]", arrays))
        self._write(name, data.getvalue())

    def _read_arrays(self, file: Path) -> Arrays:
        try:
            with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as found:
                return {name: found[name] for name in found.files}
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as exc:
            raise ConfigError(f"{file}: cannot be read; say --fresh to train anew") from exc

    def write_checkpoint(self, arrays: Arrays, meta: dict[str, Any]) -> None:
        """Where the training stands, in one file; the metrics so far belong to it."""
        text = json.dumps(meta | {"journal_bytes": self._journal})
        self._write_arrays("checkpoint.npz", arrays | {_META: np.frombuffer(text.encode(), "u1")})

    def checkpoint(self) -> tuple[Arrays, dict[str, Any]] | None:
        """What was written last; None = nothing yet.

        Raises:
            ConfigError: it cannot be read.
        """
        file = self.path / "checkpoint.npz"
        if not file.exists():
            return None
        arrays = self._read_arrays(file)
        meta: dict[str, Any] = json.loads(arrays.pop(_META).tobytes())
        return arrays, meta

    def open_journal(self, length: int) -> None:
        """Go on with the metrics after so many bytes of them; later ones will come again."""
        file = self.path / "metrics.jsonl"
        if file.exists():
            os.truncate(file, min(length, file.stat().st_size))
        self._journal = length
        self._events = EventFile(self.path)

    def note(self, phase: str, step: int, values: dict[str, float]) -> None:
        """Add a line to metrics.jsonl and the same to TensorBoard's file."""
        line = json.dumps({"phase": phase, "step": step, **values}).encode() + b"\n"
        with (self.path / "metrics.jsonl").open("ab") as file:
            file.write(line)
        self._journal += len(line)
        if self._events is not None:
            self._events.write(step, {f"{phase}/{key}": value for key, value in values.items()})

    def write_labels(self, number: int, first: int, parts: list[Labels]) -> None:
        """Labels of consecutive episodes of a round."""
        arrays: Arrays = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in Labels._fields
        }
        name = f"labels-{number}-{first:06}-{first + len(parts):06}.npz"
        self._write_arrays(name, arrays)

    def labels(self, number: int) -> tuple[int, list[Labels]]:
        """How many episodes of a round are labelled, and their labels.

        Raises:
            ConfigError: they cannot be read.
        """
        done, parts = 0, []
        for file in sorted(self.path.glob(f"labels-{number}-*.npz")):
            first, last = (int(part) for part in file.stem.split("-")[2:])
            if first == done:
                parts.append(Labels(**self._read_arrays(file)))
                done = last
        return done, parts
